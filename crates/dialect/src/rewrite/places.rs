//! Positions of columns: `ORDER BY 2` and `GROUP BY 2`, also in parentheses; -1 is the last column.

use datafusion::sql::sqlparser::ast::{Expr, SelectItem, UnaryOperator, Value};

use super::literals;
use super::syntax::{name_of, plain_arguments};
use crate::error::{Error, Result};
use crate::functions::NOT_NULL;

/// Turns a position into a plain count from the first of the `shown` columns. `None`: they are those of several
/// queries.
///
/// BAD_ARGUMENTS for a position after the last column; NOT_IMPLEMENTED for one counted from the end if the number of
/// columns is unknown.
/// columns there are.
pub fn make(expr: &mut Expr, shown: Option<&[SelectItem]>) -> Result<()> {
    let Some(digits) = place(expr) else { return Ok(()) };
    let Some(from_end) = digits.strip_prefix('-').and_then(|digits| digits.parse::<usize>().ok()) else {
        *expr = Expr::value(Value::Number(digits, false));
        return Ok(());
    };
    let is_one =
        |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    let Some(columns) = shown.filter(|shown| shown.iter().all(is_one)) else {
        let what = format!("{digits} is the place of a column, and it is not known here how many there are");
        return Err(Error::not_implemented(what));
    };
    if !(1..=columns.len()).contains(&from_end) {
        return Err(Error::bad_arguments(format!(
            "Negative positional argument number {digits} is out of bounds. Expected in range [-{}, -1]",
            columns.len()
        )));
    }
    *expr = Expr::value(Value::Number((columns.len() + 1 - from_end).to_string(), false));
    Ok(())
}

/// Whether an expression, as written, is a position.
pub fn is_written(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner)
        | Expr::UnaryOp { op: UnaryOperator::Plus | UnaryOperator::Minus, expr: inner } => is_written(inner),
        other => place(other).is_some(),
    }
}

/// The digits of an integer expression.
fn place(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => place(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.parse::<i128>().is_ok() => Some(digits.clone()),
            _ => None,
        },
        // The rewritten form of a negative number.
        Expr::Function(cast) if name_of(cast) == Some(NOT_NULL) => match plain_arguments(cast)?.as_slice() {
            [Expr::Function(integer)] => match plain_arguments(integer)?.as_slice() {
                [number @ Expr::Value(_)] => place(number).filter(|digits| digits.starts_with('-')),
                _ => None,
            },
            _ => None,
        },
        other => place(literals::made(other)?),
    }
}
