//! `tuple(a, b)`, also written `(a, b)`: a struct with fields 1, 2, ...

use std::sync::Arc;

use datafusion::arrow::array::StructArray;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments;
use super::numbers::{expanded, rows};
use super::scalar::Scalar;

/// Its name.
pub const TUPLE: &str = "tuple";

/// The function.
pub fn tuple() -> ScalarUDF {
    Scalar::udf(TUPLE, arguments::any(Volatility::Immutable), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    let items: Fields = args
        .arg_fields
        .iter()
        .enumerate()
        .map(|(i, field)| field.as_ref().clone().with_name((i + 1).to_string()))
        .collect();
    Ok(Arc::new(Field::new(TUPLE, DataType::Struct(items), false)))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let DataType::Struct(fields) = args.return_field.data_type() else {
        return Err(DataFusionError::Internal("a tuple is a struct".into()));
    };
    let rows = rows(&args.args, args.number_rows);
    let items = args.args.iter().map(|item| expanded(item, rows)).collect::<Result<Vec<_>>>()?;
    let tuple = Arc::new(match items.is_empty() {
        true => StructArray::new_empty_fields(rows, None),
        false => StructArray::try_new(fields.clone(), items, None)?,
    });
    if args.args.iter().any(|item| matches!(item, ColumnarValue::Array(_))) {
        Ok(ColumnarValue::Array(tuple))
    } else {
        Ok(ColumnarValue::Scalar(ScalarValue::Struct(tuple)))
    }
}
