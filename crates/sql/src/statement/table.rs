//! CREATE TABLE and INSERT, as far as tables in RAM need them.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::words::{Name, Words, is_word};
use crate::catalogue::Missing;
use crate::error::{Error, Result};

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    pub name: Name,
    pub exists: Missing,
    /// Names and ClickHouse's types; none if they follow from a SELECT.
    pub columns: Vec<(String, String)>,
    /// `Memory` if it does not say.
    pub engine: String,
}

/// Where INSERT puts rows: what follows is a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertInto {
    pub name: Name,
    /// `None`: all of them.
    pub columns: Option<Vec<String>>,
}

/// Behind a column's type.
const OPTIONS: &[&str] = &[
    "DEFAULT",
    "MATERIALIZED",
    "ALIAS",
    "EPHEMERAL",
    "CODEC",
    "TTL",
    "COMMENT",
    "PRIMARY",
    "NOT",
    "STATISTICS",
];

/// What stands between the parentheses and is no column.
const NOT_COLUMNS: &[&str] = &["INDEX", "CONSTRAINT", "PROJECTION", "PRIMARY"];

/// What follows CREATE TABLE. What an engine is told of order, partitions and time to live changes nothing.
pub fn create(words: &mut Words<'_>) -> Result<CreateTable> {
    let exists = if words.take(&["IF", "NOT", "EXISTS"]) { Missing::IsFine } else { Missing::IsError };
    let name = words.name()?;
    if !words.token(&Token::LParen) {
        return Err(words.unexpected("columns in parentheses"));
    }
    let mut columns = Vec::new();
    loop {
        let is_column =
            !words.peek().is_some_and(|token| NOT_COLUMNS.iter().any(|word| is_word(token, word)));
        if is_column {
            let column = words.identifier()?;
            columns.push((column, data_type(words)?));
        }
        rest_of_item(words)?;
        if !words.comma() {
            break;
        }
    }
    if !words.token(&Token::RParen) {
        return Err(words.unexpected("a comma or )"));
    }
    let mut engine = None;
    while let Some(token) = words.any() {
        if is_word(token, "ENGINE") {
            words.token(&Token::Eq);
            engine = Some(words.identifier()?);
        } else if is_word(token, "AS") {
            return Err(Error::not_implemented(
                "CREATE TABLE ... AS is not implemented; use INSERT ... SELECT",
            ));
        }
    }
    Ok(CreateTable { name, exists, columns, engine: engine.unwrap_or_else(|| "Memory".to_owned()) })
}

/// The text of a type: a word, and what stands in parentheses behind it.
fn data_type(words: &mut Words<'_>) -> Result<String> {
    let mut text = String::new();
    let mut depth = 0usize;
    while let Some(token) = words.peek() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => break,
            token if depth == 0 && OPTIONS.iter().any(|word| is_word(token, word)) => break,
            _ => {}
        }
        text += &token.to_string();
        words.any();
    }
    if text.is_empty() { Err(words.unexpected("a type")) } else { Ok(text) }
}

/// Options of a column, which change nothing but for those that would change what is inserted.
fn rest_of_item(words: &mut Words<'_>) -> Result<()> {
    let mut depth = 0usize;
    while let Some(token) = words.peek() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => break,
            token if ["DEFAULT", "MATERIALIZED", "ALIAS"].iter().any(|word| is_word(token, word)) => {
                return Err(Error::not_implemented(format!(
                    "{token} of a table's column is not implemented"
                )));
            }
            _ => {}
        }
        words.any();
    }
    Ok(())
}

/// What follows INSERT INTO, up to the query.
pub fn insert(words: &mut Words<'_>) -> Result<InsertInto> {
    words.take(&["TABLE"]);
    let name = words.name()?;
    let mut columns = None;
    if words.token(&Token::LParen) {
        let mut named = vec![words.identifier()?];
        while words.comma() {
            named.push(words.identifier()?);
        }
        if !words.token(&Token::RParen) {
            return Err(words.unexpected("a comma or )"));
        }
        columns = Some(named);
    }
    if words.peek().is_some_and(|token| is_word(token, "FORMAT")) {
        return Err(Error::not_implemented("INSERT ... FORMAT is not implemented; use VALUES or SELECT"));
    }
    Ok(InsertInto { name, columns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::split;

    fn created(text: &str) -> Result<CreateTable> {
        create(&mut Words::new(&split(text)?[0].tokens))
    }

    #[test]
    fn columns_and_engine_are_read() {
        let table = created(
            "IF NOT EXISTS db.t (id UInt64, `a b` Nullable(String) CODEC(ZSTD(1)), c DateTime64(3, 'UTC'), \
             INDEX i (id) TYPE minmax, PRIMARY KEY id) ENGINE = MergeTree() ORDER BY (id) SETTINGS x = 1",
        )
        .unwrap();
        assert_eq!((table.exists, table.engine.as_str()), (Missing::IsFine, "MergeTree"));
        let columns: Vec<(&str, &str)> =
            table.columns.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        let expected = [("id", "UInt64"), ("a b", "Nullable(String)"), ("c", "DateTime64(3,'UTC')")];
        assert_eq!(columns, expected);
        assert_eq!(created("t (a UInt8)").unwrap().engine, "Memory");
    }

    #[test]
    fn what_would_change_rows_is_refused() {
        assert_eq!(created("t (a UInt8 DEFAULT 5)").unwrap_err().code, 48);
        assert_eq!(created("t (a)").unwrap_err().code, 62);
        assert_eq!(created("t AS SELECT 1").unwrap_err().code, 62);
    }
}
