//! CREATE VIEW.

use super::command::OnConflict;
use super::words::{Name, Words};
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
pub fn view(words: &mut Words<'_>, length: usize, replaces: bool) -> Result<CreateView> {
    let if_exists = words.if_not_exists();
    let name = words.name()?;
    words.expect("AS")?;
    Ok(CreateView { name, if_exists, replaces, head: words.query(length) })
}
