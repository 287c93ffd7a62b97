//! Statements that only a table store has.

use super::command::Command;
use super::token_cursor::TokenCursor;
use crate::error::{Error, Result};

/// Refused statements: their first words, and the error message.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["CREATE", "TEMPORARY", "TABLE"],
        "Granary has no temporary tables; CREATE TABLE makes one in RAM, which every session sees",
    ),
    (
        &["CREATE", "MATERIALIZED", "VIEW"],
        "Granary has no materialized views; CREATE VIEW makes one that is read when it is named, and a dictionary \
         keeps rows of its source",
    ),
    (
        &["RENAME", "DATABASE"],
        "Granary renames no databases; RENAME DICTIONARY moves a dictionary to another one",
    ),
    (&["DETACH", "TABLE"], DETACHED),
    (&["DETACH", "VIEW"], DETACHED),
    (&["ATTACH", "TABLE"], DETACHED),
    (&["ATTACH", "VIEW"], DETACHED),
];

/// Refused statements whose first words others share that are known: they are tried last.
const UNKNOWN: &[(&[&str], &str)] = &[
    (
        &["SHOW"],
        "SHOW knows DATABASES, TABLES, DICTIONARIES and CREATE here; columns are in system.columns (or DESCRIBE), settings \
         in system.settings",
    ),
    (
        &["SYSTEM"],
        "SYSTEM knows RELOAD, UNLOAD, REFRESH .. KEYS and INVALIDATE [.. KEYS] DICTIONARY name, RELOAD DICTIONARIES and \
         UNLOAD DICTIONARIES here",
    ),
    (&["KILL"], "No query is killed here: one ends with its connection, and by max_execution_time"),
    (&["DELETE"], "Rows are not deleted here: TRUNCATE TABLE empties a table"),
    (&["UPDATE"], "Rows are not updated here: a table is emptied by TRUNCATE TABLE, and filled anew"),
    (&["CREATE", "INDEX"], "Tables have no indexes here"),
];

const DETACHED: &str =
    "Granary detaches and attaches dictionaries, not tables and views, which end with the process";

/// # Errors
/// NOT_IMPLEMENTED if the statement is one of them.
pub fn read(cursor: &mut TokenCursor<'_>, _length: usize) -> Result<Option<Command>> {
    refused(cursor, REFUSED)
}

/// Like [`read`], after all known statements.
///
/// # Errors
/// NOT_IMPLEMENTED if the statement is one of them.
pub fn unknown(cursor: &mut TokenCursor<'_>, _length: usize) -> Result<Option<Command>> {
    refused(cursor, UNKNOWN)
}

fn refused(cursor: &mut TokenCursor<'_>, statements: &[(&[&str], &str)]) -> Result<Option<Command>> {
    match statements.iter().find(|(start, _)| cursor.take(start)) {
        Some((_, why)) => Err(Error::not_implemented(*why)),
        None => Ok(None),
    }
}
