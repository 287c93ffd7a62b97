//! SYSTEM: statements about the entries of dictionaries.

use super::command::Command;
use super::keys;
use super::token_cursor::TokenCursor;
use crate::error::Result;

/// Reads one of these statements.
pub fn read(cursor: &mut TokenCursor<'_>, _length: usize) -> Result<Option<Command>> {
    Ok(Some(if cursor.take(&["SYSTEM", "UNLOAD", "DICTIONARIES"]) {
        Command::UnloadDictionaries
    } else if cursor.take(&["SYSTEM", "UNLOAD", "DICTIONARY"]) {
        Command::UnloadDictionary(cursor.name()?)
    } else if cursor.take(&["SYSTEM", "RELOAD", "DICTIONARIES"]) {
        cursor.refuse_cluster()?;
        Command::ReloadDictionaries
    } else if cursor.take(&["SYSTEM", "RELOAD", "DICTIONARY"]) {
        Command::ReloadDictionary(cursor.name()?)
    } else if cursor.take(&["SYSTEM", "REFRESH", "DICTIONARY"]) {
        let name = cursor.name()?;
        cursor.expect("KEYS")?;
        Command::RefreshDictionary { name, keys: keys::read(cursor)? }
    } else if cursor.take(&["SYSTEM", "INVALIDATE", "DICTIONARY"]) {
        let name = cursor.name()?;
        let keys = if cursor.take(&["KEYS"]) { Some(keys::read(cursor)?) } else { None };
        Command::InvalidateDictionary { name, keys }
    } else {
        return Ok(None);
    }))
}
