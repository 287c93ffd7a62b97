//! Recognises the statements that DataFusion does not have.

use super::collection::{self, CollectionChange};
use super::command::Command;
use super::split::Statement;
use super::token_cursor::TokenCursor;
use super::{create, named, show, system, table_store_statements};
use crate::error::{Error, Result};

/// Reads a statement if it begins with certain words; `length` is the whole statement's, in tokens.
type Reader = fn(&mut TokenCursor<'_>, length: usize) -> Result<Option<Command>>;

/// The first reader that knows a statement reads it.
const READERS: [Reader; 8] = [
    table_store_statements::read,
    collection::read,
    create::read,
    show::read,
    named::read,
    system::read,
    others,
    table_store_statements::unknown,
];

/// Recognises a statement; also returns the name after its FORMAT, unless it is a query, which keeps its own.
pub fn parse(statement: &Statement) -> Result<(Command, Option<String>)> {
    let mut cursor = TokenCursor::new(&statement.tokens);
    let command = recognise(&mut cursor)?;
    let format = match command {
        Command::Query
        | Command::CreateDictionary
        | Command::CreateTable(_)
        | Command::CreateView(_)
        | Command::ExplainEstimate { .. }
        | Command::Insert { .. }
        | Command::InsertData { .. } => None,
        _ => cursor.format_and_end()?,
    };
    Ok((command, format))
}

/// A named collection, from its CREATE.
pub fn parse_collection(statement: &Statement) -> Result<(String, Vec<(String, String)>)> {
    match parse(statement)?.0 {
        Command::Collection { name, change: CollectionChange::Create { values, .. } } => Ok((name, values)),
        _ => Err(Error::syntax_error("This is not a CREATE NAMED COLLECTION")),
    }
}

fn recognise(cursor: &mut TokenCursor<'_>) -> Result<Command> {
    let length = cursor.left();
    for read in READERS {
        if let Some(command) = read(cursor, length)? {
            return Ok(command);
        }
    }
    Ok(Command::Query)
}

/// What ClickHouse explains beside a plan.
const EXPLAINED: [&[&str]; 7] = [
    &["EXPLAIN", "AST"],
    &["EXPLAIN", "SYNTAX"],
    &["EXPLAIN", "QUERY", "TREE"],
    &["EXPLAIN", "PLAN"],
    &["EXPLAIN", "PIPELINE"],
    &["EXPLAIN", "TABLE", "OVERRIDE"],
    &["EXPLAIN", "CURRENT", "TRANSACTION"],
];

fn others(cursor: &mut TokenCursor<'_>, length: usize) -> Result<Option<Command>> {
    Ok(Some(if cursor.take(&["USE"]) {
        Command::Use(cursor.identifier()?)
    } else if cursor.take(&["SET"]) {
        let mut settings = vec![cursor.setting()?];
        while cursor.comma() {
            settings.push(cursor.setting()?);
        }
        Command::Set(settings)
    } else if cursor.take(&["EXPLAIN", "ESTIMATE"]) {
        Command::ExplainEstimate { head: cursor.query(length) }
    } else if EXPLAINED.iter().any(|kind| cursor.take(kind)) {
        return Err(Error::not_implemented(
            "Granary explains a query by its own plan only: EXPLAIN SELECT ..",
        ));
    } else {
        return Ok(None);
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Dropped, Listing, Name, OnConflict, ShowNames, split};

    fn command(text: &str) -> Result<(Command, Option<String>)> {
        parse(&split(text)?[0])
    }

    fn name(database: Option<&str>, name: &str) -> Name {
        Name { database: database.map(str::to_owned), name: name.to_owned() }
    }

    #[test]
    fn statements_are_recognised_in_any_case() {
        let names = vec![name(Some("db"), "d 1"), name(None, "e")];
        let (dropped, if_missing) = (Dropped::Dictionary, OnConflict::Ignore);
        let drop = Command::Drop { dropped, names, if_missing, if_empty: false };
        assert_eq!(command("drop dictionary if exists db.`d 1`, e no delay").unwrap(), (drop, None));
        let reload = Command::ReloadDictionary(name(Some("db"), "d"));
        assert_eq!(command("SYSTEM RELOAD DICTIONARY 'db.d'").unwrap(), (reload, None));
        let show = |condition: &str, limit: Option<&str>| {
            Command::ShowNames(ShowNames {
                listed: Listing::Dictionaries,
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
        ] {
            let error = command(text).unwrap_err();
            assert_eq!((error.code, error.message.contains("'c' not found")), (701, true), "{text}");
        }
    }

    /// Statements that only a table store has are refused by name.
    #[test]
    fn there_is_no_store_of_tables() {
        for text in [
            "CREATE MATERIALIZED VIEW v ENGINE = Memory AS SELECT 1",
            "CREATE MATERIALIZED VIEW IF NOT EXISTS v TO t AS SELECT 1",
            "CREATE TEMPORARY TABLE t (a UInt8)",
            "RENAME DATABASE a TO b",
            "RENAME DATABASE IF EXISTS a TO b ON CLUSTER c",
            "DETACH TABLE t",
            "DETACH TABLE IF EXISTS t PERMANENTLY",
            "DETACH VIEW v",
            "ATTACH TABLE t",
            "attach view v",
            "ALTER TABLE v MODIFY QUERY SELECT 1",
            "ALTER TABLE t ADD COLUMN a UInt8",
        ] {
            let error = command(text).unwrap_err();
            assert_eq!((error.code, error.message.starts_with("Granary ")), (48, true), "{text}: {error}");
        }
    }
}
