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
    /// None if they follow from what `rows` says.
    pub columns: Vec<Column>,
    /// `Memory` if it does not say.
    pub engine: String,
    /// Of the engine Dictionary, the expression that names the dictionary.
    pub dictionary: Option<String>,
    pub rows: Rows,
    pub comment: String,
}

/// CREATE VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateView {
    pub name: Name,
    pub exists: Missing,
    pub replaces: bool,
    /// Tokens before its query.
    pub head: usize,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// ClickHouse's; `None`: that of its DEFAULT.
    pub data_type: Option<String>,
    /// The expression behind DEFAULT.
    pub default: Option<String>,
}

/// AS, behind CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// None.
    None,
    /// Those of a query, which begins behind so many tokens of the statement.
    Query { head: usize },
    /// None, but the columns of another table.
    Like(Name),
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

/// What follows CREATE TABLE, up to a query. What an engine is told of order, partitions and time to live changes
/// nothing. `length` is that of the whole statement in tokens.
pub fn create(words: &mut Words<'_>, length: usize) -> Result<CreateTable> {
    let exists = if words.take(&["IF", "NOT", "EXISTS"]) { Missing::IsFine } else { Missing::IsError };
    let name = words.name()?;
    let mut columns = Vec::new();
    if words.token(&Token::LParen) {
        columns = items(words)?;
    } else if !words.peek().is_some_and(|token| is_word(token, "AS") || is_word(token, "ENGINE")) {
        return Err(words.unexpected("columns in parentheses, or AS"));
    }
    let (mut engine, mut dictionary, mut rows, mut comment) = (None, None, Rows::None, String::new());
    while let Some(token) = words.any() {
        if is_word(token, "ENGINE") {
            words.token(&Token::Eq);
            let name = words.identifier()?;
            if name == "Dictionary" {
                if !words.token(&Token::LParen) {
                    return Err(words.unexpected("the name of a dictionary in parentheses"));
                }
                dictionary = Some(expression(words)?);
            }
            engine = Some(name);
        } else if is_word(token, "COMMENT") {
            comment = words.string()?;
        } else if is_word(token, "AS") {
            let begins_query = |token: &Token| {
                *token == Token::LParen || ["SELECT", "WITH"].iter().any(|word| is_word(token, word))
            };
            if words.peek().is_some_and(begins_query) {
                rows = Rows::Query { head: length - words.left() };
                while words.any().is_some() {}
            } else {
                rows = Rows::Like(words.name()?);
            }
        }
    }
    if columns.is_empty() && rows == Rows::None && dictionary.is_none() {
        return Err(words.unexpected("columns in parentheses, or AS"));
    }
    let engine = engine.unwrap_or_else(|| "Memory".to_owned());
    Ok(CreateTable { name, exists, columns, engine, dictionary, rows, comment })
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

/// Columns, and what else stands between the parentheses.
fn items(words: &mut Words<'_>) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    loop {
        let is_column =
            !words.peek().is_some_and(|token| NOT_COLUMNS.iter().any(|word| is_word(token, word)));
        if is_column {
            let name = words.identifier()?;
            let follows = words.peek().is_some_and(|token| is_word(token, "DEFAULT"));
            let data_type = if follows { None } else { Some(data_type(words)?) };
            let default = if words.take(&["DEFAULT"]) { Some(expression(words)?) } else { None };
            columns.push(Column { name, data_type, default });
        }
        rest_of_item(words)?;
        // A comma may stand behind the last one, too.
        if !words.comma() || words.peek() == Some(&Token::RParen) {
            break;
        }
    }
    match words.token(&Token::RParen) {
        true => Ok(columns),
        false => Err(words.unexpected("a comma or )")),
    }
}

/// The text of an expression, up to what may stand behind one among columns.
fn expression(words: &mut Words<'_>) -> Result<String> {
    const ENDS: &[&str] = &["CODEC", "TTL", "COMMENT", "STATISTICS"];
    let mut texts = Vec::new();
    let mut depth = 0usize;
    while let Some(token) = words.peek() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => break,
            token if depth == 0 && ENDS.iter().any(|word| is_word(token, word)) => break,
            _ => {}
        }
        texts.push(match token {
            Token::SingleQuotedString(text) => {
                format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
            }
            token => token.to_string(),
        });
        words.any();
    }
    if texts.is_empty() { Err(words.unexpected("an expression")) } else { Ok(texts.join(" ")) }
}

/// The text of a type: a word, and what stands in parentheses behind it, with blanks between words: `Nested(a UInt8)`.
fn data_type(words: &mut Words<'_>) -> Result<String> {
    let mut text = String::new();
    let (mut depth, mut follows_word) = (0usize, false);
    while let Some(token) = words.peek() {
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
    if words.take(&["SETTINGS"]) {
        words.setting()?;
        while words.comma() {
            words.setting()?;
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
        create(&mut Words::new(tokens), tokens.len())
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
            table.columns.iter().map(|c| (c.name.as_str(), c.data_type.as_deref().unwrap())).collect();
        let expected = [("id", "UInt64"), ("a b", "Nullable(String)"), ("c", "DateTime64(3,'UTC')")];
        assert_eq!(columns, expected);
        assert_eq!(created("t (a UInt8)").unwrap().engine, "Memory");
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
        assert_eq!(defaults[1].as_deref(), Some("concat ( 'it\\'s ' , toString ( a ) )"));
        assert_eq!((&defaults[0], defaults[2].as_deref()), (&None, Some("1")));
        let table = created("t (a DEFAULT f(1), b UInt8) ENGINE = Dictionary(concat('a', '.b')) COMMENT 'c'")
            .unwrap();
        assert_eq!(
            (&table.columns[0].data_type, table.columns[1].data_type.as_deref()),
            (&None, Some("UInt8"))
        );
        assert_eq!(table.columns[0].default.as_deref(), Some("f ( 1 )"));
        assert_eq!(
            (table.dictionary.as_deref(), table.comment.as_str()),
            (Some("concat ( 'a' , '.b' )"), "c")
        );
        assert_eq!(created("t ENGINE = Memory AS SELECT 1").unwrap().rows, Rows::Query { head: 5 });
        assert_eq!(created("t AS WITH 1 AS x SELECT x").unwrap().rows, Rows::Query { head: 2 });
        let like = Name { database: Some("db".into()), name: "other".into() };
        assert_eq!(created("t AS db.other").unwrap().rows, Rows::Like(like));
    }
}
