//! `toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments::{self, check_count};
use super::numbers::{rows, shaped};
use super::scalar::Scalar;
use crate::error::Error;
use crate::types::{plain_field_name, plain_name};

const NAME: &str = "toUUID";

/// The function.
pub fn to_uuid() -> ScalarUDF {
    Scalar::udf(NAME, arguments::any(Volatility::Immutable), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    check_count(NAME, args.arg_fields.len(), 1..=1)?;
    let given = plain_field_name(&args.arg_fields[0]);
    if given == "IPv6" {
        return Err(
            Error::not_implemented(format!("Conversion from {given} to UUID is not supported")).into()
        );
    }
    let nullable = args.arg_fields[0].is_nullable();
    Ok(Arc::new(Field::new(NAME, DataType::FixedSizeBinary(16), nullable)))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
    shaped(parse(&array)?, &args.args)
}

/// Parses texts as UUIDs, in the byte order of the text.
pub fn parse(array: &ArrayRef) -> Result<ArrayRef> {
    if array.data_type() == &DataType::FixedSizeBinary(16) {
        return Ok(Arc::clone(array));
    }
    if array.data_type().is_numeric() {
        let from = plain_name(array.data_type());
        let what = format!("Conversion from {from} to UUID is not supported; a UUID is a text in quotes");
        return Err(Error::not_implemented(what).into());
    }
    let texts = cast(array, &DataType::Utf8)?;
    let mut builder = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
    for text in texts.as_string::<i32>() {
        match text {
            None => builder.append_null(),
            Some(text) => match bytes(text) {
                Some(bytes) => builder.append_value(bytes)?,
                None => return Err(Error::cannot_parse_uuid(format!("Cannot parse uuid {text}")).into()),
            },
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// The bytes of a UUID written with all of its hyphens, or with none.
pub fn bytes(text: &str) -> Option<[u8; 16]> {
    let is_hyphenated = text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let digits = if is_hyphenated { text.replace('-', "") } else { text.to_owned() };
    let plausible = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = plausible.then(|| u128::from_str_radix(&digits, 16).ok())?;
    number.map(u128::to_be_bytes)
}
