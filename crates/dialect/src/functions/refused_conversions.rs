//! Errors of conversions that do not exist.

use datafusion::arrow::datatypes::{DataType, Field};

use crate::error::Error;
use crate::types::{plain_name, type_name};

/// The error, as ClickHouse reports it.
pub fn refused(from: &Field, to: &DataType) -> Error {
    let (from_name, to_name) = (type_name(from), plain_name(to));
    let message = format!("Conversion from {from_name} to {to_name} is not supported");
    match from.data_type() {
        // UUID, or IPv6.
        DataType::FixedSizeBinary(_) => Error::not_implemented(message),
        data_type if data_type.is_nested() => {
            Error::illegal_type(format!("Illegal type {from_name} of argument of function to{to_name}"))
        }
        _ => Error::cannot_convert_type(message),
    }
}
