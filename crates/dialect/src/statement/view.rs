//! CREATE VIEW.

use super::command::OnConflict;
use super::token_cursor::{Name, TokenCursor};
use crate::error::Result;

/// CREATE VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateView {
    /// The view's name.
    pub name: Name,
    /// Whether an existing name is an error.
    pub if_exists: OnConflict,
    /// OR REPLACE.
    pub replaces: bool,
    /// Number of tokens before its query.
    pub head: usize,
}

/// Parses what follows CREATE VIEW, up to its query. `length` is the whole statement's, in tokens.
pub fn view(cursor: &mut TokenCursor<'_>, length: usize, replaces: bool) -> Result<CreateView> {
    let if_exists = cursor.if_not_exists();
    let name = cursor.name()?;
    cursor.expect("AS")?;
    Ok(CreateView { name, if_exists, replaces, head: cursor.query(length) })
}
