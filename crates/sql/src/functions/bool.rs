//! `toBool(x)`, of which `true` and `false` are made: a Bool, which is shown as a word.

use std::sync::Arc;

use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::numbers::{rows, shaped};
use crate::types::CLICKHOUSE_TYPE;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ToBool {
    signature: Signature,
}

impl Default for ToBool {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ToBool {
    fn name(&self) -> &str {
        "toBool"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields[0].is_nullable();
        let metadata = [(CLICKHOUSE_TYPE.to_owned(), "Bool".to_owned())].into();
        Ok(Arc::new(Field::new(self.name(), DataType::Boolean, nullable).with_metadata(metadata)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        shaped(cast(&array, &DataType::Boolean)?, &args.args)
    }
}
