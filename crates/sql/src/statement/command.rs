//! The statements that DataFusion does not know.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::collection::{self, CollectionChange};
use super::keys;
use super::show::{self, ShowNames, Sought};
use super::split::Statement;
use super::table::{self, CreateTable, InsertInto};
use super::view::{self, CreateMaterializedView, CreateView};
use super::words::{Name, Words, is_word};
use crate::catalogue::{Missing, Noun};
use crate::error::{Error, Result};

/// A statement, by who runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// CREATE or REPLACE DICTIONARY; granary-dict reads the text.
    CreateDictionary,
    Drop {
        dropped: Dropped,
        names: Vec<Name>,
        missing: Missing,
        /// What has rows stays.
        if_empty: bool,
    },
    CreateTable(CreateTable),
    CreateView(CreateView),
    CreateMaterializedView(CreateMaterializedView),
    /// ALTER TABLE .. MODIFY QUERY, of a materialized view.
    ModifyQuery {
        name: Name,
        /// Tokens before the query.
        head: usize,
    },
    /// ALTER TABLE .. MODIFY COMMENT.
    Comment {
        name: Name,
        comment: String,
    },
    Insert {
        into: InsertInto,
        /// Tokens before the query that gives the rows.
        head: usize,
    },
    /// INSERT .. FORMAT: the rows are the statement's data.
    InsertData {
        into: InsertInto,
        format: String,
    },
    Truncate {
        name: Name,
        missing: Missing,
    },
    /// OPTIMIZE TABLE, of which a table in RAM needs nothing.
    Optimize {
        name: Name,
    },
    /// Pairs of old and new names.
    Rename {
        noun: Noun,
        names: Vec<(Name, Name)>,
    },
    Exchange {
        noun: Noun,
        one: Name,
        other: Name,
    },
    Detach {
        dropped: Dropped,
        name: Name,
        missing: Missing,
        permanently: bool,
    },
    Attach {
        noun: Noun,
        name: Name,
        exists: Missing,
    },
    UnloadDictionary {
        name: Name,
    },
    UnloadDictionaries,
    Exists {
        sought: Sought,
        name: Name,
    },
    Describe {
        name: Name,
    },
    ShowNames(ShowNames),
    ShowCreate {
        sought: Sought,
        name: Name,
    },
    ReloadDictionary {
        name: Name,
    },
    ReloadDictionaries,
    /// Keys as rows of TabSeparated.
    RefreshDictionary {
        name: Name,
        keys: String,
    },
    InvalidateDictionary {
        name: Name,
        /// `None`: all of them.
        keys: Option<String>,
    },
    Use {
        database: String,
    },
    /// CREATE, ALTER or DROP NAMED COLLECTION.
    Collection {
        name: String,
        change: CollectionChange,
    },
    CreateDatabase {
        name: String,
        exists: Missing,
    },
    DropDatabase {
        name: String,
        missing: Missing,
    },
    RenameDatabase {
        from: String,
        to: String,
        missing: Missing,
    },
    Set {
        settings: Vec<(String, String)>,
    },
    /// EXPLAIN ESTIMATE: of rows that are not in parts, there is nothing to estimate.
    ExplainEstimate {
        /// Tokens before the query.
        head: usize,
    },
    /// Everything else: DataFusion plans it.
    Query,
}

/// What DROP or DETACH is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    Dictionary,
    Table,
    View,
}

/// What a statement does to dictionaries and databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// They stay as they are.
    None,
    /// Entries of the dictionary that it names are forgotten or asked for anew.
    Renewal,
    /// They come or go.
    Change,
}

impl Command {
    /// What it does to dictionaries and databases.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Exists { .. }
            | Self::Describe { .. }
            | Self::ShowNames(_)
            | Self::ShowCreate { .. }
            | Self::Optimize { .. }
            | Self::Use { .. }
            | Self::Set { .. }
            | Self::ExplainEstimate { .. }
            | Self::Query => Effect::None,
            Self::ReloadDictionary { .. }
            | Self::RefreshDictionary { .. }
            | Self::InvalidateDictionary { .. } => Effect::Renewal,
            Self::CreateDictionary
            | Self::CreateTable(_)
            | Self::CreateView(_)
            | Self::CreateMaterializedView(_)
            | Self::ModifyQuery { .. }
            | Self::Comment { .. }
            | Self::Insert { .. }
            | Self::InsertData { .. }
            | Self::Rename { .. }
            | Self::Exchange { .. }
            | Self::Detach { .. }
            | Self::Attach { .. }
            | Self::UnloadDictionary { .. }
            | Self::UnloadDictionaries
            | Self::Truncate { .. }
            | Self::Drop { .. }
            | Self::ReloadDictionaries
            | Self::Collection { .. }
            | Self::CreateDatabase { .. }
            | Self::DropDatabase { .. }
            | Self::RenameDatabase { .. } => Effect::Change,
        }
    }
}

/// Recognises a statement; also the name behind its FORMAT, unless it is a query, which has its own.
pub fn parse(statement: &Statement) -> Result<(Command, Option<String>)> {
    let mut words = Words::new(&statement.tokens);
    let command = recognise(&mut words)?;
    let format = match command {
        Command::Query
        | Command::CreateDictionary
        | Command::CreateTable(_)
        | Command::CreateView(_)
        | Command::CreateMaterializedView(_)
        | Command::ModifyQuery { .. }
        | Command::ExplainEstimate { .. }
        | Command::Insert { .. }
        | Command::InsertData { .. } => None,
        _ => words.format_and_end()?,
    };
    Ok((command, format))
}

/// A named collection, as its CREATE says it.
pub fn parse_collection(statement: &Statement) -> Result<(String, Vec<(String, String)>)> {
    match parse(statement)?.0 {
        Command::Collection { name, change: CollectionChange::Create { values, .. } } => Ok((name, values)),
        _ => Err(Error::syntax_error("This is not a CREATE NAMED COLLECTION")),
    }
}

fn recognise(words: &mut Words) -> Result<Command> {
    let length = words.left();
    if let Some((name, change)) = collection::change(words)? {
        return Ok(Command::Collection { name, change });
    }
    let creates = [
        &["CREATE", "DICTIONARY"][..],
        &["CREATE", "OR", "REPLACE", "DICTIONARY"],
        &["REPLACE", "DICTIONARY"],
    ];
    if creates.iter().any(|start| words.take(start)) {
        return Ok(Command::CreateDictionary);
    }
    if let Some(show) = show::show_names(words)? {
        return Ok(Command::ShowNames(show));
    }
    if let Some((sought, name)) = show::exists(words)? {
        return Ok(Command::Exists { sought, name });
    }
    const DROPS: [(&str, Dropped); 3] =
        [("DICTIONARY", Dropped::Dictionary), ("TABLE", Dropped::Table), ("VIEW", Dropped::View)];
    if let Some((_, dropped)) = DROPS.into_iter().find(|(noun, _)| words.take(&["DROP", noun])) {
        let missing = if_exists(words);
        let if_empty = words.take(&["IF", "EMPTY"]);
        let names = words.names()?;
        at_once(words);
        return Ok(Command::Drop { dropped, names, missing, if_empty });
    }
    if let Some((_, dropped)) = DROPS.into_iter().find(|(noun, _)| words.take(&["DETACH", noun])) {
        let missing = if_exists(words);
        let name = words.name()?;
        let permanently = words.take(&["PERMANENTLY"]);
        at_once(words);
        return Ok(Command::Detach { dropped, name, missing, permanently });
    }
    Ok(if words.take(&["CREATE", "TEMPORARY", "TABLE"]) {
        return Err(Error::not_implemented(
            "Temporary tables are not implemented; CREATE TABLE makes one in RAM, which every session sees",
        ));
    } else if words.take(&["CREATE", "TABLE"]) {
        Command::CreateTable(table::create(words, length)?)
    } else if words.take(&["CREATE", "VIEW"]) {
        Command::CreateView(view::view(words, length, false)?)
    } else if words.take(&["CREATE", "MATERIALIZED", "VIEW"]) {
        Command::CreateMaterializedView(view::materialized_view(words, length)?)
    } else if words.take(&["CREATE", "OR", "REPLACE", "VIEW"]) {
        Command::CreateView(view::view(words, length, true)?)
    } else if words.take(&["INSERT", "INTO"]) {
        let into = table::insert(words)?;
        match words.take(&["FORMAT"]) {
            // FORMAT Values is VALUES.
            true if !words.peek().is_some_and(|token| is_word(token, "VALUES")) => {
                let format = words.identifier()?;
                while words.any().is_some() {}
                Command::InsertData { into, format }
            }
            _ => Command::Insert { into, head: length - words.left() },
        }
    } else if words.take(&["RENAME", "DATABASE"]) {
        let missing = if_exists(words);
        let from = words.identifier()?;
        words.expect("TO")?;
        let to = words.identifier()?;
        words.refuse_cluster()?;
        Command::RenameDatabase { from, to, missing }
    } else if words.take(&["RENAME"]) {
        let noun = noun(words)?;
        let mut names = Vec::new();
        loop {
            let from = words.name()?;
            words.expect("TO")?;
            names.push((from, words.name()?));
            if !words.comma() {
                break;
            }
        }
        Command::Rename { noun, names }
    } else if words.take(&["EXCHANGE"]) {
        let noun = noun(words)?;
        let one = words.name()?;
        words.expect("AND")?;
        Command::Exchange { noun, one, other: words.name()? }
    } else if words.take(&["DETACH"]) {
        return Err(words.unexpected("DICTIONARY, TABLE or VIEW"));
    } else if words.take(&["ATTACH"]) {
        let noun = noun(words)?;
        let exists = if words.take(&["IF", "NOT", "EXISTS"]) { Missing::IsFine } else { Missing::IsError };
        Command::Attach { noun, name: words.name()?, exists }
    } else if words.take(&["ALTER"]) {
        let altered = if words.take(&["TABLE"]) { Some(words.name()?) } else { None };
        match altered {
            Some(name) if words.take(&["MODIFY", "COMMENT"]) => {
                Command::Comment { name, comment: words.string()? }
            }
            Some(name) if words.take(&["MODIFY", "QUERY"]) => {
                let head = length - words.left();
                while words.any().is_some() {}
                Command::ModifyQuery { name, head }
            }
            _ => {
                return Err(Error::not_implemented(
                    "ALTER changes nothing here but comments (MODIFY COMMENT) and materialized views (MODIFY QUERY); CREATE OR REPLACE makes a dictionary anew",
                ));
            }
        }
    } else if words.take(&["SYSTEM", "UNLOAD", "DICTIONARIES"]) {
        Command::UnloadDictionaries
    } else if words.take(&["SYSTEM", "UNLOAD", "DICTIONARY"]) {
        Command::UnloadDictionary { name: words.name()? }
    } else if words.take(&["TRUNCATE"]) {
        words.take(&["TABLE"]);
        let missing = if_exists(words);
        Command::Truncate { name: words.name()?, missing }
    } else if words.take(&["OPTIMIZE", "TABLE"]) {
        let name = words.name()?;
        words.take(&["FINAL"]);
        Command::Optimize { name }
    } else if words.take(&["DESCRIBE"]) || words.take(&["DESC"]) {
        words.take(&["TABLE"]);
        Command::Describe { name: described(words)? }
    } else if words.take(&["SHOW", "CREATE"]) {
        const NOUNS: [(&str, Sought); 3] =
            [("DICTIONARY", Sought::Dictionary), ("VIEW", Sought::View), ("DATABASE", Sought::Database)];
        let noun = NOUNS.into_iter().find(|(noun, _)| words.take(&[noun]));
        let sought = noun.map_or(Sought::Table, |(_, sought)| sought);
        words.take(&["TABLE"]);
        Command::ShowCreate { sought, name: words.name()? }
    } else if words.take(&["SYSTEM", "RELOAD", "DICTIONARIES"]) {
        words.refuse_cluster()?;
        Command::ReloadDictionaries
    } else if words.take(&["SYSTEM", "RELOAD", "DICTIONARY"]) {
        Command::ReloadDictionary { name: words.name()? }
    } else if words.take(&["SYSTEM", "REFRESH", "DICTIONARY"]) {
        let name = words.name()?;
        words.expect("KEYS")?;
        Command::RefreshDictionary { name, keys: keys::read(words)? }
    } else if words.take(&["SYSTEM", "INVALIDATE", "DICTIONARY"]) {
        let name = words.name()?;
        let keys = if words.take(&["KEYS"]) { Some(keys::read(words)?) } else { None };
        Command::InvalidateDictionary { name, keys }
    } else if words.take(&["USE"]) {
        Command::Use { database: words.identifier()? }
    } else if words.take(&["CREATE", "DATABASE"]) {
        let exists = if words.take(&["IF", "NOT", "EXISTS"]) { Missing::IsFine } else { Missing::IsError };
        let name = words.identifier()?;
        words.refuse_cluster()?;
        // There is one kind of database.
        if words.take(&["ENGINE"]) {
            words.token(&Token::Eq);
            words.identifier()?;
            if words.token(&Token::LParen) && !words.token(&Token::RParen) {
                return Err(words.unexpected(")"));
            }
        }
        Command::CreateDatabase { name, exists }
    } else if words.take(&["DROP", "DATABASE"]) {
        let missing = if_exists(words);
        if words.take(&["IF", "EMPTY"]) {
            return Err(Error::not_implemented("DROP IF EMPTY is not implemented for databases"));
        }
        let name = words.identifier()?;
        words.refuse_cluster()?;
        at_once(words);
        Command::DropDatabase { name, missing }
    } else if words.take(&["EXPLAIN", "ESTIMATE"]) {
        let head = length - words.left();
        while words.any().is_some() {}
        Command::ExplainEstimate { head }
    } else if words.take(&["SET"]) {
        let mut settings = vec![words.setting()?];
        while words.comma() {
            settings.push(words.setting()?);
        }
        Command::Set { settings }
    } else {
        Command::Query
    })
}

/// DICTIONARY or TABLE, or several of them.
fn noun(words: &mut Words) -> Result<Noun> {
    if words.take(&["DICTIONARY"]) || words.take(&["DICTIONARIES"]) {
        Ok(Noun::Dictionary)
    } else if words.take(&["TABLE"]) || words.take(&["TABLES"]) {
        Ok(Noun::Table)
    } else {
        Err(words.unexpected("DICTIONARY or TABLE"))
    }
}

/// SYNC or NO DELAY: that is how it is done anyway.
fn at_once(words: &mut Words) {
    let _ = words.take(&["SYNC"]) || words.take(&["NO", "DELAY"]);
}

fn if_exists(words: &mut Words) -> Missing {
    if words.take(&["IF", "EXISTS"]) { Missing::IsFine } else { Missing::IsError }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Listed, split};

    fn command(text: &str) -> Result<(Command, Option<String>)> {
        parse(&split(text)?[0])
    }

    fn name(database: Option<&str>, name: &str) -> Name {
        Name { database: database.map(str::to_owned), name: name.to_owned() }
    }

    #[test]
    fn statements_are_recognised_in_any_case() {
        let names = vec![name(Some("db"), "d 1"), name(None, "e")];
        let (dropped, missing) = (Dropped::Dictionary, Missing::IsFine);
        let drop = Command::Drop { dropped, names, missing, if_empty: false };
        assert_eq!(command("drop dictionary if exists db.`d 1`, e no delay").unwrap(), (drop, None));
        let reload = Command::ReloadDictionary { name: name(Some("db"), "d") };
        assert_eq!(command("SYSTEM RELOAD DICTIONARY 'db.d'").unwrap(), (reload, None));
        let show = |condition: &str, limit: Option<&str>| {
            Command::ShowNames(ShowNames {
                listed: Listed::Dictionaries,
                database: Some("db".into()),
                condition: Some(condition.into()),
                limit: limit.map(str::to_owned),
            })
        };
        assert_eq!(
            command("SHOW DICTIONARIES FROM db NOT ILIKE 'a%' FORMAT CSV").unwrap(),
            (show("name NOT ILIKE 'a%'", None), Some("CSV".into()))
        );
        assert_eq!(
            command("SHOW DICTIONARIES FROM db WHERE f(name) = 'a' LIMIT 1 + 1").unwrap(),
            (show("f(name) = 'a'", Some("1 + 1")), None)
        );
        assert_eq!(command("/* x */ Replace Dictionary d (id UInt64)").unwrap().0, Command::CreateDictionary);
        assert_eq!(command("SELECT 1 FORMAT CSV").unwrap(), (Command::Query, None));
    }

    #[test]
    fn what_is_left_over_is_an_error() {
        let error = command("DROP DICTIONARY d e").unwrap_err();
        assert_eq!((error.code, error.message.contains("found e")), (62, true));
        assert_eq!(command("USE").unwrap_err().code, 62);
        assert_eq!(command("SHOW TABLES NOT 'a'").unwrap_err().code, 62);
    }

    #[test]
    fn there_are_no_clusters() {
        for text in [
            "DROP DICTIONARY d ON CLUSTER c",
            "SYSTEM RELOAD DICTIONARY ON CLUSTER 'c' d",
            "SYSTEM RELOAD DICTIONARIES ON CLUSTER c",
            "CREATE DATABASE d ON CLUSTER c",
            "RENAME TABLE a TO b ON CLUSTER c",
            "RENAME DATABASE a TO b ON CLUSTER c",
        ] {
            let error = command(text).unwrap_err();
            assert_eq!((error.code, error.message.contains("'c' not found")), (701, true), "{text}");
        }
    }
}
