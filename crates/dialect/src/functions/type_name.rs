//! `toTypeName(x)`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use crate::types::pretty_type_name;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ToTypeName {
    signature: Signature,
}

impl Default for ToTypeName {
    fn default() -> Self {
        Self { signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ToTypeName {
    fn name(&self) -> &str {
        "toTypeName"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=1)?;
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(pretty_type_name(&args.arg_fields[0])))))
    }
}
