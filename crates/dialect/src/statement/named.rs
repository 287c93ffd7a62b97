//! Statements about a named object: drop, rename, exchange, detach, attach, comment and the like.

use super::command::{Command, Dropped, Noun};
use super::token_cursor::{Name, TokenCursor};
use crate::error::{Error, Result};

/// The word after DROP, and the kind that it names.
const DROPS: [(&str, Dropped); 3] =
    [("DICTIONARY", Dropped::Dictionary), ("TABLE", Dropped::Table), ("VIEW", Dropped::View)];

/// Reads one of these statements.
pub fn read(cursor: &mut TokenCursor<'_>, _length: usize) -> Result<Option<Command>> {
    if let Some((_, dropped)) = DROPS.into_iter().find(|(noun, _)| cursor.take(&["DROP", noun])) {
        let if_missing = cursor.if_exists();
        let if_empty = cursor.take(&["IF", "EMPTY"]);
        let names = cursor.names()?;
        at_once(cursor);
        return Ok(Some(Command::Drop { dropped, names, if_missing, if_empty }));
    }
    Ok(Some(if cursor.take(&["DROP", "DATABASE"]) {
        drop_database(cursor)?
    } else if cursor.take(&["DETACH", "DICTIONARY"]) {
        let if_missing = cursor.if_exists();
        let name = cursor.name()?;
        let permanently = cursor.take(&["PERMANENTLY"]);
        at_once(cursor);
        Command::DetachDictionary { name, if_missing, permanently }
    } else if cursor.take(&["ATTACH", "DICTIONARY"]) {
        let if_exists = cursor.if_not_exists();
        Command::AttachDictionary { name: cursor.name()?, if_exists }
    } else if cursor.take(&["DETACH"]) || cursor.take(&["ATTACH"]) {
        return Err(cursor.unexpected("DICTIONARY"));
    } else if cursor.take(&["RENAME"]) {
        Command::Rename { noun: noun(cursor)?, names: renamed(cursor)? }
    } else if cursor.take(&["EXCHANGE"]) {
        let noun = noun(cursor)?;
        let one = cursor.name()?;
        cursor.expect("AND")?;
        Command::Exchange { noun, one, other: cursor.name()? }
    } else if cursor.take(&["ALTER"]) {
        alter(cursor)?
    } else if cursor.take(&["TRUNCATE"]) {
        cursor.take(&["TABLE"]);
        let if_missing = cursor.if_exists();
        Command::Truncate { name: cursor.name()?, if_missing }
    } else if cursor.take(&["OPTIMIZE", "TABLE"]) {
        let name = cursor.name()?;
        cursor.take(&["FINAL"]);
        Command::Optimize(name)
    } else {
        return Ok(None);
    }))
}

fn drop_database(cursor: &mut TokenCursor<'_>) -> Result<Command> {
    let if_missing = cursor.if_exists();
    if cursor.take(&["IF", "EMPTY"]) {
        return Err(Error::not_implemented("DROP IF EMPTY is not implemented for databases"));
    }
    let name = cursor.identifier()?;
    cursor.refuse_cluster()?;
    at_once(cursor);
    Ok(Command::DropDatabase { name, if_missing })
}

/// `a TO b, ..`
fn renamed(cursor: &mut TokenCursor<'_>) -> Result<Vec<(Name, Name)>> {
    let mut names = Vec::new();
    loop {
        let from = cursor.name()?;
        cursor.expect("TO")?;
        names.push((from, cursor.name()?));
        if !cursor.comma() {
            return Ok(names);
        }
    }
}

fn alter(cursor: &mut TokenCursor<'_>) -> Result<Command> {
    let altered = if cursor.take(&["TABLE"]) { Some(cursor.name()?) } else { None };
    match altered {
        Some(name) if cursor.take(&["MODIFY", "COMMENT"]) => {
            Ok(Command::Comment { name, comment: cursor.string()? })
        }
        _ => Err(Error::not_implemented(
            "Granary alters nothing but comments (MODIFY COMMENT); CREATE OR REPLACE makes a dictionary or a view anew",
        )),
    }
}

/// DICTIONARY or TABLE, or their plurals.
fn noun(cursor: &mut TokenCursor<'_>) -> Result<Noun> {
    if cursor.take(&["DICTIONARY"]) || cursor.take(&["DICTIONARIES"]) {
        Ok(Noun::Dictionary)
    } else if cursor.take(&["TABLE"]) || cursor.take(&["TABLES"]) {
        Ok(Noun::Table)
    } else {
        Err(cursor.unexpected("DICTIONARY or TABLE"))
    }
}

/// SYNC or NO DELAY, which is the only behaviour here.
fn at_once(cursor: &mut TokenCursor<'_>) {
    let _ = cursor.take(&["SYNC"]) || cursor.take(&["NO", "DELAY"]);
}
