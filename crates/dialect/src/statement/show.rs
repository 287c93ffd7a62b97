//! SHOW, EXISTS and DESCRIBE.

use datafusion::sql::sqlparser::tokenizer::Token;
use granary_dict::quote;

use super::command::Command;
use super::words::{Name, Words, is_word};
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
pub fn read(words: &mut Words<'_>, _length: usize) -> Result<Option<Command>> {
    if let Some(names) = show_names(words)? {
        return Ok(Some(Command::ShowNames(names)));
    }
    if let Some((kind, name)) = exists(words)? {
        return Ok(Some(Command::Exists { kind, name }));
    }
    Ok(Some(if words.take(&["DESCRIBE"]) || words.take(&["DESC"]) {
        words.take(&["TABLE"]);
        Command::Describe(described(words)?)
    } else if words.take(&["SHOW", "CREATE"]) {
        const NOUNS: [(&str, ObjectKind); 3] = [
            ("DICTIONARY", ObjectKind::Dictionary),
            ("VIEW", ObjectKind::View),
            ("DATABASE", ObjectKind::Database),
        ];
        let noun = NOUNS.into_iter().find(|(noun, _)| words.take(&[noun]));
        let kind = noun.map_or(ObjectKind::Table, |(_, kind)| kind);
        words.take(&["TABLE"]);
        Command::ShowCreate { kind, name: words.name()? }
    } else {
        return Ok(None);
    }))
}

/// `d`, `dictionary(d)` or `dictionary('d')`.
fn described(words: &mut Words<'_>) -> Result<Name> {
    if !matches!(words.rest(), [word, Token::LParen, ..] if is_word(word, "dictionary")) {
        return words.name();
    }
    words.take(&["dictionary"]);
    words.token(&Token::LParen);
    let name = words.name()?;
    match words.token(&Token::RParen) {
        true => Ok(name),
        false => Err(words.unexpected("')'")),
    }
}

/// SHOW .. [FROM database] [[NOT] LIKE | ILIKE 'pattern' | WHERE condition] [LIMIT n].
fn show_names(words: &mut Words<'_>) -> Result<Option<ShowNames>> {
    const NOUNS: [(&str, Listing); 3] = [
        ("DICTIONARIES", Listing::Dictionaries),
        ("TABLES", Listing::Tables),
        ("DATABASES", Listing::Databases),
    ];
    let Some((_, listed)) = NOUNS.into_iter().find(|(noun, _)| words.take(&["SHOW", noun])) else {
        return Ok(None);
    };
    let has_database = listed != Listing::Databases && (words.take(&["FROM"]) || words.take(&["IN"]));
    let database = if has_database { Some(words.identifier()?) } else { None };
    let not = if words.take(&["NOT"]) { "NOT " } else { "" };
    let like = ["LIKE", "ILIKE"].into_iter().find(|like| words.take(&[like]));
    let condition = match like {
        Some(like) => Some(format!("name {not}{like} {}", quote(&words.string()?))),
        None if !not.is_empty() => return Err(words.unexpected("LIKE or ILIKE")),
        None if listed != Listing::Databases && words.take(&["WHERE"]) => {
            Some(expression(words, &["LIMIT", "FORMAT"])?)
        }
        None => None,
    };
    let limit = if words.take(&["LIMIT"]) { Some(expression(words, &["FORMAT"])?) } else { None };
    Ok(Some(ShowNames { listed, database, condition, limit }))
}

/// EXISTS [DICTIONARY | TABLE | VIEW | DATABASE | TEMPORARY [TABLE | VIEW]] name.
fn exists(words: &mut Words<'_>) -> Result<Option<(ObjectKind, Name)>> {
    const NOUNS: [(&str, ObjectKind); 4] = [
        ("DICTIONARY", ObjectKind::Dictionary),
        ("TABLE", ObjectKind::Table),
        ("VIEW", ObjectKind::View),
        ("DATABASE", ObjectKind::Database),
    ];
    if !words.take(&["EXISTS"]) {
        return Ok(None);
    }
    if words.take(&["TEMPORARY"]) {
        if words.peek().is_some_and(|token| is_word(token, "DICTIONARY")) {
            return Err(Error::syntax_error("Temporary dictionaries are not possible"));
        }
        let _ = words.take(&["TABLE"]) || words.take(&["VIEW"]);
        return Ok(Some((ObjectKind::Temporary, words.name()?)));
    }
    let noun = NOUNS.into_iter().find(|(noun, _)| words.take(&[noun]));
    Ok(Some((noun.map_or(ObjectKind::Table, |(_, kind)| kind), words.name()?)))
}

/// The text of an expression, up to one of these words outside of parentheses.
fn expression(words: &mut Words<'_>, ends: &[&str]) -> Result<String> {
    words.expression(|token| ends.iter().any(|word| is_word(token, word)))
}
