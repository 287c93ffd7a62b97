//! `toBool(x)`, which `true` and `false` are rewritten to: a Bool, shown as a word.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments::{self, check_count};
use super::numbers::{rows, shaped};
use super::scalar::Scalar;
use crate::error::Error;
use crate::types::CLICKHOUSE_TYPE;

const NAME: &str = "toBool";

/// The function.
pub fn to_bool() -> ScalarUDF {
    Scalar::udf(NAME, arguments::any(Volatility::Immutable), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    check_count(NAME, args.arg_fields.len(), 1..=1)?;
    let nullable = args.arg_fields[0].is_nullable();
    let metadata = [(CLICKHOUSE_TYPE.to_owned(), "Bool".to_owned())].into();
    Ok(Arc::new(Field::new(NAME, DataType::Boolean, nullable).with_metadata(metadata)))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
    shaped(converted(&array)?, &args.args)
}

/// Converts values to truth values: a number by whether it is not 0; a text must be one of the words that ClickHouse
/// knows.
pub fn converted(array: &ArrayRef) -> Result<ArrayRef> {
    if !array.data_type().is_string() {
        return Ok(cast(array, &DataType::Boolean)?);
    }
    let texts = cast(array, &DataType::Utf8)?;
    let truth = |text: &str| match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "enable" | "enabled" | "1" => Ok(true),
        "false" | "f" | "no" | "n" | "off" | "disable" | "disabled" | "0" => Ok(false),
        _ => Err(Error::cannot_parse_bool(format!("Cannot parse '{text}' as Bool")).into()),
    };
    let truths = texts.as_string::<i32>().iter().map(|text| text.map(truth).transpose());
    Ok(Arc::new(truths.collect::<Result<BooleanArray>>()?))
}
