//! Functions with their own syntax: `EXTRACT(YEAR FROM t)`, `SUBSTRING(s FROM 2 FOR 3)`, `TRIM(BOTH 'x' FROM s)`.

use datafusion::sql::sqlparser::ast::{CeilFloorKind, DataType, DateTimeField, Expr, TrimWhereField, Value};

use super::literals;
use super::syntax::call;
use crate::error::{Error, Result};

/// Returns such an expression as a call; its parts are rewritten already.
///
/// # Errors
/// SYNTAX_ERROR for a part that ClickHouse does not have.
pub fn called(expr: Expr) -> Result<Expr> {
    Ok(match expr {
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            let from = substring_from.map_or_else(|| whole("1"), |from| *from);
            let given = [*expr, from].into_iter().chain(substring_for.map(|length| *length));
            call("substring", given.collect())
        }
        Expr::Position { expr, r#in } => call("position", vec![*r#in, *expr]),
        Expr::Trim { trim_characters: Some(_), .. } => {
            return Err(unknown("a list of letters in TRIM"));
        }
        Expr::Trim { expr, trim_where, trim_what, .. } => {
            let name = match trim_where {
                None | Some(TrimWhereField::Both) => "trimBoth",
                Some(TrimWhereField::Leading) => "trimLeft",
                Some(TrimWhereField::Trailing) => "trimRight",
            };
            call(name, [*expr].into_iter().chain(trim_what.map(|letters| *letters)).collect())
        }
        Expr::Extract { field, expr, .. } => call(part(&field)?, vec![*expr]),
        Expr::Ceil { expr, field } => rounded("ceil", *expr, field)?,
        Expr::Floor { expr, field } => rounded("floor", *expr, field)?,
        other => other,
    })
}

fn rounded(name: &str, value: Expr, kind: CeilFloorKind) -> Result<Expr> {
    match kind {
        CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => Ok(call(name, vec![value])),
        CeilFloorKind::DateTimeField(_) => Err(unknown("a unit of time in CEIL and FLOOR")),
        CeilFloorKind::Scale(places) => {
            let mut places = Expr::Value(places);
            literals::make(&mut places);
            Ok(call(name, vec![value, places]))
        }
    }
}

/// The function for a quoted day or time: `DATE '2024-01-02'`.
pub fn typed(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Date => Some("toDate"),
        DataType::Timestamp(None, _) => Some("toDateTime"),
        _ => None,
    }
}

/// The function for a part of a date or time.
pub fn part(field: &DateTimeField) -> Result<&'static str> {
    use DateTimeField::*;
    Ok(match field {
        Year | Years => "toYear",
        Quarter => "toQuarter",
        Month | Months => "toMonth",
        Day | Days => "toDayOfMonth",
        Hour | Hours => "toHour",
        Minute | Minutes => "toMinute",
        Second | Seconds => "toSecond",
        other => return Err(unknown(&format!("{other} in EXTRACT"))),
    })
}

fn whole(digits: &str) -> Expr {
    let mut number = Expr::value(Value::Number(digits.to_owned(), false));
    literals::make(&mut number);
    number
}

fn unknown(what: &str) -> Error {
    Error::syntax_error(format!("Syntax error: {what} is not known"))
}
