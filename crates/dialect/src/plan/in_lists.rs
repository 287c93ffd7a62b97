//! `x IN (1, 'a')`: listed values are read as the type of `x`, as in ClickHouse, also within tuples. DataFusion looks
//! for a common type, which a time and a number do not have.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, lit};
use granary_dict::DataType as ClickHouseType;

use super::coercion::ARRAY;
use super::listed_numbers::{ListNumber, is_constant, is_rounded, number, written};
use crate::error::Error;
use crate::functions::as_type::AsType;
use crate::functions::{Convert, TUPLE, exact, number_of, type_of};
use crate::types::{declared, fixed_bytes, is_address, is_wide, plain_field_name, type_name};

/// Converts listed values to the type of `x`, before DataFusion coerces them. Values that `x` cannot have are removed.
pub fn of_one_type(list: InList, schema: &DFSchema) -> Result<InList> {
    let InList { expr, list, negated } = list;
    let (_, field) = expr.to_field(schema)?;
    check_not_fixed(&field)?;
    list.iter().try_for_each(|item| check_not_fixed(&item.to_field(schema)?.1))?;
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

/// A truth value, or a text of one, as a number; numbers stay.
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

/// Refuses a FixedString, whose padding would be compared, also within tuples, arrays and maps.
pub(super) fn check_not_fixed(field: &Field) -> Result<()> {
    match (fixed_bytes(field), field.data_type()) {
        (None, DataType::List(item) | DataType::Map(item, _)) => check_not_fixed(item),
        (None, DataType::Struct(fields)) => fields.iter().try_for_each(|field| check_not_fixed(field)),
        (None, _) => Ok(()),
        (Some(_), _) => Err(Error::type_mismatch(format!(
            "A {} is neither looked for nor listed here: toString makes a String of it",
            type_name(field)
        ))
        .into()),
    }
}

/// An item of a list of texts. A number is converted to its text, as in ClickHouse: `'01'` is not in `(1)`.
fn as_text(item: Expr, schema: &DFSchema) -> Result<Expr> {
    let (_, field) = item.to_field(schema)?;
    let given = field.data_type();
    if given.is_string() || given.is_null() {
        return Ok(item);
    }
    // ClickHouse writes a constant whole float differently there: `2.`.
    let has_text = !given.is_floating() || !is_constant(&item)? || is_fraction(&item);
    let is_plain = declared(&field).is_none() && (given.is_integer() || given.is_floating());
    if !is_plain || !has_text {
        return Err(Error::type_mismatch(format!(
            "A {} is not looked for among texts here: write it as a text",
            type_name(&field)
        ))
        .into());
    }
    Ok(ScalarUDF::from(Convert::new("toString", DataType::Utf8)).call(vec![item]))
}

/// Whether a literal float has a fraction.
fn is_fraction(item: &Expr) -> bool {
    matches!(written(item), Some(ScalarValue::Float64(Some(float))) if float.fract() != 0.0)
}

/// Whether DataFusion would not find numbers or texts in a column of the type.
fn is_strict(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, FixedSizeBinary, Struct, Timestamp};
    matches!(data_type, Timestamp(..) | Date32 | Boolean | FixedSizeBinary(16) | Struct(_))
}

/// Whether a time would lose precision in another type: ClickHouse cuts constants, except for a DateTime.
fn is_finer(given: &Field, wanted: &Field) -> bool {
    match (given.data_type(), wanted.data_type()) {
        (DataType::Timestamp(..), DataType::Date32) => true,
        (DataType::Timestamp(..), DataType::Timestamp(..)) => precision(given) > precision(wanted),
        _ => false,
    }
}

/// Fraction digits of a DateTime64, possibly 0; `None` for other types.
fn precision(field: &Field) -> Option<u8> {
    match type_of(field) {
        Some(ClickHouseType::DateTime64 { precision, .. }) => Some(precision),
        _ => None,
    }
}

/// An item as a value of the field's type; `None`: the type has no such value.
fn of_type(item: Expr, field: &Field, schema: &DFSchema) -> Result<Option<Expr>> {
    let (_, given_field) = item.to_field(schema)?;
    let given = given_field.data_type();
    if field.data_type().is_string() {
        return as_text(item, schema).map(Some);
    }
    let is_number = field.data_type().is_numeric() && declared(field).is_none();
    if given.is_string() && (is_number || field.data_type() == &DataType::Date32) {
        return number_of(item, field).map(Some);
    }
    if is_address(&given_field) && !is_address(field) && field.data_type().is_numeric() && is_constant(&item)?
    {
        return Err(mismatch(&given_field, field).into());
    }
    let are_bytes = [given, field.data_type()].iter().all(|bytes| **bytes == DataType::FixedSizeBinary(16));
    if are_bytes && plain_field_name(&given_field) != plain_field_name(field) {
        return Err(mismatch(&given_field, field).into());
    }
    let is_cut = is_finer(&given_field, field);
    let is_whole = precision(field).is_none() && precision(&given_field).is_some();
    if is_cut && (is_whole || !is_constant(&item)?) {
        return Err(mismatch(&given_field, field).into());
    }
    if given == field.data_type() && !is_cut || given.is_null() {
        return Ok(Some(item));
    }
    if given.is_numeric() && !is_wide(&given_field) {
        match number(&item, &given_field, field)? {
            ListNumber::AsItIs => {}
            ListNumber::Never => return Ok(None),
            ListNumber::As(value) => return Ok(Some(value)),
        }
    }
    if let (DataType::List(field), Expr::ScalarFunction(ScalarFunction { func, args })) =
        (field.data_type(), &item)
        && func.name() == ARRAY
    {
        let args = args.iter().map(|item| of_type(item.clone(), field, schema));
        let Some(args) = args.collect::<Result<Option<_>>>()? else { return Ok(None) };
        return Ok(Some(Expr::ScalarFunction(ScalarFunction { func: Arc::clone(func), args })));
    }
    let is_tuple = matches!(&item, Expr::ScalarFunction(call) if call.name() == TUPLE);
    if !is_tuple && has_other_numbers(given, field.data_type()) {
        return Err(mismatch(&given_field, field).into());
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
        // ClickHouse reads listed times by stricter rules than CAST's.
        (Expr::Literal(text, _), DataType::Timestamp(..)) if given.is_string() => {
            let time = exact(&Field::new("", given.clone(), true), &text.to_array()?, field)?;
            lit(ScalarValue::try_from_array(&time, 0)?)
        }
        (item, _) => AsType::exact(item, type_name(field)),
    }))
}

/// Whether arrays, maps or tuples have floats where the others have numbers that DataFusion would round for comparison.
pub fn has_other_numbers(given: &DataType, wanted: &DataType) -> bool {
    let within = |given: &Field, wanted: &Field| {
        let (given, wanted) = (given.data_type(), wanted.data_type());
        is_rounded(given, wanted) || has_other_numbers(given, wanted)
    };
    match (given, wanted) {
        (DataType::List(given), DataType::List(wanted))
        | (DataType::Map(given, _), DataType::Map(wanted, _)) => within(given, wanted),
        (DataType::Struct(given), DataType::Struct(wanted)) => {
            given.iter().zip(wanted).any(|(given, wanted)| within(given, wanted))
        }
        _ => false,
    }
}

pub fn mismatch(given: &Field, field: &Field) -> Error {
    let (to, from) = (type_name(field), type_name(given));
    Error::type_mismatch(format!("Type mismatch in IN or VALUES section. Expected: {to}. Got: {from}"))
}
