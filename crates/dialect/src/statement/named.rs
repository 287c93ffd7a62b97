//! Statements about a named object: drop, rename, exchange, detach, attach, comment and the like.

use super::command::{Command, Dropped, Noun};
use super::words::{Name, Words};
use crate::error::{Error, Result};

/// The word after DROP, and the kind that it names.
const DROPS: [(&str, Dropped); 3] =
    [("DICTIONARY", Dropped::Dictionary), ("TABLE", Dropped::Table), ("VIEW", Dropped::View)];

/// Reads one of these statements.
pub fn read(words: &mut Words<'_>, _length: usize) -> Result<Option<Command>> {
    if let Some((_, dropped)) = DROPS.into_iter().find(|(noun, _)| words.take(&["DROP", noun])) {
        let if_missing = words.if_exists();
        let if_empty = words.take(&["IF", "EMPTY"]);
        let names = words.names()?;
        at_once(words);
        return Ok(Some(Command::Drop { dropped, names, if_missing, if_empty }));
    }
    Ok(Some(if words.take(&["DROP", "DATABASE"]) {
        drop_database(words)?
    } else if words.take(&["DETACH", "DICTIONARY"]) {
        let if_missing = words.if_exists();
        let name = words.name()?;
        let permanently = words.take(&["PERMANENTLY"]);
        at_once(words);
        Command::DetachDictionary { name, if_missing, permanently }
    } else if words.take(&["ATTACH", "DICTIONARY"]) {
        let if_exists = words.if_not_exists();
        Command::AttachDictionary { name: words.name()?, if_exists }
    } else if words.take(&["DETACH"]) || words.take(&["ATTACH"]) {
        return Err(words.unexpected("DICTIONARY"));
    } else if words.take(&["RENAME"]) {
        Command::Rename { noun: noun(words)?, names: renamed(words)? }
    } else if words.take(&["EXCHANGE"]) {
        let noun = noun(words)?;
        let one = words.name()?;
        words.expect("AND")?;
        Command::Exchange { noun, one, other: words.name()? }
    } else if words.take(&["ALTER"]) {
        alter(words)?
    } else if words.take(&["TRUNCATE"]) {
        words.take(&["TABLE"]);
        let if_missing = words.if_exists();
        Command::Truncate { name: words.name()?, if_missing }
    } else if words.take(&["OPTIMIZE", "TABLE"]) {
        let name = words.name()?;
        words.take(&["FINAL"]);
        Command::Optimize(name)
    } else {
        return Ok(None);
    }))
}

fn drop_database(words: &mut Words<'_>) -> Result<Command> {
    let if_missing = words.if_exists();
    if words.take(&["IF", "EMPTY"]) {
        return Err(Error::not_implemented("DROP IF EMPTY is not implemented for databases"));
    }
    let name = words.identifier()?;
    words.refuse_cluster()?;
    at_once(words);
    Ok(Command::DropDatabase { name, if_missing })
}

/// `a TO b, ..`
fn renamed(words: &mut Words<'_>) -> Result<Vec<(Name, Name)>> {
    let mut names = Vec::new();
    loop {
        let from = words.name()?;
        words.expect("TO")?;
        names.push((from, words.name()?));
        if !words.comma() {
            return Ok(names);
        }
    }
}

fn alter(words: &mut Words<'_>) -> Result<Command> {
    let altered = if words.take(&["TABLE"]) { Some(words.name()?) } else { None };
    match altered {
        Some(name) if words.take(&["MODIFY", "COMMENT"]) => {
            Ok(Command::Comment { name, comment: words.string()? })
        }
        _ => Err(Error::not_implemented(
            "Granary alters nothing but comments (MODIFY COMMENT); CREATE OR REPLACE makes a dictionary or a view anew",
        )),
    }
}

/// DICTIONARY or TABLE, or their plurals.
fn noun(words: &mut Words<'_>) -> Result<Noun> {
    if words.take(&["DICTIONARY"]) || words.take(&["DICTIONARIES"]) {
        Ok(Noun::Dictionary)
    } else if words.take(&["TABLE"]) || words.take(&["TABLES"]) {
        Ok(Noun::Table)
    } else {
        Err(words.unexpected("DICTIONARY or TABLE"))
    }
}

/// SYNC or NO DELAY, which is the only behaviour here.
fn at_once(words: &mut Words<'_>) {
    let _ = words.take(&["SYNC"]) || words.take(&["NO", "DELAY"]);
}
