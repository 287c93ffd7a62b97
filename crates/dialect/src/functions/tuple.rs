//! `tuple(a, b)`, also written `(a, b)`: a struct with fields 1, 2, ...

use std::sync::Arc;

use datafusion::arrow::array::StructArray;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments;
use super::numbers::{expanded, rows};

/// Its name.
pub const TUPLE: &str = "tuple";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    signature: Signature,
}

impl Default for Tuple {
    fn default() -> Self {
        Self { signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Tuple {
    fn name(&self) -> &str {
        TUPLE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of a tuple needs the fields of its items".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let items: Fields = args
            .arg_fields
            .iter()
            .enumerate()
            .map(|(i, field)| field.as_ref().clone().with_name((i + 1).to_string()))
            .collect();
        Ok(Arc::new(Field::new(self.name(), DataType::Struct(items), false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
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
}
