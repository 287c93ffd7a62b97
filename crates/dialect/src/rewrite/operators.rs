//! Operators written as functions, `equals(a, b)`, and times shifted by an INTERVAL, which ClickHouse does by
//! functions: `t + INTERVAL 1 DAY` is `addDays(t, 1)`.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DateTimeField, Expr, Function, Interval, UnaryOperator,
};

use super::conditions;
use super::syntax::{call, name_of, plain_arguments, taken};
use crate::error::{Error, Result};
use crate::functions;

const BINARY: &[(&str, BinaryOperator)] = &[
    ("equals", BinaryOperator::Eq),
    ("notEquals", BinaryOperator::NotEq),
    ("less", BinaryOperator::Lt),
    ("lessOrEquals", BinaryOperator::LtEq),
    ("greater", BinaryOperator::Gt),
    ("greaterOrEquals", BinaryOperator::GtEq),
];

/// Rewrites such an expression, before its parts are rewritten.
///
/// # Errors
/// NUMBER_OF_ARGUMENTS_DOESNT_MATCH if a comparison does not have two.
pub fn make(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Function(function) => {
            let Some(name) = name_of(function) else { return Ok(()) };
            if name == "toStartOfInterval" {
                *expr = start_of_interval(function)?;
            } else if let Some(operator) = operator(function, name) {
                *expr = Expr::Nested(Box::new(operator));
            } else if BINARY.iter().any(|(theirs, _)| *theirs == name) {
                return Err(Error::wrong_argument_count(format!("Function {name} requires two arguments")));
            }
        }
        Expr::BinaryOp { left, op, right } => {
            let (time, moved) = match (op, interval(left), interval(right)) {
                (BinaryOperator::Plus, None, Some(moved)) => (left, moved.call("add")),
                (BinaryOperator::Plus, Some(moved), None) => (right, moved.call("add")),
                (BinaryOperator::Minus, None, Some(moved)) => (left, moved.call("subtract")),
                _ => return Ok(()),
            };
            let (name, by) = moved;
            *expr = call(&name, vec![taken(time), by]);
        }
        _ => {}
    }
    Ok(())
}

/// `toStartOfInterval(t, INTERVAL 5 MINUTE[, zone])` becomes the function of the unit.
fn start_of_interval(function: &Function) -> Result<Expr> {
    let mut given = plain_arguments(function).unwrap_or_default();
    let zone = if given.len() == 3 { given.pop() } else { None };
    let Ok([time, interval]) = <[Expr; 2]>::try_from(given) else {
        let what = "Function toStartOfInterval takes a time, an interval and a time zone";
        return Err(Error::wrong_argument_count(what));
    };
    let moved = self::interval(&interval);
    let Some((moved, name)) =
        moved.and_then(|moved| Some((functions::start_of_interval(&moved.unit)?, moved)))
    else {
        let what = "The second argument of function toStartOfInterval must be an interval, such as INTERVAL 5 MINUTE";
        return Err(Error::illegal_type(what));
    };
    let time = match zone {
        Some(zone) => call(functions::TO_TIME_ZONE, vec![time, zone]),
        None => time,
    };
    Ok(call(&moved, vec![time, name.by]))
}

fn operator(function: &Function, name: &str) -> Option<Expr> {
    let mut given = plain_arguments(function)?;
    if let Some((_, operator)) = BINARY.iter().find(|(theirs, _)| *theirs == name) {
        let [left, right] = <[Expr; 2]>::try_from(given).ok()?;
        return Some(binary(left, operator.clone(), right));
    }
    match (name.to_ascii_lowercase().as_str(), given.len()) {
        ("and", 2..) => given.into_iter().reduce(|all, next| binary(all, BinaryOperator::And, next)),
        ("or", 2..) => given.into_iter().reduce(|any, next| binary(any, BinaryOperator::Or, next)),
        ("xor", 2..) => {
            given.iter_mut().for_each(conditions::make);
            given.into_iter().reduce(|odd, next| binary(odd, BinaryOperator::NotEq, next))
        }
        ("not", 1) => Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: nested(given.pop()?) }),
        ("like" | "notlike" | "ilike" | "notilike", 2) => Some(like(name, given.pop()?, given.pop()?)),
        ("in" | "notin", 2) => within(name == "notIn", given.pop()?, given.pop()?),
        _ => None,
    }
}

fn nested(expr: Expr) -> Box<Expr> {
    Box::new(Expr::Nested(Box::new(expr)))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: nested(left), op, right: nested(right) }
}

fn like(name: &str, pattern: Expr, text: Expr) -> Expr {
    let negated = name.starts_with("not");
    let (expr, pattern) = (nested(text), Box::new(pattern));
    if name.to_ascii_lowercase().ends_with("ilike") {
        Expr::ILike { negated, any: false, expr, pattern, escape_char: None }
    } else {
        Expr::Like { negated, any: false, expr, pattern, escape_char: None }
    }
}

fn within(negated: bool, set: Expr, item: Expr) -> Option<Expr> {
    let expr = nested(item);
    let list = match set {
        Expr::Subquery(subquery) => return Some(Expr::InSubquery { expr, subquery, negated }),
        Expr::Tuple(items) => items,
        Expr::Array(array) => array.elem,
        Expr::Nested(item) => vec![*item],
        Expr::Value(value) => vec![Expr::Value(value)],
        Expr::Function(function) if name_of(&function) == Some("tuple") => plain_arguments(&function)?,
        _ => return None,
    };
    Some(Expr::InList { expr, list, negated })
}

/// An interval: a number of units.
struct Shift {
    unit: String,
    by: Expr,
}

impl Shift {
    /// The name of the function that shifts a time, and the number of units.
    fn call(self, verb: &str) -> (String, Expr) {
        (format!("{verb}{}s", self.unit), self.by)
    }
}

fn interval(expr: &Expr) -> Option<Shift> {
    match expr {
        Expr::Nested(inner) => interval(inner),
        Expr::Interval(interval) => {
            Some(Shift { unit: unit(interval)?.to_owned(), by: (*interval.value).clone() })
        }
        Expr::Function(function) => {
            let unit = name_of(function)?.strip_prefix("toInterval")?.to_owned();
            let [by] = <[Expr; 1]>::try_from(plain_arguments(function)?).ok()?;
            Some(Shift { unit, by })
        }
        _ => None,
    }
}

/// The unit of an interval, as spelled in ClickHouse's function names.
pub fn unit(interval: &Interval) -> Option<&'static str> {
    use DateTimeField::*;
    Some(match (interval.leading_field.as_ref()?, &interval.last_field) {
        (Second | Seconds, None) => "Second",
        (Minute | Minutes, None) => "Minute",
        (Hour | Hours, None) => "Hour",
        (Day | Days, None) => "Day",
        (Week(None) | Weeks, None) => "Week",
        (Month | Months, None) => "Month",
        (Quarter, None) => "Quarter",
        (Year | Years, None) => "Year",
        _ => return None,
    })
}
