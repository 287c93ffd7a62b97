//! CREATE, except of named collections, and INSERT.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::command::Command;
use super::token_cursor::{TokenCursor, is_word};
use super::{table, view};
use crate::error::Result;

/// Reads one of these statements.
pub fn read(cursor: &mut TokenCursor<'_>, length: usize) -> Result<Option<Command>> {
    let creates = [
        &["CREATE", "DICTIONARY"][..],
        &["CREATE", "OR", "REPLACE", "DICTIONARY"],
        &["REPLACE", "DICTIONARY"],
    ];
    Ok(Some(if creates.iter().any(|start| cursor.take(start)) {
        Command::CreateDictionary
    } else if cursor.take(&["CREATE", "TABLE"]) {
        Command::CreateTable(table::create(cursor, length)?)
    } else if cursor.take(&["CREATE", "VIEW"]) {
        Command::CreateView(view::view(cursor, length, false)?)
    } else if cursor.take(&["CREATE", "OR", "REPLACE", "VIEW"]) {
        Command::CreateView(view::view(cursor, length, true)?)
    } else if cursor.take(&["CREATE", "DATABASE"]) {
        database(cursor)?
    } else if cursor.take(&["INSERT", "INTO"]) {
        insert(cursor, length)?
    } else {
        return Ok(None);
    }))
}

fn database(cursor: &mut TokenCursor<'_>) -> Result<Command> {
    let if_exists = cursor.if_not_exists();
    let name = cursor.identifier()?;
    cursor.refuse_cluster()?;
    // All databases have one engine.
    if cursor.take(&["ENGINE"]) {
        cursor.token(&Token::Eq);
        cursor.identifier()?;
        if cursor.token(&Token::LParen) && !cursor.token(&Token::RParen) {
            return Err(cursor.unexpected(")"));
        }
    }
    Ok(Command::CreateDatabase { name, if_exists })
}

fn insert(cursor: &mut TokenCursor<'_>, length: usize) -> Result<Command> {
    let into = table::insert(cursor)?;
    // FORMAT Values is the same as VALUES.
    if cursor.take(&["FORMAT"]) && !cursor.peek().is_some_and(|token| is_word(token, "VALUES")) {
        let format = cursor.identifier()?;
        cursor.query(length);
        return Ok(Command::InsertData { into, format });
    }
    Ok(Command::Insert { into, head: length - cursor.left() })
}
