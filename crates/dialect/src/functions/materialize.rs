//! `materialize(x)`: the value as a column; that it is constant is unknown until the query runs.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::numbers::expanded;

/// Its name.
pub const MATERIALIZE: &str = "materialize";

/// The function. It is volatile, so that it is not evaluated during planning.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Materialize {
    signature: Signature,
}

impl Default for Materialize {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Materialize {
    fn name(&self) -> &str {
        MATERIALIZE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of materialize is that of its argument's field".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_name(self.name())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array(expanded(&args.args[0], args.number_rows)?))
    }
}
