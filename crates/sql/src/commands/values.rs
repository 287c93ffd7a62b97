//! VALUES of INSERT. A query has one type for a column, but ClickHouse reads each literal by itself as the column's
//! type: where a column mixes texts, numbers and calls, they are cast to its type.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::Field;
use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Statement, Value, visit_expressions};
use granary_dialect::rewrite::{array_text, call, exact, number, read_as, string};
use granary_dialect::statement::parse_expression;
use granary_dialect::types::CLICKHOUSE_TYPE;
use granary_dialect::{Error, Result};
use granary_dict::DataType;

use crate::catalogue::LocalTable;
use crate::tables::provider::Table;

/// Inserts casts where needed, and defaults where wanted. `columns` are those that INSERT names; `None`: all of the
/// table.
///
/// # Errors
/// SYNTAX_ERROR for a row of another length: ClickHouse reads it by what the columns are.
pub fn agree(statement: &mut Statement, table: &LocalTable, columns: Option<&[String]>) -> Result<()> {
    let schema = table.schema();
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
        let given = values.rows.iter_mut().filter_map(|row| row.get_mut(place));
        let has_read = data_type.as_ref().is_some_and(|data_type| read(given, data_type));
        let is_nullable = schema.field_with_name(name).is_ok_and(Field::is_nullable);
        let default = table.defaults.iter().find(|(column, _)| column == name).map(|(_, text)| text.as_str());
        for value in values.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
            let is_wanted =
                is_default(value) || kind(value) == LiteralKind::Null && !is_nullable && default.is_some();
            if is_wanted {
                *value = default_of(name, default)?;
            }
        }
        if data_type.as_ref().is_some_and(|data_type| data_type.inner().is_wide()) {
            values.rows.iter_mut().filter_map(|row| row.get_mut(place)).for_each(exact);
        }
        let is_there = |wanted| values.rows.iter().any(|row| row.get(place).map(kind) == Some(wanted));
        let kinds = [LiteralKind::Text, LiteralKind::Number, LiteralKind::Other]
            .into_iter()
            .filter(|kind| is_there(*kind));
        // Calls may return times of different zones.
        let are_times = data_type.as_ref().is_some_and(is_time) && is_there(LiteralKind::Other);
        let differ = kinds.count() > 1
            || is_there(LiteralKind::Other) && is_there(LiteralKind::Null)
            || are_times
            || has_read;
        let Some(data_type) = data_type.filter(|_| differ) else { continue };
        let type_name = data_type.inner().to_string();
        let can_be_null = !data_type.to_arrow().is_nested();
        for value in values.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
            let type_name = match kind(value) {
                LiteralKind::Null if can_be_null => format!("Nullable({type_name})"),
                LiteralKind::Null => continue,
                _ => type_name.clone(),
            };
            *value = call("CAST", vec![value.clone(), string(&type_name)]);
        }
    }
    Ok(())
}

/// Turns numbers in columns of decimals, or of arrays with decimals and other numbers that a literal does not hold,
/// into texts as written. Returns whether some values are arrays that must be cast to their type for that.
fn read<'a>(values: impl Iterator<Item = &'a mut Expr>, data_type: &DataType) -> bool {
    match data_type.inner() {
        DataType::Decimal { .. } => {
            for value in values {
                if let Some(digits) = number(value) {
                    *value = string(&digits);
                }
            }
            false
        }
        DataType::DateTime64 { .. } => false,
        wide if wide.is_wide() => false,
        DataType::Array(_) if data_type.is_exact() => values.fold(false, |any, value| {
            match array_text(value).filter(|text| has_decimals(data_type) || !text.contains(['.', 'e', 'E']))
            {
                Some(text) => *value = string(&text),
                None => return read_as(value, data_type) | any,
            }
            any
        }),
        // There is no cast to a tuple.
        DataType::Tuple(_) => {
            values.for_each(|value| _ = read_as(value, data_type));
            false
        }
        _ => values.fold(false, |any, value| read_as(value, data_type) | any),
    }
}

fn has_decimals(data_type: &DataType) -> bool {
    match data_type.inner() {
        DataType::Array(item) => has_decimals(item),
        other => matches!(other, DataType::Decimal { .. }),
    }
}

/// Whether a value is the word DEFAULT.
fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("DEFAULT"))
}

/// The value for a column that a row lacks: its DEFAULT, or else NULL, which becomes the type's default.
fn default_of(column: &str, default: Option<&str>) -> Result<Expr> {
    let Some(text) = default else { return Ok(Expr::value(Value::Null)) };
    let expr = parse_expression(text)?;
    let names_column = |expr: &Expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    match visit_expressions(&expr, names_column) {
        ControlFlow::Continue(()) => Ok(expr),
        ControlFlow::Break(()) => Err(Error::not_implemented(format!(
            "The DEFAULT of column {column} looks at other columns: leave the column out of the INSERT, or give it a value"
        ))),
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type.inner(), DataType::DateTime { .. } | DataType::DateTime64 { .. })
}

/// Whether the rows are those of VALUES.
pub fn are_given(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(query) if matches!(query.body.as_ref(), SetExpr::Values(_)))
}

/// The error for a literal of VALUES that overflows a Decimal: it was read as one, not converted.
pub fn misread(error: Error) -> Error {
    match error.code == Error::decimal_overflow("").code {
        true => Error::argument_out_of_bound(error.message),
        false => error,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LiteralKind {
    Text,
    Number,
    /// Fits any type.
    Null,
    /// A call, an array and the like.
    Other,
}

fn kind(expr: &Expr) -> LiteralKind {
    match expr {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(_) => LiteralKind::Text,
            Value::Number(..) => LiteralKind::Number,
            Value::Null => LiteralKind::Null,
            _ => LiteralKind::Other,
        },
        Expr::UnaryOp { expr, .. } if kind(expr) == LiteralKind::Number => LiteralKind::Number,
        _ => LiteralKind::Other,
    }
}
