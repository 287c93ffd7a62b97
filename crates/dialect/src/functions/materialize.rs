//! `materialize(x)`: the value as a column; that it is constant is unknown until the query runs.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Signature, Volatility,
};

use super::numbers::expanded;
use super::scalar::Scalar;

/// Its name.
pub const MATERIALIZE: &str = "materialize";

/// The function. It is volatile, so that it is not evaluated during planning.
pub fn materialize() -> ScalarUDF {
    Scalar::udf(MATERIALIZE, Signature::any(1, Volatility::Volatile), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_name(MATERIALIZE)))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Array(expanded(&args.args[0], args.number_rows)?))
}
