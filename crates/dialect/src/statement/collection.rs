//! CREATE, ALTER and DROP NAMED COLLECTION.

use super::command::{Command, OnConflict};
use super::token_cursor::{TokenCursor, is_word};
use crate::error::{Error, Result};

/// A change of a named collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectionChange {
    /// CREATE NAMED COLLECTION.
    Create {
        /// Whether an existing name is an error.
        if_exists: OnConflict,
        /// Names and values.
        values: Vec<(String, String)>,
    },
    /// ALTER NAMED COLLECTION.
    Alter {
        /// Whether an unknown name is an error.
        if_missing: OnConflict,
        /// Names and their new values.
        set: Vec<(String, String)>,
        /// Names to remove.
        delete: Vec<String>,
    },
    /// DROP NAMED COLLECTION.
    Drop {
        /// Whether an unknown name is an error.
        if_missing: OnConflict,
    },
}

/// Reads one of these statements.
pub fn read(cursor: &mut TokenCursor<'_>, _length: usize) -> Result<Option<Command>> {
    Ok(change(cursor)?.map(|(name, change)| Command::Collection { name, change }))
}

/// The collection's name and its change, if it is such a statement.
fn change(cursor: &mut TokenCursor<'_>) -> Result<Option<(String, CollectionChange)>> {
    Ok(Some(if cursor.take(&["CREATE", "NAMED", "COLLECTION"]) {
        let if_exists = cursor.if_not_exists();
        let name = cursor.identifier()?;
        cursor.expect("AS")?;
        (name, CollectionChange::Create { if_exists, values: values(cursor)? })
    } else if cursor.take(&["ALTER", "NAMED", "COLLECTION"]) {
        let if_missing = cursor.if_exists();
        let name = cursor.identifier()?;
        let set = if cursor.take(&["SET"]) { values(cursor)? } else { Vec::new() };
        let mut delete = Vec::new();
        if cursor.take(&["DELETE"]) {
            delete.push(cursor.identifier()?);
            while cursor.comma() {
                delete.push(cursor.identifier()?);
            }
        }
        (name, CollectionChange::Alter { if_missing, set, delete })
    } else if cursor.take(&["DROP", "NAMED", "COLLECTION"]) {
        let if_missing = cursor.if_exists();
        (cursor.identifier()?, CollectionChange::Drop { if_missing })
    } else {
        return Ok(None);
    }))
}

/// `name = value [OVERRIDABLE], ..`
fn values(cursor: &mut TokenCursor<'_>) -> Result<Vec<(String, String)>> {
    let mut values = Vec::new();
    loop {
        values.push(cursor.setting()?);
        cursor.take(&["OVERRIDABLE"]);
        if cursor.peek().is_some_and(|token| is_word(token, "NOT")) {
            return Err(Error::not_implemented("NOT OVERRIDABLE: what a source says itself always counts"));
        }
        if !cursor.comma() {
            return Ok(values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::split;

    fn read(text: &str) -> Result<Option<(String, CollectionChange)>> {
        change(&mut TokenCursor::new(&split(text)?[0].tokens))
    }

    #[test]
    fn changes_are_read() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let values = pairs(&[("host", "h"), ("port", "5432")]);
        let created = CollectionChange::Create { if_exists: OnConflict::Ignore, values };
        let text = "CREATE NAMED COLLECTION IF NOT EXISTS c AS host = 'h' OVERRIDABLE, port = 5432";
        assert_eq!(read(text).unwrap(), Some(("c".into(), created)));
        let altered = CollectionChange::Alter {
            if_missing: OnConflict::Error,
            set: pairs(&[("host", "g")]),
            delete: vec!["port".into(), "user".into()],
        };
        let text = "ALTER NAMED COLLECTION c SET host = 'g' DELETE port, user";
        assert_eq!(read(text).unwrap(), Some(("c".into(), altered)));
        assert_eq!(read("DROP TABLE c").unwrap(), None);
        assert_eq!(read("CREATE NAMED COLLECTION c AS a = 1 NOT OVERRIDABLE").unwrap_err().code, 48);
    }
}
