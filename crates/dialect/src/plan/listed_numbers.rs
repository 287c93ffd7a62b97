//! Numbers in `x IN (1, 0.5)`: each becomes a value of the type of `x`, or is never found. DataFusion brings all to one
//! type, which can turn a small float into 0 and a large integer into another one.

use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::TryCast;
use datafusion::logical_expr::{Expr, Operator, ScalarUDF, lit, when};
use granary_dict::DataType as ClickHouseType;

use super::in_lists::mismatch;
use crate::error::Error;
use crate::functions::as_type::{AsType, DAYS, MOMENTS};
use crate::functions::{Comparison, MATERIALIZE, NEGATE, exact, range, to_decimal, type_of};
use crate::types::{is_time, is_wide, plain_field_name, type_name};

/// The replacement of a number in a list.
pub enum ListNumber {
    /// Unchanged: DataFusion finds the same values as ClickHouse.
    AsItIs,
    /// The type of `x` has no such value.
    Never,
    As(Expr),
}

impl ListNumber {
    fn of(value: Option<ScalarValue>) -> ListNumber {
        value.map_or(ListNumber::Never, |value| ListNumber::As(lit(value)))
    }
}

/// The replacement of a number of type `given` among values of the field's type.
///
/// # Errors
/// TYPE_MISMATCH if the number would be converted as by CAST, as ClickHouse does with a column's numbers.
pub fn number(item: &Expr, given: &Field, field: &Field) -> Result<ListNumber> {
    let (from, to) = (given.data_type(), field.data_type());
    let (written, is_constant) = (written(item), is_constant(item)?);
    let is_literal = written.is_some();
    let is_seconds = is_moment_of_seconds(field);
    let is_beyond = match to {
        _ if is_seconds && !is_literal => !from.is_unsigned_integer(),
        to if is_time(to) => !from.is_integer(),
        to => from.is_decimal() && !to.is_decimal(),
    };
    let is_converted = from.is_floating() && to.is_integer() || to.is_floating() && is_rounded(from, to);
    let is_cut = from.is_floating() && to.is_decimal() && !is_literal || is_converted && !is_constant;
    if is_constant && is_beyond || is_cut {
        return Err(mismatch(given, field).into());
    }
    Ok(match (written, to) {
        (Some(value), DataType::Date32 | DataType::Timestamp(..)) => {
            let number = value.to_string().parse().unwrap_or(i64::MAX);
            if number < 0 && is_seconds {
                return Err(mismatch(given, field).into());
            }
            match numbers_of(field).contains(&number) {
                true => ListNumber::As(AsType::exact(item.clone(), type_name(field))),
                false => ListNumber::Never,
            }
        }
        (None, DataType::Date32 | DataType::Timestamp(..)) if is_constant => {
            let (low, high) = numbers_of(field).into_inner();
            let value = AsType::exact(item.clone(), type_name(field));
            ListNumber::As(when(item.clone().between(lit(low), lit(high)), value).end()?)
        }
        (Some(value), to) if is_wide(field) || to.is_decimal() && !from.is_decimal() => {
            ListNumber::of(decimal(&value, field)?)
        }
        (Some(value), to) if to.is_integer() || to.is_floating() => ListNumber::of(same(&value, to)?),
        (None, to) if is_converted => {
            let number = Expr::TryCast(TryCast::new(Box::new(item.clone()), to.clone()));
            let equal = ScalarUDF::from(Comparison::of_floats(Operator::Eq));
            ListNumber::As(when(equal.call(vec![item.clone(), number.clone()]), number).end()?)
        }
        _ => ListNumber::AsItIs,
    })
}

/// Whether one type is a float and the other's numbers have more digits than its mantissa.
pub fn is_rounded(one: &DataType, other: &DataType) -> bool {
    let bytes = |integer: &DataType| integer.primitive_width().unwrap_or(0);
    match (one, other) {
        (DataType::Float32, other) | (other, DataType::Float32) if other.is_integer() => bytes(other) >= 4,
        (DataType::Float64, other) | (other, DataType::Float64) if other.is_integer() => bytes(other) >= 8,
        (one, other) => one.is_floating() && other.is_decimal() || one.is_decimal() && other.is_floating(),
    }
}

/// Whether ClickHouse knows the item's value before it reads a row.
pub fn is_constant(item: &Expr) -> Result<bool> {
    let is_call = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.name() == MATERIALIZE);
    Ok(!item.any_column_refs() && !item.exists(|expr| Ok(is_call(expr)))?)
}

/// Whether a field is DateTime, without fraction digits: a DateTime64 may have none, too.
pub fn is_moment_of_seconds(field: &Field) -> bool {
    matches!(field.data_type(), DataType::Timestamp(..))
        && !matches!(type_of(field), Some(ClickHouseType::DateTime64 { .. }))
}

/// The number of a literal in the query, whatever type it was given there.
pub fn written(item: &Expr) -> Option<ScalarValue> {
    match item {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(cast) => written(&cast.expr)?.cast_to(cast.field.data_type()).ok(),
        Expr::ScalarFunction(call) if call.name() == NEGATE => {
            written(&call.args[0])?.arithmetic_negate().ok()
        }
        _ => None,
    }
}

/// The range of a date or time type, in days or seconds.
fn numbers_of(field: &Field) -> RangeInclusive<i64> {
    match field.data_type() {
        DataType::Date32 if plain_field_name(field) == "Date32" => DAYS,
        DataType::Date32 => 0..=u16::MAX.into(),
        _ if is_moment_of_seconds(field) => 0..=u32::MAX.into(),
        _ => MOMENTS,
    }
}

/// An integer or float as a value of another such type; `None` if that type cannot hold it exactly.
fn same(value: &ScalarValue, to: &DataType) -> Result<Option<ScalarValue>> {
    let is_same = match float_of(value) {
        Some(float) if to == &DataType::Float32 => float.is_nan() || f64::from(float as f32) == float,
        Some(_) if to.is_floating() => true,
        Some(float) => {
            let (low, high) = range(to);
            // Both bounds are exact, or exceed the range by one.
            float.trunc() == float && (low as f64..=high as f64).contains(&float) && float as i128 <= high
        }
        None => {
            let whole: Option<i128> = value.to_string().parse().ok();
            let as_float = |whole: i128| match to {
                DataType::Float32 => whole as f32 as i128,
                _ => whole as f64 as i128,
            };
            whole.is_some_and(|whole| match to.is_floating() {
                true => as_float(whole) == whole,
                false => (range(to).0..=range(to).1).contains(&whole),
            })
        }
    };
    is_same.then(|| value.cast_to(to)).transpose()
}

fn float_of(value: &ScalarValue) -> Option<f64> {
    match value {
        ScalarValue::Float64(float) => *float,
        ScalarValue::Float32(float) => float.map(f64::from),
        _ => None,
    }
}

/// The replacement of a literal float among decimals; `None`: it is no such float, or these are no decimals.
///
/// # Errors
/// The float is too large for the decimal type.
pub fn float_among_decimals(item: &Expr, field: &Field) -> Result<Option<ListNumber>> {
    let float = written(item).filter(|value| float_of(value).is_some());
    let Some(float) = float.filter(|_| field.data_type().is_decimal() && !is_wide(field)) else {
        return Ok(None);
    };
    Ok(Some(ListNumber::of(decimal(&float, field)?)))
}

/// A number as a decimal or a wide integer of the field's type, a float cut as by CAST; `None`: it has more digits.
fn decimal(value: &ScalarValue, field: &Field) -> Result<Option<ScalarValue>> {
    let read = |text: String| {
        let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
        exact(&Field::new("", DataType::Utf8, true), &text, field)
    };
    let number = match float_of(value) {
        None => match is_wide(field) {
            true => read(value.to_string()).ok(),
            false => Some(read(value.to_string())?),
        },
        Some(float) if is_wide(field) => {
            let is_whole = float.is_finite() && float.trunc() == float;
            is_whole.then(|| read(format!("{float:.0}")).ok()).flatten()
        }
        Some(float) => {
            let too_large = || Error::argument_out_of_bound(format!("{float} is no {}", type_name(field)));
            let float_array = ScalarValue::Float64(Some(float)).to_array()?;
            let fitted = to_decimal(&float_array, field.data_type()).map_err(|_| too_large())?;
            let fitted = fitted.ok_or_else(too_large)?;
            let again = cast(&fitted, &DataType::Float64)?;
            (again.as_primitive::<Float64Type>().value(0) == float).then_some(fitted)
        }
    };
    number.map(|number| ScalarValue::try_from_array(&number, 0)).transpose()
}
