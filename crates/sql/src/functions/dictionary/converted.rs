//! Keys and defaults in the type that a dictionary has them in: ClickHouse is stricter there than elsewhere.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::Result;
use granary_dialect::Error;
use granary_dialect::functions::exact;
use granary_dialect::functions::trimmed;
use granary_dialect::types::{declared, fixed_bytes, is_time, type_name};
use granary_dict::DataType as ClickHouseType;

/// The same values in the type of another field. The zeros behind a FixedString are not of its text.
pub fn converted(field: &Field, array: &ArrayRef, to: &Field) -> Result<ArrayRef> {
    let is_special = is_address(to) || matches!(to.data_type(), DataType::FixedSizeBinary(_));
    if is_special && !is_address(field) && array.data_type().is_numeric() {
        let message = format!("Conversion from {} to {} is not supported", type_name(field), type_name(to));
        return Err(Error::cannot_convert_type(message).into());
    }
    if is_time(to.data_type()) && is_unsafe(array)? {
        let (from, to) = (type_name(field), type_name(to));
        let message = format!("Value in column {from} cannot be safely converted into type {to}");
        return Err(Error::cannot_convert_type(message).into());
    }
    let trimmed =
        (fixed_bytes(field).is_some() && array.data_type() == &DataType::Utf8).then(|| trimmed(array));
    exact(field, trimmed.as_ref().unwrap_or(array), to).map_err(|error| {
        let error = Error::from(error);
        match error.code == Error::attempt_to_read_after_eof("").code {
            true => Error::cannot_parse_text(error.message).into(),
            false => error.into(),
        }
    })
}

fn is_address(field: &Field) -> bool {
    declared(field).is_some_and(|declared| declared.inner() == &ClickHouseType::Ipv4)
}

/// Whether numbers are not all what a time can be counted in.
fn is_unsafe(array: &ArrayRef) -> Result<bool> {
    Ok(match array.data_type() {
        DataType::Float32 | DataType::Float64 => array.null_count() < array.len(),
        data_type if data_type.is_signed_integer() => {
            let wide = cast(array, &DataType::Int64)?;
            wide.as_primitive::<Int64Type>().iter().flatten().any(|number| number < 0)
        }
        _ => false,
    })
}
