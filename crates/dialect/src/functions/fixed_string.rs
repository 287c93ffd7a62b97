//! `toFixedString(text, bytes)`: a text padded with zeros. Comparisons and `toString` ignore the padding.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments::{self, check_count, constants};
use super::numbers::{rows, shaped};
use super::scalar::Scalar;
use crate::error::Error;
use crate::limits;
use crate::types::{CLICKHOUSE_TYPE, plain_name};

const NAME: &str = "toFixedString";

/// The function.
pub fn to_fixed_string() -> ScalarUDF {
    Scalar::udf(NAME, arguments::any(Volatility::Immutable), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    check_count(NAME, args.arg_fields.len(), 2..=2)?;
    let given = &args.arg_fields[0];
    if !given.data_type().is_string() && !given.data_type().is_null() {
        let message =
            format!("toFixedString is only implemented for String, not {}", plain_name(given.data_type()));
        return Err(Error::not_implemented(message).into());
    }
    let name = format!("FixedString({})", width(args.scalar_arguments)?);
    let field = Field::new(NAME, DataType::Utf8, given.is_nullable());
    Ok(Arc::new(field.with_metadata([(CLICKHOUSE_TYPE.to_owned(), name)].into())))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let width = width(&constants(&args.args))?;
    let array = args.args[0].to_array(rows(&args.args[..1], args.number_rows))?;
    if array.len().saturating_mul(width) > i32::MAX as usize {
        let message = format!("{} texts of type FixedString({width}) are more than 2 GiB", array.len());
        return Err(Error::too_large_string_size(message).into());
    }
    let texts = cast(&array, &DataType::Utf8)?;
    let pad = |text: Option<&str>| -> Result<Option<String>> {
        let Some(text) = text else { return Ok(None) };
        // A padded text may exceed the width only by zeros.
        let text = if text.len() > width { text.trim_end_matches('\0') } else { text };
        match width.checked_sub(text.len()) {
            Some(zeros) => Ok(Some(format!("{text}{}", "\0".repeat(zeros)))),
            None => {
                let message = format!("String too long for type FixedString({width})");
                Err(Error::too_large_string_size(message).into())
            }
        }
    };
    let texts: StringArray = texts.as_string::<i32>().iter().map(pad).collect::<Result<_>>()?;
    shaped(Arc::new(texts), &args.args[..1])
}

/// The texts without their padding.
pub fn trimmed(array: &ArrayRef) -> ArrayRef {
    let texts = array.as_string::<i32>().iter();
    Arc::new(texts.map(|text| text.map(|text| text.trim_end_matches('\0'))).collect::<StringArray>())
}

fn width(constants: &[Option<&ScalarValue>]) -> Result<usize> {
    let number = constants.get(1).copied().flatten().map(|scalar| scalar.cast_to(&DataType::UInt64));
    match number.transpose()? {
        Some(ScalarValue::UInt64(Some(width))) if (1..=limits::FIXED_STRING_BYTES_MAX).contains(&width) => {
            Ok(width as usize)
        }
        Some(_) => Err(Error::argument_out_of_bound(format!(
            "A FixedString has 1 to {} bytes",
            limits::FIXED_STRING_BYTES_MAX
        ))
        .into()),
        None => Err(Error::illegal_column("The second argument of toFixedString must be constant").into()),
    }
}
