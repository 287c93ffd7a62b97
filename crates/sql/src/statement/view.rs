//! CREATE VIEW and CREATE MATERIALIZED VIEW.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::table::{Column, Engine, clause, engine_behind, items};
use super::words::{Name, Words};
use crate::catalogue::Missing;
use crate::error::Result;

/// CREATE VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateView {
    pub name: Name,
    pub exists: Missing,
    pub replaces: bool,
    /// Tokens before its query.
    pub head: usize,
}

/// CREATE MATERIALIZED VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateMaterializedView {
    pub name: Name,
    pub exists: Missing,
    /// The table that it puts rows into; `None`: one of its own.
    pub to: Option<Name>,
    /// None if they follow from its query.
    pub columns: Vec<Column>,
    pub engine: Engine,
    pub storage: Vec<String>,
    /// Whether rows that its source has already go through it, too.
    pub populates: bool,
    /// Tokens before its query.
    pub head: usize,
}

/// What follows CREATE VIEW, up to its query. `length` is that of the whole statement in tokens.
pub fn view(words: &mut Words<'_>, length: usize, replaces: bool) -> Result<CreateView> {
    let exists = if words.take(&["IF", "NOT", "EXISTS"]) { Missing::IsFine } else { Missing::IsError };
    let name = words.name()?;
    words.expect("AS")?;
    let head = length - words.left();
    while words.any().is_some() {}
    Ok(CreateView { name, exists, replaces, head })
}

/// What follows CREATE MATERIALIZED VIEW, up to its query. `length` is that of the whole statement in tokens.
pub fn materialized_view(words: &mut Words<'_>, length: usize) -> Result<CreateMaterializedView> {
    let exists = if words.take(&["IF", "NOT", "EXISTS"]) { Missing::IsFine } else { Missing::IsError };
    let name = words.name()?;
    let to = if words.take(&["TO"]) { Some(words.name()?) } else { None };
    let columns = if words.token(&Token::LParen) { items(words)? } else { Vec::new() };
    let (mut engine, mut storage, mut populates) = (Engine::default(), Vec::new(), false);
    while words.peek().is_some() && !words.take(&["AS"]) {
        if words.take(&["ENGINE"]) {
            engine = engine_behind(words)?;
        } else if words.take(&["POPULATE"]) {
            populates = true;
        } else if !words.take(&["EMPTY"]) {
            storage.push(clause(words));
        }
    }
    if words.peek().is_none() {
        return Err(words.unexpected("AS and a query"));
    }
    let head = length - words.left();
    while words.any().is_some() {}
    Ok(CreateMaterializedView { name, exists, to, columns, engine, storage, populates, head })
}
