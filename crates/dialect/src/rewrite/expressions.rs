//! Expressions: literals, casts, conditions; calls are left to [`super::calls`] and [`super::dictionaries`].

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, Ident, UnaryOperator, Value,
};

use super::syntax::{call, name_of, plain_arguments, string, taken, text};
use super::{
    Named, Scope, calls, conditions, dictionaries, lambdas, literals, operators, session, syntax_calls,
    tuples, written,
};
use crate::error::{Error, Result};
use crate::functions;
use crate::functions::as_type::AS_TYPE;
use crate::statement;
use crate::types::is_beyond_arrow;

/// A function that reads files: users who may not read everything may not call it.
const FILE_FUNCTION: &str = "file";

/// Runs before the parts of an expression are rewritten, for what must be seen as written. `named` collects the
/// dictionaries.
pub fn before(expr: &mut Expr, scope: &dyn Scope, named: &mut Vec<Named>) -> Result<()> {
    operators::make(expr)?;
    written::make_cast(expr);
    match expr {
        Expr::Function(function) if name_of(function) == Some(FILE_FUNCTION) => {
            named.push(Named::File);
            Ok(())
        }
        Expr::Function(function) if name_of(function).is_some_and(dictionaries::is_called) => {
            named.push(dictionaries::rewrite(function, scope)?);
            Ok(())
        }
        Expr::Function(function) => {
            match session::constant(function, scope) {
                Some(constant) => *expr = constant,
                None => tuples::quote_place(expr),
            }
            Ok(())
        }
        Expr::Value(value) => {
            if let Value::Boolean(truth) = value.value {
                let number = Value::Number(u8::from(truth).to_string(), false);
                *expr = call("toBool", vec![Expr::Value(number.with_empty_span())]);
            }
            Ok(())
        }
        Expr::Identifier(ident) if let Some(float) = literals::named_float(ident) => {
            *expr = call("toFloat64", vec![string(float)]);
            Ok(())
        }
        // `key.names` of system.dictionaries is one name.
        Expr::CompoundIdentifier(parts) => {
            if let [owner, part] = parts.as_slice()
                && matches!(
                    (owner.value.as_str(), part.value.as_str()),
                    ("key" | "attribute", "names" | "types")
                )
            {
                *expr = Expr::Identifier(Ident::with_quote('"', format!("{}.{}", owner.value, part.value)));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Runs after an expression's parts were rewritten.
pub fn after(expr: &mut Expr) -> Result<()> {
    literals::make(expr);
    if let Some(cast) = cast_to_named(expr)? {
        *expr = cast;
    }
    match expr {
        Expr::Tuple(items) => *expr = call("tuple", std::mem::take(items)),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => conditions::make(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if literals::made(inner).is_none() => {
            *expr = call("negate", vec![inner.as_ref().clone()]);
        }
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            conditions::make(left);
            conditions::make(right);
        }
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
            *expr = call("concat", vec![taken(left), taken(right)]);
        }
        Expr::InList { list, .. } if list.iter().any(is_null) => {
            *expr = without_nulls(taken(expr));
            return after(expr);
        }
        Expr::InList { expr: inner, list, negated }
            if list.len() <= UUIDS_MAX && list.iter().all(is_special) =>
        {
            *expr = any_equal(inner, list, *negated);
        }
        Expr::Case { operand, conditions, else_result, .. } => {
            case(operand.is_none(), conditions, else_result.as_deref_mut());
        }
        Expr::Array(array) => conditions::make_numbers_among(&mut array.elem),
        Expr::Cast { expr: inner, data_type, kind: CastKind::Cast | CastKind::DoubleColon, .. } => {
            if let Some(call) = cast(inner, data_type)? {
                *expr = call;
            }
        }
        Expr::Interval(_) => {
            let what =
                "An INTERVAL is added to a time, or subtracted from one; there are no values of its type";
            return Err(Error::not_implemented(what));
        }
        Expr::TypedString(text) => {
            let Some(name) = syntax_calls::typed(&text.data_type) else {
                return Err(Error::syntax_error(format!("Syntax error: {text} is not known")));
            };
            *expr = call(name, vec![Expr::Value(text.value.clone())]);
        }
        Expr::Like { pattern, .. } | Expr::ILike { pattern, .. } => literals::make_pattern(pattern),
        Expr::Substring { .. }
        | Expr::Position { .. }
        | Expr::Trim { .. }
        | Expr::Extract { .. }
        | Expr::Ceil { .. }
        | Expr::Floor { .. } => *expr = syntax_calls::called(taken(expr))?,
        Expr::Function(_) => {
            lambdas::rewrite(expr)?;
            return calls::rewrite(expr);
        }
        _ => {}
    }
    Ok(())
}

/// CASE: without an operand, what decides between the branches are conditions. Its results are numbers if any is.
fn case(decide: bool, branches: &mut [CaseWhen], otherwise: Option<&mut Expr>) {
    if decide {
        branches.iter_mut().for_each(|when| conditions::make_choice(&mut when.condition));
    }
    conditions::make_numbers_among(branches.iter_mut().map(|when| &mut when.result).chain(otherwise));
}

/// Returns the call that a cast becomes. `None`: it stays a cast, whose type may have been given another name.
fn cast(inner: &mut Expr, data_type: &mut DataType) -> Result<Option<Expr>> {
    let written = functions::type_spelling(data_type);
    // Other names for a type, such as INT and TEXT, are this type, whose values are not converted by Arrow's rules.
    // So are types of few values, which have no dictionaries here.
    let has_few_values = data_type.to_string().contains("LowCardinality(");
    if let Ok(known) = granary_dict::DataType::parse(&written).map(|known| known.to_string())
        && (known != written || has_few_values)
    {
        *data_type = statement::data_type(&known)?;
    }
    if let DataType::Nullable(_) = data_type {
        let name = functions::type_spelling(data_type);
        literals::exact_for(name.trim_start_matches("Nullable(").trim_end_matches(')'), inner);
        return Ok(Some(call("toNullable", vec![call(AS_TYPE, vec![taken(inner), string(&name)])])));
    }
    if let Some(name) = conversion(data_type) {
        return Ok(Some(call(functions::NOT_NULL, vec![call(name, vec![taken(inner)])])));
    }
    let Some(name) = beyond_arrow(data_type) else { return Ok(None) };
    literals::exact_for(&name, inner);
    let converted = call(AS_TYPE, vec![taken(inner), string(&name)]);
    let may_be_null = name.starts_with(['A', 'M', 'T', 'N']);
    Ok(Some(if may_be_null { converted } else { call(functions::NOT_NULL, vec![converted]) }))
}

/// `CAST(x, 'T')` as `CAST(x AS T)`.
fn cast_to_named(expr: &Expr) -> Result<Option<Expr>> {
    let Expr::Function(function) = expr else { return Ok(None) };
    if !name_of(function).is_some_and(|name| name.eq_ignore_ascii_case("CAST")) {
        return Ok(None);
    }
    let Some([value, data_type]) = plain_arguments(function).and_then(|all| <[Expr; 2]>::try_from(all).ok())
    else {
        return Err(Error::wrong_argument_count("Function CAST requires two arguments"));
    };
    let Some(name) = text(&data_type) else {
        return Err(Error::illegal_type("Second argument to CAST must be a constant string describing type"));
    };
    let data_type = statement::data_type(name)?;
    let expr = Box::new(value);
    Ok(Some(Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }))
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_null(inner),
        Expr::Value(value) => value.value == Value::Null,
        _ => false,
    }
}

/// Removes NULLs from a list: they match nothing (`transform_null_in = 0`).
fn without_nulls(expr: Expr) -> Expr {
    let Expr::InList { expr: item, mut list, negated } = expr else { return expr };
    list.retain(|item| !is_null(item));
    if !list.is_empty() {
        return Expr::InList { expr: item, list, negated };
    }
    // A list of NULLs only: false for values, NaN too, and NULL for NULL.
    let within = Expr::BinaryOp { left: item.clone(), op: BinaryOperator::Lt, right: item };
    match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(within))) },
        false => within,
    }
}

/// Maximum texts in an IN that may be UUIDs or addresses; more are compared as texts.
const UUIDS_MAX: usize = 256;

/// Whether an expression is a literal with the form of a UUID or an address.
fn is_special(expr: &Expr) -> bool {
    let parts = |text: &str| text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let is_uuid = |text: &str| parts(text) && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    text(expr).is_some_and(|text| is_uuid(text) || text.parse::<std::net::IpAddr>().is_ok())
}

/// `x IN ('a', 'b')` as `x = 'a' OR x = 'b'`: a literal's type depends on the other side, which is known when a
/// comparison is planned, but not when an IN is.
fn any_equal(inner: &Expr, list: &[Expr], negated: bool) -> Expr {
    use datafusion::sql::sqlparser::ast::BinaryOperator::{Eq, Or};
    let both =
        |left: Expr, op, right: Expr| Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) };
    let equal = list.iter().map(|item| both(inner.clone(), Eq, item.clone()));
    let any = equal.reduce(|any, one| both(any, Or, one));
    let any =
        Expr::Nested(Box::new(any.unwrap_or_else(|| Expr::Value(Value::Boolean(false).with_empty_span()))));
    if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) } } else { any }
}

/// The name of a type that Arrow lacks, or converts to differently from ClickHouse.
fn beyond_arrow(data_type: &DataType) -> Option<String> {
    use granary_dict::DataType::{Date32, DateTime, Decimal};
    let name = functions::type_spelling(data_type);
    let parsed = granary_dict::DataType::parse(&name).ok()?;
    let differs = matches!(parsed.inner(), Date32 | DateTime { .. } | Decimal { .. });
    (differs || is_beyond_arrow(&parsed)).then_some(name)
}

/// ClickHouse's casts wrap and spell values as its `toX` functions do.
fn conversion(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::UInt8 => "toUInt8",
        DataType::UInt16 => "toUInt16",
        DataType::UInt32 => "toUInt32",
        DataType::UInt64 => "toUInt64",
        DataType::Int8(None) => "toInt8",
        DataType::Int16 => "toInt16",
        DataType::Int32 => "toInt32",
        DataType::Int64 => "toInt64",
        DataType::Float32 => "toFloat32",
        DataType::Float64 => "toFloat64",
        DataType::String(None) => "toString",
        DataType::Date => "toDate",
        DataType::Datetime(None) => "toDateTime",
        DataType::Uuid => "toUUID",
        DataType::Bool => "toBool",
        _ => return None,
    })
}
