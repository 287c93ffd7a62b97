//! The types of MySQL's key columns: keys are written so that they are compared in these types.

use super::client::UNSEEN_END;
use super::errors::error;
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::source::literals::{Charset, ServerColumn};
use crate::source::sql::Dialect;
use crate::types::DataType;
use arrow::array::{ArrayRef, AsArray};
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Column, Conn, Row};

/// Character sets that have all characters, or no characters but bytes.
const WHOLE: [&str; 6] = ["utf8mb4", "utf16", "utf16le", "utf32", "gb18030", "binary"];

/// Describes the key columns by the columns of `statement`, which begins with them, and by `select`, which makes a
/// statement that gives one row of these expressions over no row of the source.
pub(super) fn describe(
    connection: &mut Conn,
    structure: &Structure,
    statement: &str,
    select: impl Fn(&str) -> String,
) -> Result<Vec<ServerColumn>, DictError> {
    let prepared = connection.prep(format!("/* granary {UNSEEN_END} {statement}")).map_err(error)?;
    let keys = structure.key_columns();
    let mut server_columns: Vec<ServerColumn> =
        prepared.columns().iter().take(keys.len()).map(server_column_of).collect();
    connection.close(prepared).map_err(error)?;
    let is_spelt = |data_type: &DataType| *data_type == DataType::String || data_type.is_composite();
    for (server_column, key) in server_columns.iter_mut().zip(&keys) {
        if server_column.is_text && is_spelt(key.data_type.inner()) {
            server_column.charset = charset_of(connection, &key.name, &select)?;
        }
    }
    Ok(server_columns)
}

/// Refuses an answer to keys that were written for columns whose character sets lack some characters, if these have
/// changed: the columns of an answer do not show that.
///
/// # Errors
/// The error of a lost connection, as of [`check`].
pub(super) fn check_charsets(
    connection: &mut Conn,
    structure: &Structure,
    keys: &[ArrayRef],
    written_for: &[ServerColumn],
    select: impl Fn(&str) -> String,
) -> Result<(), DictError> {
    for ((server_column, key), values) in written_for.iter().zip(structure.key_columns()).zip(keys) {
        let is_ascii = values.as_string_opt::<i32>().is_some_and(|values| values.value_data().is_ascii());
        if server_column.charset.is_some()
            && !is_ascii
            && charset_of(connection, &key.name, &select)? != server_column.charset
        {
            return Err(changed());
        }
    }
    Ok(())
}

fn charset_of(
    connection: &mut Conn,
    name: &str,
    select: impl Fn(&str) -> String,
) -> Result<Option<Charset>, DictError> {
    // An aggregate has the character set of its column, even of no rows.
    let greatest = format!("max({})", Dialect::Mysql.name(name));
    let asked = select(&format!("charset({greatest}), collation({greatest})"));
    Ok(charset(connection.query_first(asked).map_err(error)?))
}

fn changed() -> DictError {
    let text = "MySQL: the types of the key columns have changed meanwhile";
    DictError::new(Code::PocoException, text).of_lost_connection(true)
}

/// The character set of a column that lacks some characters.
fn charset(row: Option<Row>) -> Option<Charset> {
    let (name, collation): (Option<String>, Option<String>) = mysql::from_row_opt(row?).ok()?;
    let (name, collation) = (name?, collation?);
    (!WHOLE.contains(&name.as_str())).then_some(Charset { name, collation })
}

/// Refuses an answer whose key columns differ from those that the keys were written for.
///
/// # Errors
/// The error of a lost connection: a new one describes the columns anew.
pub(super) fn check(written_for: &[ServerColumn], columns: &[Column]) -> Result<(), DictError> {
    let is_same = |(server_column, column): (&ServerColumn, &Column)| {
        let now = server_column_of(column);
        (server_column.is_local, server_column.is_text) == (now.is_local, now.is_text)
    };
    match written_for.iter().zip(columns).all(is_same) {
        true => Ok(()),
        false => Err(changed()),
    }
}

fn server_column_of(column: &Column) -> ServerColumn {
    let server_type = column.column_type();
    ServerColumn { is_local: !is_moment(server_type), is_text: is_text(server_type), charset: None }
}

/// Whether a type is one of moments, whatever the zone in which they are shown.
pub(super) fn is_moment(server_type: ColumnType) -> bool {
    matches!(server_type, ColumnType::MYSQL_TYPE_TIMESTAMP | ColumnType::MYSQL_TYPE_TIMESTAMP2)
}

/// Whether its values are texts, which a comparison with a number turns into numbers: 0 if they begin with none.
fn is_text(server_type: ColumnType) -> bool {
    use ColumnType::*;
    matches!(
        server_type,
        MYSQL_TYPE_VARCHAR
            | MYSQL_TYPE_VAR_STRING
            | MYSQL_TYPE_STRING
            | MYSQL_TYPE_ENUM
            | MYSQL_TYPE_SET
            | MYSQL_TYPE_TINY_BLOB
            | MYSQL_TYPE_BLOB
            | MYSQL_TYPE_MEDIUM_BLOB
            | MYSQL_TYPE_LONG_BLOB
    )
}
