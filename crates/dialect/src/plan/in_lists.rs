//! `x IN (1, 'a')`: what is listed is what `x` is, as in ClickHouse, also within tuples. DataFusion brings both to one
//! type, and there is none for a time and a number.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, lit};

use crate::error::Error;
use crate::functions::as_type::AsType;
use crate::functions::{Convert, exact, number_of};
use crate::types::{declared, type_name};

/// Gives what is listed its type, before DataFusion looks for one.
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
    let list = list.into_iter().map(|item| of_type(item, &field, schema)).collect::<Result<_>>()?;
    Ok(InList { expr, list, negated })
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

fn of_type(item: Expr, field: &Field, schema: &DFSchema) -> Result<Expr> {
    let given = item.get_type(schema)?;
    if field.data_type().is_numeric() && declared(field).is_none() && given.is_string() {
        return number_of(item, field.data_type());
    }
    if given == *field.data_type() || given.is_null() || !is_strict(field.data_type()) {
        return Ok(item);
    }
    match (item, field.data_type()) {
        (Expr::ScalarFunction(ScalarFunction { func, args }), DataType::Struct(fields))
            if func.name() == "tuple" && args.len() == fields.len() =>
        {
            let args = args.into_iter().zip(fields).map(|(item, field)| of_type(item, field, schema));
            Ok(Expr::ScalarFunction(ScalarFunction { func, args: args.collect::<Result<_>>()? }))
        }
        (item, DataType::Struct(_)) => Ok(item),
        // ClickHouse reads the times of a list by stricter rules than those of CAST.
        (Expr::Literal(text, _), DataType::Timestamp(..)) if given.is_string() => {
            let time = exact(&Field::new("", given, true), &text.to_array()?, field)?;
            Ok(lit(ScalarValue::try_from_array(&time, 0)?))
        }
        (item, _) => {
            let function = ScalarUDF::from(AsType::default());
            Ok(function.call(vec![item, lit(type_name(field))]))
        }
    }
}
