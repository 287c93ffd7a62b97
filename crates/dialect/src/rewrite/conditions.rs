//! Numbers and conditions: in ClickHouse any number is a condition; DataFusion requires Boolean.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

use super::syntax::{call, name_of, taken};
use crate::functions::truth::{AS_CHOICE, AS_CONDITION, AS_NUMBER};

/// Turns an expression into a condition.
pub fn make(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) => make(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            make(left);
            make(right);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => make(expr),
        _ if is_condition(expr) => {}
        _ => {
            let inner = taken(expr);
            *expr = call(AS_CONDITION, vec![inner]);
        }
    }
}

/// Turns an expression into the condition of a choice, where a float is refused.
pub fn make_choice(expr: &mut Expr) {
    match is_condition(expr) {
        true => make(expr),
        false => *expr = call(AS_CHOICE, vec![taken(expr)]),
    }
}

/// Turns a condition into a number: true is 1.
pub fn make_number(expr: &mut Expr) {
    let inner = taken(expr);
    *expr = call(AS_NUMBER, vec![inner]);
}

/// Turns the conditions among a choice's values into numbers, if another value is no condition.
pub fn make_numbers_among<'a>(values: impl IntoIterator<Item = &'a mut Expr>) {
    let mut values: Vec<&mut Expr> = values.into_iter().collect();
    if values.iter().any(|value| !is_condition(value) && !is_truth(value)) {
        values.iter_mut().filter(|value| is_condition(value)).for_each(|value| make_number(value));
    }
}

/// Whether an expression is true, false or NULL.
fn is_truth(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_truth(inner),
        Expr::Value(value) => matches!(value.value, Value::Boolean(_) | Value::Null),
        // The rewritten form of `true`.
        Expr::Function(function) => name_of(function) == Some("toBool"),
        _ => false,
    }
}

/// Whether an expression is Boolean in DataFusion, and a number in ClickHouse.
pub fn is_condition(expr: &Expr) -> bool {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    match expr {
        Expr::Nested(inner) => is_condition(inner),
        Expr::BinaryOp { op, .. } => matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | And | Or),
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => true,
        Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::Exists { .. } => true,
        _ => false,
    }
}
