//! Statements that only a store of tables has.

use super::command::Command;
use super::words::Words;
use crate::error::{Error, Result};

/// Their first words, and the message that refuses them.
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

const DETACHED: &str =
    "Granary detaches and attaches dictionaries, not tables and views, which end with the process";

/// # Errors
/// NOT_IMPLEMENTED if the statement is one of them.
pub fn read(words: &mut Words<'_>, _length: usize) -> Result<Option<Command>> {
    match REFUSED.iter().find(|(start, _)| words.take(start)) {
        Some((_, why)) => Err(Error::not_implemented(*why)),
        None => Ok(None),
    }
}
