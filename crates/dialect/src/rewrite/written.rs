//! Numbers read as written, before `::` and in VALUES: as a literal 8.29 is the nearest float, which is less, and
//! `1.10` has one digit less.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, UnaryOperator, Value};
use granary_dict::{DataType as ClickHouseType, Element};

use super::syntax::{argument_mut, arguments_mut, call, name_of, string, taken};
use crate::functions;

/// Turns `8.29::Decimal(18, 2)` into a cast of the text, before its parts are rewritten. A minus before it belongs to
/// the number, as in ClickHouse.
pub fn make_cast(expr: &mut Expr) {
    if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr
        && let Some((literal, _)) = cast_literal(inner)
        && let Some(digits) = number(literal)
    {
        *literal = string(&format!("-{digits}"));
        *expr = taken(inner);
        return;
    }
    if let Some((literal, target)) = cast_literal(expr)
        && let Some(digits) = number(literal)
    {
        if !is_read_alike(&digits, target) {
            *literal = string(&digits);
        }
        return;
    }
    if let Expr::Cast { kind: CastKind::DoubleColon, expr: inner, data_type, .. } = expr
        && let Ok(target) = ClickHouseType::parse_column(&functions::type_spelling(data_type))
        && target.to_arrow().is_nested()
    {
        read_as(inner, &target);
    }
}

fn is_of_digits(text: &str) -> bool {
    text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit())
}

/// Casts literals in the places of decimals within an array or a tuple; numbers are cast from their text as written.
/// Returns whether there were any.
pub fn read_as(expr: &mut Expr, target: &ClickHouseType) -> bool {
    match (target.inner(), expr) {
        (decimal @ ClickHouseType::Decimal { .. }, expr) => {
            let (value, data_type) = match number(expr) {
                Some(digits) => (string(&digits), decimal),
                None if is_null(expr) => return false,
                None => (taken(expr), target),
            };
            *expr = call("CAST", vec![value, string(&data_type.to_string())]);
            true
        }
        // As a text, a small number would be a date.
        (time @ ClickHouseType::DateTime64 { .. }, expr) => {
            let Some(digits) = number(expr).filter(|digits| !digits.contains(['e', 'E'])) else {
                return false;
            };
            let seconds = call("CAST", vec![string(&digits), string("Decimal(38, 9)")]);
            *expr = call("CAST", vec![seconds, string(&time.to_string())]);
            true
        }
        (wide, expr) if wide.is_wide() => {
            let Some(digits) = number(expr).filter(|digits| is_of_digits(digits)) else { return false };
            *expr = call("CAST", vec![string(&digits), string(&wide.to_string())]);
            true
        }
        (ClickHouseType::Array(item), Expr::Array(array)) => {
            array.elem.iter_mut().fold(false, |any, each| read_as(each, item) | any)
        }
        (ClickHouseType::Tuple(elements), Expr::Tuple(items)) => elementwise(items.iter_mut(), elements),
        (ClickHouseType::Tuple(elements), Expr::Function(function))
            if name_of(function) == Some(functions::TUPLE) =>
        {
            let items = arguments_mut(function).into_iter().flatten();
            elementwise(items.filter_map(argument_mut), elements)
        }
        // `(8.29)` is a tuple of one element where a tuple is expected.
        (ClickHouseType::Tuple(elements), Expr::Nested(item)) if let [element] = elements.as_slice() => {
            read_as(item, &element.data_type);
            **item = call(functions::TUPLE, vec![taken(item)]);
            true
        }
        (_, Expr::Nested(inner)) => read_as(inner, target),
        _ => false,
    }
}

/// The text of an array of only numbers and NULL, or of such arrays.
pub fn array_text(expr: &Expr) -> Option<String> {
    let Expr::Array(array) = expr else { return None };
    let item = |item: &Expr| match is_null(item) {
        true => Some("NULL".to_owned()),
        false => number(item).or_else(|| array_text(item)),
    };
    let items = array.elem.iter().map(item).collect::<Option<Vec<_>>>()?;
    Some(format!("[{}]", items.join(",")))
}

fn elementwise<'a>(items: impl Iterator<Item = &'a mut Expr>, elements: &[Element]) -> bool {
    items.zip(elements).fold(false, |any, (item, element)| read_as(item, &element.data_type) | any)
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}

/// The digits of a number as written, with its sign.
pub fn number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        Expr::Nested(inner) => number(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            number(expr).filter(|digits| !digits.starts_with('-')).map(|digits| format!("-{digits}"))
        }
        _ => None,
    }
}

/// The operand of the first of several `::`, and the type after it.
fn cast_literal(expr: &mut Expr) -> Option<(&mut Expr, &DataType)> {
    match expr {
        Expr::Cast { kind: CastKind::DoubleColon, expr, data_type, .. } => match expr.as_ref() {
            Expr::Cast { kind: CastKind::DoubleColon, .. } => cast_literal(expr),
            Expr::Value(_) | Expr::Nested(_) => Some((expr, data_type)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a number converts to the type equally from its digits and from the literal.
fn is_read_alike(digits: &str, target: &DataType) -> bool {
    use ClickHouseType::{Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    match ClickHouseType::parse(&functions::type_spelling(target)) {
        Ok(UInt8 | UInt16 | UInt32 | UInt64 | Int8 | Int16 | Int32 | Int64) => digits.parse::<u64>().is_ok(),
        Ok(Float64) => true,
        Ok(_) => false,
        Err(_) => true,
    }
}
