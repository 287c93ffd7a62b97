//! CREATE, except of named collections, and INSERT.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::command::Command;
use super::words::{Words, is_word};
use super::{table, view};
use crate::error::Result;

/// Reads one of these statements.
pub fn read(words: &mut Words<'_>, length: usize) -> Result<Option<Command>> {
    let creates = [
        &["CREATE", "DICTIONARY"][..],
        &["CREATE", "OR", "REPLACE", "DICTIONARY"],
        &["REPLACE", "DICTIONARY"],
    ];
    Ok(Some(if creates.iter().any(|start| words.take(start)) {
        Command::CreateDictionary
    } else if words.take(&["CREATE", "TABLE"]) {
        Command::CreateTable(table::create(words, length)?)
    } else if words.take(&["CREATE", "VIEW"]) {
        Command::CreateView(view::view(words, length, false)?)
    } else if words.take(&["CREATE", "OR", "REPLACE", "VIEW"]) {
        Command::CreateView(view::view(words, length, true)?)
    } else if words.take(&["CREATE", "DATABASE"]) {
        database(words)?
    } else if words.take(&["INSERT", "INTO"]) {
        insert(words, length)?
    } else {
        return Ok(None);
    }))
}

fn database(words: &mut Words<'_>) -> Result<Command> {
    let if_exists = words.if_not_exists();
    let name = words.identifier()?;
    words.refuse_cluster()?;
    // All databases have one engine.
    if words.take(&["ENGINE"]) {
        words.token(&Token::Eq);
        words.identifier()?;
        if words.token(&Token::LParen) && !words.token(&Token::RParen) {
            return Err(words.unexpected(")"));
        }
    }
    Ok(Command::CreateDatabase { name, if_exists })
}

fn insert(words: &mut Words<'_>, length: usize) -> Result<Command> {
    let into = table::insert(words)?;
    // FORMAT Values is the same as VALUES.
    if words.take(&["FORMAT"]) && !words.peek().is_some_and(|token| is_word(token, "VALUES")) {
        let format = words.identifier()?;
        words.query(length);
        return Ok(Command::InsertData { into, format });
    }
    Ok(Command::Insert { into, head: length - words.left() })
}
