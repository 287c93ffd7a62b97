//! CREATE DICTIONARY, read and written.

mod columns;
mod parser;
mod print;
mod tokens;

pub use print::{Form, identifier, quote};

use crate::definition::Definition;
use crate::error::DictError;

/// A CREATE DICTIONARY statement.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDictionary {
    /// CREATE OR REPLACE, or REPLACE.
    pub or_replace: bool,
    /// IF NOT EXISTS: an existing dictionary stays.
    pub if_not_exists: bool,
    /// The dictionary.
    pub definition: Definition,
}

/// Reads one `CREATE [OR REPLACE] DICTIONARY [IF NOT EXISTS]` or `REPLACE DICTIONARY` statement, a `;` behind
/// it or not. Clauses may come in any order.
///
/// # Errors
/// ClickHouse's codes: 62 for syntax, 489 for what is missing, 137 for unknown sources and layouts, 50 for
/// types, 36 for values; the message names the clause and says what is allowed.
pub fn parse_create(sql: &str) -> Result<CreateDictionary, DictError> {
    parser::parse_create(sql)
}
