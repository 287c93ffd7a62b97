//! CREATE VIEW.

use super::command::Missing;
use super::words::{Name, Words};
use crate::error::Result;

/// CREATE VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateView {
    /// The view's name.
    pub name: Name,
    /// Whether a name that something has is an error.
    pub exists: Missing,
    /// OR REPLACE.
    pub replaces: bool,
    /// Tokens before its query.
    pub head: usize,
}

/// What follows CREATE VIEW, up to its query. `length` is that of the whole statement in tokens.
pub fn view(words: &mut Words<'_>, length: usize, replaces: bool) -> Result<CreateView> {
    let exists = words.if_not_exists();
    let name = words.name()?;
    words.expect("AS")?;
    Ok(CreateView { name, exists, replaces, head: words.query(length) })
}
