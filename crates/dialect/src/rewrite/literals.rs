//! Integer literals have ClickHouse's types: the smallest that holds them, unsigned unless negative.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, Ident, UnaryOperator, Value};

use super::syntax::{name_of, plain_arguments, string, taken, text};

/// Gives an integer literal its type. Anything else stays.
pub fn make(expr: &mut Expr) {
    if let Some(value) = unsigned(expr) {
        let data_type = match value {
            0..=0xff => DataType::TinyIntUnsigned(None),
            0x100..=0xffff => DataType::SmallIntUnsigned(None),
            0x1_0000..=0xffff_ffff => DataType::IntUnsigned(None),
            _ => DataType::BigIntUnsigned(None),
        };
        *expr = typed(taken(expr), data_type);
        return;
    }
    if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr
        && let Some(value) = made(inner).and_then(unsigned)
    {
        let data_type = match value {
            0 => DataType::TinyIntUnsigned(None),
            1..=0x80 => DataType::TinyInt(None),
            0x81..=0x8000 => DataType::SmallInt(None),
            0x8001..=0x8000_0000 => DataType::Int(None),
            0x8000_0001..=0x8000_0000_0000_0000 => DataType::BigInt(None),
            _ => return,
        };
        *expr = typed(Expr::value(Value::Number(format!("-{value}"), false)), data_type);
    }
}

/// The text of the float that a word names. A column of that name needs quotes, as in ClickHouse.
pub fn named_float(word: &Ident) -> Option<&'static str> {
    if word.quote_style.is_some() {
        return None;
    }
    ["inf", "infinity", "nan"]
        .iter()
        .find(|known| word.value.eq_ignore_ascii_case(known))
        .map(|known| &known[..3])
}

/// Turns an integer of more than 64 bits into a text, for conversions that need all digits: as a literal it would be a
/// float.
pub fn exact(expr: &mut Expr) {
    let digits = match &*expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => wide(expr).map(|digits| format!("-{digits}")),
        Expr::Function(function) if name_of(function) == Some("negate") => {
            let arguments = plain_arguments(function).unwrap_or_default();
            arguments.first().and_then(wide).map(|digits| format!("-{digits}"))
        }
        other => wide(other),
    };
    if let Some(digits) = digits {
        *expr = string(&digits);
    }
}

/// Does [`exact`] for a conversion to this type, if it has that many bits.
pub fn exact_for(data_type: &str, expr: &mut Expr) {
    if ["Int128", "UInt128", "Int256"].contains(&data_type) {
        exact(expr);
    }
}

fn wide(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse::<i64>().is_err().then(|| digits.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

/// In ClickHouse's patterns a backslash that escapes nothing is a backslash.
pub fn make_pattern(pattern: &mut Expr) {
    let Some(text) = text(pattern).filter(|text| text.contains('\\')) else { return };
    let mut escaped = String::with_capacity(text.len() + 1);
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        escaped.push(letter);
        if letter == '\\' {
            escaped.push(rest.next_if(|next| ['%', '_', '\\'].contains(next)).unwrap_or('\\'));
        }
    }
    *pattern = string(&escaped);
}

/// Removes the type again, for counts.
pub fn undo(expr: &mut Expr) {
    if let Some(literal) = made(expr) {
        *expr = literal.clone();
    }
}

/// The literal within an expression made by [`make`].
pub fn made(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Cast { expr, data_type, .. } => {
            let ours = matches!(
                data_type,
                DataType::TinyIntUnsigned(None)
                    | DataType::SmallIntUnsigned(None)
                    | DataType::IntUnsigned(None)
                    | DataType::BigIntUnsigned(None)
                    | DataType::TinyInt(None)
                    | DataType::SmallInt(None)
                    | DataType::Int(None)
                    | DataType::BigInt(None)
            );
            (ours && matches!(**expr, Expr::Value(_))).then_some(expr)
        }
        _ => None,
    }
}

fn unsigned(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.replace('_', "").parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn typed(literal: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(literal), data_type, array: false, format: None }
}
