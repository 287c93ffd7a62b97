//! SHOW, EXISTS and DESCRIBE.

use datafusion::sql::sqlparser::tokenizer::Token;
use granary_dict::quote;

use super::command::Command;
use super::token_cursor::{Name, TokenCursor, is_word};
use crate::error::{Error, Result};

/// SHOW DICTIONARIES, TABLES or DATABASES.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShowNames {
    /// The kind of objects listed.
    pub listed: Listing,
    /// The database to list; `None`: the current one.
    pub database: Option<String>,
    /// Condition on the rows of the table in `system`, in SQL.
    pub condition: Option<String>,
    /// Maximum number of names, in SQL.
    pub limit: Option<String>,
}

/// What SHOW lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// SHOW DICTIONARIES.
    Dictionaries,
    /// SHOW TABLES.
    Tables,
    /// SHOW DATABASES.
    Databases,
}

/// The kind of object that EXISTS names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// Anything that can be read as a table.
    Table,
    /// A dictionary.
    Dictionary,
    /// A view.
    View,
    /// A database.
    Database,
    /// A temporary table, of which there are none.
    Temporary,
}

/// Reads one of these statements.
pub fn read(cursor: &mut TokenCursor<'_>, _length: usize) -> Result<Option<Command>> {
    if let Some(names) = show_names(cursor)? {
        return Ok(Some(Command::ShowNames(names)));
    }
    if let Some((kind, name)) = exists(cursor)? {
        return Ok(Some(Command::Exists { kind, name }));
    }
    Ok(Some(if cursor.take(&["DESCRIBE"]) || cursor.take(&["DESC"]) {
        cursor.take(&["TABLE"]);
        Command::Describe(described(cursor)?)
    } else if cursor.take(&["SHOW", "CREATE"]) {
        const NOUNS: [(&str, ObjectKind); 3] = [
            ("DICTIONARY", ObjectKind::Dictionary),
            ("VIEW", ObjectKind::View),
            ("DATABASE", ObjectKind::Database),
        ];
        let noun = NOUNS.into_iter().find(|(noun, _)| cursor.take(&[noun]));
        let kind = noun.map_or(ObjectKind::Table, |(_, kind)| kind);
        cursor.take(&["TABLE"]);
        Command::ShowCreate { kind, name: cursor.name()? }
    } else {
        return Ok(None);
    }))
}

/// `d`, `dictionary(d)` or `dictionary('d')`.
fn described(cursor: &mut TokenCursor<'_>) -> Result<Name> {
    if !matches!(cursor.rest(), [word, Token::LParen, ..] if is_word(word, "dictionary")) {
        return cursor.name();
    }
    cursor.take(&["dictionary"]);
    cursor.token(&Token::LParen);
    let name = cursor.name()?;
    match cursor.token(&Token::RParen) {
        true => Ok(name),
        false => Err(cursor.unexpected("')'")),
    }
}

/// SHOW .. [FROM database] [[NOT] LIKE | ILIKE 'pattern' | WHERE condition] [LIMIT n].
fn show_names(cursor: &mut TokenCursor<'_>) -> Result<Option<ShowNames>> {
    const NOUNS: [(&str, Listing); 3] = [
        ("DICTIONARIES", Listing::Dictionaries),
        ("TABLES", Listing::Tables),
        ("DATABASES", Listing::Databases),
    ];
    let Some((_, listed)) = NOUNS.into_iter().find(|(noun, _)| cursor.take(&["SHOW", noun])) else {
        return Ok(None);
    };
    let has_database = listed != Listing::Databases && (cursor.take(&["FROM"]) || cursor.take(&["IN"]));
    let database = if has_database { Some(cursor.identifier()?) } else { None };
    let not = if cursor.take(&["NOT"]) { "NOT " } else { "" };
    let like = ["LIKE", "ILIKE"].into_iter().find(|like| cursor.take(&[like]));
    let condition = match like {
        Some(like) => Some(format!("name {not}{like} {}", quote(&cursor.string()?))),
        None if !not.is_empty() => return Err(cursor.unexpected("LIKE or ILIKE")),
        None if listed != Listing::Databases && cursor.take(&["WHERE"]) => {
            Some(expression(cursor, &["LIMIT", "FORMAT"])?)
        }
        None => None,
    };
    let limit = if cursor.take(&["LIMIT"]) { Some(expression(cursor, &["FORMAT"])?) } else { None };
    Ok(Some(ShowNames { listed, database, condition, limit }))
}

/// EXISTS [DICTIONARY | TABLE | VIEW | DATABASE | TEMPORARY [TABLE | VIEW]] name.
fn exists(cursor: &mut TokenCursor<'_>) -> Result<Option<(ObjectKind, Name)>> {
    const NOUNS: [(&str, ObjectKind); 4] = [
        ("DICTIONARY", ObjectKind::Dictionary),
        ("TABLE", ObjectKind::Table),
        ("VIEW", ObjectKind::View),
        ("DATABASE", ObjectKind::Database),
    ];
    if !cursor.take(&["EXISTS"]) {
        return Ok(None);
    }
    if cursor.take(&["TEMPORARY"]) {
        if cursor.peek().is_some_and(|token| is_word(token, "DICTIONARY")) {
            return Err(Error::syntax_error("Temporary dictionaries are not possible"));
        }
        let _ = cursor.take(&["TABLE"]) || cursor.take(&["VIEW"]);
        return Ok(Some((ObjectKind::Temporary, cursor.name()?)));
    }
    let noun = NOUNS.into_iter().find(|(noun, _)| cursor.take(&[noun]));
    Ok(Some((noun.map_or(ObjectKind::Table, |(_, kind)| kind), cursor.name()?)))
}

/// The text of an expression, up to one of these words outside of parentheses.
fn expression(cursor: &mut TokenCursor<'_>, ends: &[&str]) -> Result<String> {
    cursor.expression(|token| ends.iter().any(|word| is_word(token, word)))
}
