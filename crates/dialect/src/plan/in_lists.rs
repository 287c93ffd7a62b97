//! `x IN (1, 'a')`: what is listed is what `x` is, as in ClickHouse, also within tuples. DataFusion brings both to one
//! type, and there is none for a time and a number.

use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, lit, when};
use granary_dict::digits_of;

use crate::error::Error;
use crate::functions::as_type::{AsType, DAYS, MOMENTS};
use crate::functions::{Convert, MATERIALIZE, NEGATE, TUPLE, exact, number_of};
use crate::text::texts;
use crate::types::{declared, is_address, is_time, is_wide, plain_field_name, type_name};

/// Gives what is listed its type, before DataFusion looks for one. What `x` cannot be is left out.
pub fn of_one_type(list: InList, schema: &DFSchema) -> Result<InList> {
    let InList { expr, list, negated } = list;
    let (_, field) = expr.to_field(schema)?;
    if field.data_type().is_string() {
        let list = list.into_iter().map(|item| as_text(item, schema)).collect::<Result<_>>()?;
        return Ok(InList { expr, list, negated });
    }
    // 2 is no truth value.
    if field.data_type() == &DataType::Boolean && are_any_numbers(&list, schema) {
        let list = list.into_iter().map(|item| truth_as_number(item, schema)).collect::<Result<_>>()?;
        let expr = Box::new(Expr::Cast(Cast::new(expr, DataType::UInt8)));
        return Ok(InList { expr, list, negated });
    }
    let list = list.into_iter().filter_map(|item| of_type(item, &field, schema).transpose());
    Ok(InList { expr, list: list.collect::<Result<_>>()?, negated })
}

fn are_any_numbers(list: &[Expr], schema: &DFSchema) -> bool {
    list.iter().any(|item| item.get_type(schema).is_ok_and(|given| given.is_numeric()))
}

/// A truth value, or a text of one, as a number; numbers as they are.
fn truth_as_number(item: Expr, schema: &DFSchema) -> Result<Expr> {
    let given = item.get_type(schema)?;
    if given.is_numeric() || given.is_null() {
        return Ok(item);
    }
    let truth = match given {
        DataType::Boolean => item,
        _ => ScalarUDF::from(AsType::default()).call(vec![item, lit("Bool")]),
    };
    Ok(Expr::Cast(Cast::new(Box::new(truth), DataType::UInt8)))
}

/// What stands in a list of texts. A number there is its text, as in ClickHouse: `'01'` is not in `(1)`.
fn as_text(item: Expr, schema: &DFSchema) -> Result<Expr> {
    let (_, field) = item.to_field(schema)?;
    let given = field.data_type();
    if given.is_string() || given.is_null() {
        return Ok(item);
    }
    let is_plain = declared(&field).is_none() && (given.is_integer() || given.is_floating());
    if !is_plain {
        return Err(Error::type_mismatch(format!(
            "A {} is not looked for among texts here: write it as a text",
            type_name(&field)
        ))
        .into());
    }
    Ok(ScalarUDF::from(Convert::new("toString", DataType::Utf8)).call(vec![item]))
}

/// Whether DataFusion would not find a number or a text in a column of the type.
fn is_strict(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, FixedSizeBinary, Struct, Timestamp};
    matches!(data_type, Timestamp(..) | Date32 | Boolean | FixedSizeBinary(16) | Struct(_))
}

/// Whether a time would be cut to be of another type: ClickHouse does that with constants, and not for a DateTime.
fn is_finer(given: &DataType, wanted: &DataType) -> bool {
    match (given, wanted) {
        (DataType::Timestamp(..), DataType::Date32) => true,
        (DataType::Timestamp(given, _), DataType::Timestamp(wanted, _)) => {
            digits_of(*given) > digits_of(*wanted)
        }
        _ => false,
    }
}

/// An item as a value of the field's type; `None`: it is none.
fn of_type(item: Expr, field: &Field, schema: &DFSchema) -> Result<Option<Expr>> {
    let (_, given_field) = item.to_field(schema)?;
    let given = given_field.data_type();
    let is_number = field.data_type().is_numeric() && declared(field).is_none();
    if given.is_string() && (is_number || field.data_type() == &DataType::Date32) {
        return number_of(item, field.data_type()).map(Some);
    }
    if is_address(&given_field) && !is_address(field) && field.data_type().is_numeric() && is_constant(&item)?
    {
        return Err(mismatch(&given_field, field).into());
    }
    let is_cut = is_finer(given, field.data_type());
    let is_moment = matches!(field.data_type(), DataType::Timestamp(TimeUnit::Second, _));
    if is_cut && (is_moment || !is_constant(&item)?) {
        return Err(mismatch(&given_field, field).into());
    }
    if given == field.data_type() || given.is_null() {
        return Ok(Some(item));
    }
    let is_number = given.is_numeric() && !is_wide(&given_field);
    if is_number && let Some(found) = number(&item, &given_field, field)? {
        return Ok(found);
    }
    if !is_strict(field.data_type()) {
        return Ok(Some(item));
    }
    Ok(Some(match (item, field.data_type()) {
        (Expr::ScalarFunction(ScalarFunction { func, args }), DataType::Struct(fields))
            if func.name() == TUPLE && args.len() == fields.len() =>
        {
            let args = args.into_iter().zip(fields).map(|(item, field)| of_type(item, field, schema));
            let Some(args) = args.collect::<Result<Option<_>>>()? else { return Ok(None) };
            Expr::ScalarFunction(ScalarFunction { func, args })
        }
        (item, DataType::Struct(_)) => item,
        // ClickHouse reads the times of a list by stricter rules than those of CAST.
        (Expr::Literal(text, _), DataType::Timestamp(..)) if given.is_string() => {
            let time = exact(&Field::new("", given.clone(), true), &text.to_array()?, field)?;
            lit(ScalarValue::try_from_array(&time, 0)?)
        }
        (item, _) => AsType::exact(item, type_name(field)),
    }))
}

/// What a number is among times and decimals, or a decimal among other numbers: `None` if DataFusion finds what ClickHouse
/// does; or else its value, if it is one. Of a column's numbers ClickHouse makes what CAST does.
fn number(item: &Expr, given: &Field, field: &Field) -> Result<Option<Option<Expr>>> {
    let (from, to) = (given.data_type(), field.data_type());
    let (written, is_constant) = (written(item), is_constant(item)?);
    let is_literal = written.is_some();
    let is_beyond = |to: &DataType| match to {
        DataType::Timestamp(TimeUnit::Second, _) if !is_literal => !from.is_unsigned_integer(),
        to if is_time(to) => !from.is_integer(),
        to => from.is_decimal() && !to.is_decimal(),
    };
    if is_constant && is_beyond(to) || !is_literal && from.is_floating() && to.is_decimal() {
        return Err(mismatch(given, field).into());
    }
    match (&written, to) {
        (Some(value), DataType::Date32 | DataType::Timestamp(..)) => {
            let number = value.to_string().parse().unwrap_or(i64::MAX);
            if number < 0 && matches!(to, DataType::Timestamp(TimeUnit::Second, _)) {
                return Err(mismatch(given, field).into());
            }
            let is_one = numbers_of(field).contains(&number);
            Ok(Some(is_one.then(|| AsType::exact(item.clone(), type_name(field)))))
        }
        (None, DataType::Date32 | DataType::Timestamp(..)) if is_constant => {
            let (low, high) = numbers_of(field).into_inner();
            let value = AsType::exact(item.clone(), type_name(field));
            Ok(Some(Some(when(item.clone().between(lit(low), lit(high)), value).end()?)))
        }
        (Some(value), DataType::Decimal128(..)) if declared(field).is_none() && !from.is_decimal() => {
            Ok(Some(decimal(value, field)?))
        }
        _ => Ok(None),
    }
}

/// Whether ClickHouse knows the item's value before it reads a row.
fn is_constant(item: &Expr) -> Result<bool> {
    let is_call = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.name() == MATERIALIZE);
    Ok(!item.any_column_refs() && !item.exists(|expr| Ok(is_call(expr)))?)
}

/// The number that is written in a query, whatever type it was given there.
fn written(item: &Expr) -> Option<ScalarValue> {
    match item {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(cast) => written(&cast.expr)?.cast_to(cast.field.data_type()).ok(),
        Expr::ScalarFunction(call) if call.name() == NEGATE => {
            written(&call.args[0])?.arithmetic_negate().ok()
        }
        _ => None,
    }
}

fn mismatch(given: &Field, field: &Field) -> Error {
    let (to, from) = (type_name(field), type_name(given));
    Error::type_mismatch(format!("Type mismatch in IN or VALUES section. Expected: {to}. Got: {from}"))
}

/// The days or seconds that a time may be.
fn numbers_of(field: &Field) -> RangeInclusive<i64> {
    match field.data_type() {
        DataType::Date32 if plain_field_name(field) == "Date32" => DAYS,
        DataType::Date32 => 0..=u16::MAX.into(),
        DataType::Timestamp(TimeUnit::Second, _) => 0..=u32::MAX.into(),
        _ => MOMENTS,
    }
}

/// A number as a decimal of the field's type; `None`: it has other digits.
fn decimal(value: &ScalarValue, field: &Field) -> Result<Option<Expr>> {
    let float = match value {
        ScalarValue::Float64(float) => *float,
        ScalarValue::Float32(float) => float.map(f64::from),
        _ => None,
    };
    let written = float.map_or_else(|| value.to_string(), |float| float.to_string());
    let written: ArrayRef = Arc::new(StringArray::from(vec![written]));
    let decimal = exact(&Field::new("", DataType::Utf8, true), &written, field)?;
    let read = texts(field, &decimal)?.value(0).parse::<f64>().ok();
    let is_same = float.is_none() || read == float;
    Ok(is_same.then_some(lit(ScalarValue::try_from_array(&decimal, 0)?)))
}
