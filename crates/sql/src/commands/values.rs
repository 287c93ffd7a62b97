//! VALUES of INSERT. A query has one type for a column, and ClickHouse reads each literal by itself as what the column
//! is: where a text, a number and a call stand in one column, they are cast to its type.

use datafusion::arrow::datatypes::Schema;
use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Statement, Value};
use granary_dict::DataType;

use crate::error::{Error, Result};
use crate::rewrite::{call, exact, string};
use crate::types::CLICKHOUSE_TYPE;

/// Casts where it is needed. `columns` are those that INSERT names, or else all of `schema`.
///
/// # Errors
/// SYNTAX_ERROR for a row of another length: ClickHouse reads it by what the columns are.
pub fn agree(statement: &mut Statement, schema: &Schema, columns: Option<&[String]>) -> Result<()> {
    let Statement::Query(query) = statement else { return Ok(()) };
    let SetExpr::Values(values) = query.body.as_mut() else { return Ok(()) };
    let fields = schema.fields().iter();
    let names = columns.map_or_else(|| fields.map(|f| f.name().clone()).collect(), <[String]>::to_vec);
    if let Some(row) = values.rows.iter().find(|row| row.len() != names.len()) {
        let (wanted, given) = (names.len(), row.len());
        return Err(Error::syntax_error(format!(
            "Expected {wanted} values in each row of VALUES, got {given}"
        )));
    }
    for (place, name) in names.iter().enumerate() {
        let type_name = schema.field_with_name(name).ok().and_then(|f| f.metadata().get(CLICKHOUSE_TYPE));
        let data_type = type_name.and_then(|name| DataType::parse_column(name).ok());
        if data_type.as_ref().is_some_and(is_wide) {
            values.rows.iter_mut().filter_map(|row| row.get_mut(place)).for_each(exact);
        }
        let is_there = |wanted| values.rows.iter().any(|row| row.get(place).map(kind) == Some(wanted));
        let kinds = [Kind::Text, Kind::Number, Kind::Other].into_iter().filter(|kind| is_there(*kind));
        let Some(data_type) = data_type.filter(|_| kinds.count() > 1) else { continue };
        let type_name = data_type.inner().to_string();
        for value in values.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
            *value = call("CAST", vec![value.clone(), string(&type_name)]);
        }
    }
    Ok(())
}

fn is_wide(data_type: &DataType) -> bool {
    matches!(data_type.inner(), DataType::Int128 | DataType::UInt128 | DataType::Int256)
}

/// Whether the rows are those of VALUES.
pub fn are_given(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(query) if matches!(query.body.as_ref(), SetExpr::Values(_)))
}

/// What is wrong with a literal of VALUES: one that a Decimal is too short for was read as one, and not converted.
pub fn misread(error: Error) -> Error {
    match error.code == Error::decimal_overflow("").code {
        true => Error::argument_out_of_bound(error.message),
        false => error,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    /// It is of any type.
    Null,
    /// A call, an array and the like.
    Other,
}

fn kind(expr: &Expr) -> Kind {
    match expr {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(_) => Kind::Text,
            Value::Number(..) => Kind::Number,
            Value::Null => Kind::Null,
            _ => Kind::Other,
        },
        Expr::UnaryOp { expr, .. } if kind(expr) == Kind::Number => Kind::Number,
        _ => Kind::Other,
    }
}
