//! CREATE TABLE and INSERT, as far as tables in RAM support them.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::command::OnConflict;
use super::spelled::spelled;
use super::token_cursor::{Name, TokenCursor, is_word};
use crate::error::{Error, Result};

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    /// The table's name.
    pub name: Name,
    /// Whether an existing name is an error.
    pub if_exists: OnConflict,
    /// Empty if they follow from `rows`.
    pub columns: Vec<ColumnDefinition>,
    /// The engine.
    pub engine: Engine,
    /// Other storage clauses, in ClickHouse's spelling.
    pub storage: Vec<String>,
    /// Its initial rows.
    pub rows: Rows,
    /// Its comment.
    pub comment: String,
}

/// ENGINE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// `Memory` if none is given.
    pub name: String,
    /// The expressions in the parentheses after it.
    pub arguments: Vec<String>,
}

impl Default for Engine {
    fn default() -> Self {
        Self { name: "Memory".to_owned(), arguments: Vec::new() }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// ClickHouse's type; `None`: that of its DEFAULT.
    pub data_type: Option<String>,
    /// The expression after DEFAULT.
    pub default: Option<String>,
}

/// AS, after CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// The table begins empty.
    None,
    /// The rows of a query.
    Query {
        /// Number of tokens before the query.
        head: usize,
    },
    /// The table begins empty, with the columns of another one.
    Like(Name),
}

/// The target of an INSERT; a query follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertInto {
    /// The table's name.
    pub name: Name,
    /// The columns that are given; `None`: all of them.
    pub columns: Option<Vec<String>>,
}

/// Words that may follow a column's type.
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

/// Items between the parentheses that are no columns.
const NOT_COLUMNS: &[&str] = &["INDEX", "CONSTRAINT", "PROJECTION", "PRIMARY"];

/// Parses what follows CREATE TABLE, up to a query. An engine's order, partitions and TTL change nothing. `length` is
/// the whole statement's, in tokens.
pub fn create(cursor: &mut TokenCursor<'_>, length: usize) -> Result<CreateTable> {
    let if_exists = cursor.if_not_exists();
    let name = cursor.name()?;
    let mut columns = Vec::new();
    if cursor.token(&Token::LParen) {
        columns = items(cursor)?;
    } else if !cursor.peek().is_some_and(|token| is_word(token, "AS") || is_word(token, "ENGINE")) {
        return Err(cursor.unexpected("columns in parentheses, or AS"));
    }
    let (mut engine, mut storage) = (Engine::default(), Vec::new());
    let (mut rows, mut comment) = (Rows::None, String::new());
    while cursor.peek().is_some() {
        if cursor.take(&["ENGINE"]) {
            engine = engine_behind(cursor)?;
        } else if cursor.take(&["COMMENT"]) {
            comment = cursor.string()?;
        } else if cursor.take(&["AS"]) {
            let begins_query = |token: &Token| {
                *token == Token::LParen || ["SELECT", "WITH"].iter().any(|word| is_word(token, word))
            };
            if cursor.peek().is_some_and(begins_query) {
                rows = Rows::Query { head: cursor.query(length) };
            } else {
                rows = Rows::Like(cursor.name()?);
            }
        } else {
            storage.push(clause(cursor));
        }
    }
    if columns.is_empty() && rows == Rows::None && engine.name == "Dictionary" {
        let what = "CREATE TABLE of ENGINE = Dictionary requires the list of its columns";
        return Err(Error::incorrect_query(what));
    }
    if columns.is_empty() && rows == Rows::None {
        return Err(cursor.unexpected("columns in parentheses, or AS"));
    }
    Ok(CreateTable { name, if_exists, columns, engine, storage, rows, comment })
}

/// The engine after the word ENGINE.
fn engine_behind(cursor: &mut TokenCursor<'_>) -> Result<Engine> {
    cursor.token(&Token::Eq);
    let (name, mut arguments) = (cursor.identifier()?, Vec::new());
    if cursor.token(&Token::LParen) && !cursor.token(&Token::RParen) {
        arguments.push(expression(cursor)?);
        while cursor.comma() {
            arguments.push(expression(cursor)?);
        }
        if !cursor.token(&Token::RParen) {
            return Err(cursor.unexpected("a comma or )"));
        }
    }
    Ok(Engine { name, arguments })
}

/// A storage clause, up to the next one.
fn clause(cursor: &mut TokenCursor<'_>) -> String {
    const BEGINNINGS: &[&str] =
        &["ENGINE", "COMMENT", "AS", "PARTITION", "PRIMARY", "ORDER", "SAMPLE", "TTL", "SETTINGS"];
    let begins = |token: &Token| BEGINNINGS.iter().any(|word| is_word(token, word));
    let (rest, mut depth) = (cursor.rest(), 0usize);
    while let Some(token) = cursor.any() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && cursor.peek().is_some_and(begins) {
            break;
        }
    }
    match cursor.since(rest) {
        // One name needs no parentheses.
        [head @ .., Token::LParen, name @ Token::Word(_), Token::RParen] if matches!(head.last(), Some(last) if is_word(last, "BY") || is_word(last, "KEY")) =>
        {
            format!("{} {}", spelled(head), spelled(std::slice::from_ref(name)))
        }
        tokens => spelled(tokens),
    }
}

/// The columns between the parentheses; other items are skipped.
fn items(cursor: &mut TokenCursor<'_>) -> Result<Vec<ColumnDefinition>> {
    let mut columns = Vec::new();
    loop {
        let is_column =
            !cursor.peek().is_some_and(|token| NOT_COLUMNS.iter().any(|word| is_word(token, word)));
        if is_column {
            let name = cursor.identifier()?;
            let follows = cursor.peek().is_some_and(|token| is_word(token, "DEFAULT"));
            let data_type = if follows { None } else { Some(data_type(cursor)?) };
            let default = if cursor.take(&["DEFAULT"]) { Some(expression(cursor)?) } else { None };
            columns.push(ColumnDefinition { name, data_type, default });
        }
        rest_of_item(cursor)?;
        // A trailing comma is allowed.
        if !cursor.comma() || cursor.peek() == Some(&Token::RParen) {
            break;
        }
    }
    match cursor.token(&Token::RParen) {
        true => Ok(columns),
        false => Err(cursor.unexpected("a comma or )")),
    }
}

/// The text of an expression, up to a word that may follow it in a column.
fn expression(cursor: &mut TokenCursor<'_>) -> Result<String> {
    const ENDS: &[&str] = &["CODEC", "TTL", "COMMENT", "STATISTICS"];
    cursor.expression(|token| {
        matches!(token, Token::RParen | Token::Comma) || ENDS.iter().any(|word| is_word(token, word))
    })
}

/// The text of a type: a word and its parentheses, with blanks between words: `Nested(a UInt8)`.
fn data_type(cursor: &mut TokenCursor<'_>) -> Result<String> {
    let mut text = String::new();
    let (mut depth, mut follows_word) = (0usize, false);
    while let Some(token) = cursor.peek() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => break,
            token if depth == 0 && OPTIONS.iter().any(|word| is_word(token, word)) => break,
            _ => {}
        }
        let is_name = matches!(token, Token::Word(_));
        if follows_word && is_name {
            text.push(' ');
        }
        follows_word = is_name;
        text += &token.to_string();
        cursor.any();
    }
    if text.is_empty() { Err(cursor.unexpected("a type")) } else { Ok(text) }
}

/// Skips a column's options that change nothing; refuses those that would change what is inserted.
fn rest_of_item(cursor: &mut TokenCursor<'_>) -> Result<()> {
    let mut depth = 0usize;
    while let Some(token) = cursor.peek() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => break,
            token
                if ["DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"]
                    .iter()
                    .any(|word| is_word(token, word)) =>
            {
                return Err(Error::not_implemented(format!(
                    "{token} of a table's column is not implemented"
                )));
            }
            _ => {}
        }
        cursor.any();
    }
    Ok(())
}

/// Parses what follows INSERT INTO, up to the query.
pub fn insert(cursor: &mut TokenCursor<'_>) -> Result<InsertInto> {
    cursor.take(&["TABLE"]);
    let name = cursor.name()?;
    let mut columns = None;
    if cursor.token(&Token::LParen) {
        let mut named = vec![cursor.identifier()?];
        while cursor.comma() {
            named.push(cursor.identifier()?);
        }
        if !cursor.token(&Token::RParen) {
            return Err(cursor.unexpected("a comma or )"));
        }
        columns = Some(named);
    }
    if cursor.take(&["SETTINGS"]) {
        cursor.setting()?;
        while cursor.comma() {
            cursor.setting()?;
        }
    }
    Ok(InsertInto { name, columns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::split;

    fn created(text: &str) -> Result<CreateTable> {
        let tokens = &split(text)?[0].tokens;
        create(&mut TokenCursor::new(tokens), tokens.len())
    }

    #[test]
    fn columns_and_engine_are_read() {
        let table = created(
            "IF NOT EXISTS db.t (id UInt64, `a b` Nullable(String) CODEC(ZSTD(1)), c DateTime64(3, 'UTC'), \
             INDEX i (id) TYPE minmax, PRIMARY KEY id) ENGINE = MergeTree() ORDER BY (id) SETTINGS x = 1",
        )
        .unwrap();
        assert_eq!((table.if_exists, table.engine.name.as_str()), (OnConflict::Ignore, "MergeTree"));
        assert_eq!(table.storage, ["ORDER BY id", "SETTINGS x = 1"]);
        let columns: Vec<(&str, &str)> =
            table.columns.iter().map(|c| (c.name.as_str(), c.data_type.as_deref().unwrap())).collect();
        let expected = [("id", "UInt64"), ("a b", "Nullable(String)"), ("c", "DateTime64(3,'UTC')")];
        assert_eq!(columns, expected);
        assert_eq!(created("t (a UInt8)").unwrap().engine, Engine::default());
    }

    #[test]
    fn what_would_change_rows_is_refused() {
        assert_eq!(created("t (a UInt8 MATERIALIZED 5)").unwrap_err().code, 48);
        assert_eq!(created("t (a)").unwrap_err().code, 62);
        assert_eq!(created("t").unwrap_err().code, 62);
    }

    #[test]
    fn defaults_and_queries_are_found() {
        let table = created(
            "t (a UInt8, b String DEFAULT concat('it\\'s ', toString(a)) COMMENT 'c', c UInt8 DEFAULT 1)",
        );
        let defaults: Vec<Option<String>> = table.unwrap().columns.into_iter().map(|c| c.default).collect();
        assert_eq!(defaults[1].as_deref(), Some("concat('it\\'s ', toString(a))"));
        assert_eq!((&defaults[0], defaults[2].as_deref()), (&None, Some("1")));
        let table = created("t (a DEFAULT f(1), b UInt8) ENGINE = Dictionary(concat('a', '.b')) COMMENT 'c'")
            .unwrap();
        assert_eq!(
            (&table.columns[0].data_type, table.columns[1].data_type.as_deref()),
            (&None, Some("UInt8"))
        );
        assert_eq!(table.columns[0].default.as_deref(), Some("f(1)"));
        assert_eq!(
            (table.engine.arguments.as_slice(), table.comment.as_str()),
            (["concat('a', '.b')".to_owned()].as_slice(), "c")
        );
        assert_eq!(created("t ENGINE = Memory AS SELECT 1").unwrap().rows, Rows::Query { head: 5 });
        assert_eq!(created("t AS WITH 1 AS x SELECT x").unwrap().rows, Rows::Query { head: 2 });
        let like = Name { database: Some("db".into()), name: "other".into() };
        assert_eq!(created("t AS db.other").unwrap().rows, Rows::Like(like));
    }
}
