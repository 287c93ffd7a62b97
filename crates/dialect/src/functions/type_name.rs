//! `toTypeName(x)`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments::{self, check_count};
use super::scalar::Scalar;
use crate::types::pretty_type_name;

const NAME: &str = "toTypeName";

/// The function.
pub fn to_type_name() -> ScalarUDF {
    Scalar::udf(NAME, arguments::any(Volatility::Immutable), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    check_count(NAME, args.arg_fields.len(), 1..=1)?;
    Ok(Arc::new(Field::new(NAME, DataType::Utf8, false)))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(pretty_type_name(&args.arg_fields[0])))))
}
