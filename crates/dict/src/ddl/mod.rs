//! CREATE DICTIONARY, read and written.

mod columns;
mod default_text;
mod parser;
mod print;
mod tokens;

pub use print::{Form, identifier, quote};

use crate::definition::Definition;
use crate::error::DictError;

/// A CREATE DICTIONARY statement.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDictionary {
    /// What to do with an existing dictionary of this name.
    pub existing: CreateMode,
    /// The dictionary.
    pub definition: Definition,
}

/// What to do with an existing dictionary of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateMode {
    /// CREATE: there must be none.
    Create,
    /// CREATE .. IF NOT EXISTS: it stays.
    IfNotExists,
    /// CREATE OR REPLACE: it is replaced.
    CreateOrReplace,
    /// REPLACE: one must exist, and is replaced.
    Replace,
}

/// Reads one `CREATE [OR REPLACE] DICTIONARY [IF NOT EXISTS]` or `REPLACE DICTIONARY` statement, with or without a `;`
/// at its end. Clauses may come in any order.
///
/// # Errors
/// ClickHouse's codes: 62 for syntax, 489 for what is missing, 137 for unknown sources and layouts, 50 for
/// types, 36 for values; the message names the clause and says what is allowed.
pub fn parse_create(sql: &str) -> Result<CreateDictionary, DictError> {
    parser::parse_create(sql)
}
