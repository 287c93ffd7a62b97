//! SYSTEM: statements about the entries of dictionaries.

use super::command::Command;
use super::keys;
use super::words::Words;
use crate::error::Result;

/// Reads one of these statements.
pub fn read(words: &mut Words<'_>, _length: usize) -> Result<Option<Command>> {
    Ok(Some(if words.take(&["SYSTEM", "UNLOAD", "DICTIONARIES"]) {
        Command::UnloadDictionaries
    } else if words.take(&["SYSTEM", "UNLOAD", "DICTIONARY"]) {
        Command::UnloadDictionary(words.name()?)
    } else if words.take(&["SYSTEM", "RELOAD", "DICTIONARIES"]) {
        words.refuse_cluster()?;
        Command::ReloadDictionaries
    } else if words.take(&["SYSTEM", "RELOAD", "DICTIONARY"]) {
        Command::ReloadDictionary(words.name()?)
    } else if words.take(&["SYSTEM", "REFRESH", "DICTIONARY"]) {
        let name = words.name()?;
        words.expect("KEYS")?;
        Command::RefreshDictionary { name, keys: keys::read(words)? }
    } else if words.take(&["SYSTEM", "INVALIDATE", "DICTIONARY"]) {
        let name = words.name()?;
        let keys = if words.take(&["KEYS"]) { Some(keys::read(words)?) } else { None };
        Command::InvalidateDictionary { name, keys }
    } else {
        return Ok(None);
    }))
}
