//! `ignore(...)`: evaluates its arguments and returns 0.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments;
use super::scalar::Scalar;

const NAME: &str = "ignore";

/// The function. It is volatile: if the optimiser made it a constant, the arguments would not be evaluated, which is
/// its purpose.
pub fn ignore() -> ScalarUDF {
    Scalar::udf(NAME, arguments::any(Volatility::Volatile), field, invoke)
}
fn field(_args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    Ok(Field::new(NAME, DataType::UInt8, false).into())
}

fn invoke(_args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Scalar(ScalarValue::UInt8(Some(0))))
}
