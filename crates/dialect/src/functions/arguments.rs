//! The arguments of our functions, which check their number themselves, with ClickHouse's messages.

use std::ops::RangeInclusive;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{ColumnarValue, Signature, TypeSignature, Volatility};

use crate::error::Error;

/// The signature of a function that checks its arguments itself: any number of any types.
pub fn any(volatility: Volatility) -> Signature {
    Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], volatility)
}

/// Refuses a call with a wrong number of arguments.
///
/// # Errors
/// NUMBER_OF_ARGUMENTS_DOESNT_MATCH.
pub fn check_count(function: &str, given: usize, wanted: RangeInclusive<usize>) -> Result<(), Error> {
    if wanted.contains(&given) {
        return Ok(());
    }
    let (least, most) = wanted.into_inner();
    Err(wrong_count(function, given, if given < least { least } else { most }))
}

/// The error of a call with a wrong number of arguments.
pub fn wrong_count(function: &str, given: usize, wanted: usize) -> Error {
    Error::wrong_argument_count(format!(
        "Number of arguments for function {function} doesn't match: passed {given}, should be {wanted}"
    ))
}

/// The values of the arguments that are constants.
pub fn constants(arguments: &[ColumnarValue]) -> Vec<Option<&ScalarValue>> {
    arguments
        .iter()
        .map(|argument| match argument {
            ColumnarValue::Scalar(scalar) => Some(scalar),
            ColumnarValue::Array(_) => None,
        })
        .collect()
}
