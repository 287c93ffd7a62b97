//! `-x`: signed, and wide enough.

use std::sync::Arc;

use datafusion::arrow::compute::{cast, kernels::numeric::neg_wrapping};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments::{self, check_count};
use super::numbers::{array_bits, from_bits, rows, shaped};
use super::scalar::Scalar;
use crate::error::Error;
use crate::types::{is_address, is_wide, type_name};

/// The function.
pub fn negate() -> ScalarUDF {
    Scalar::udf(NEGATE, arguments::any(Volatility::Immutable), field, invoke)
}
/// Its name.
pub const NEGATE: &str = "negate";

fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    check_count(NEGATE, args.arg_fields.len(), 1..=1)?;
    let argument = &args.arg_fields[0];
    if is_wide(argument) || is_address(argument) {
        let what = format!("Function negate does not take {} here", type_name(argument));
        return Err(Error::illegal_type(what).into());
    }
    let data_type = match argument.data_type() {
        DataType::Boolean | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        other => other.clone(),
    };
    Ok(Arc::new(Field::new(NEGATE, data_type, argument.is_nullable())))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
    let target = args.return_field.data_type();
    let negated = if target.is_integer() {
        let bits = array_bits(&array).unwrap_or_default();
        from_bits(bits.iter().map(|&v| v.wrapping_neg()).collect(), array.logical_nulls(), target)
            .ok_or_else(|| DataFusionError::Internal(format!("no integers of type {target}")))?
    } else {
        neg_wrapping(&cast(&array, target)?)?
    };
    shaped(negated, &args.args)
}
