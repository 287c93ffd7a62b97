//! `ignore(...)`: evaluates its arguments and returns 0.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments;

/// The function. It is volatile: if the optimiser made it a constant, the arguments would not be evaluated, which is
/// its purpose.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ignore {
    signature: Signature,
}

impl Default for Ignore {
    fn default() -> Self {
        Self { signature: arguments::any(Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Ignore {
    fn name(&self) -> &str {
        "ignore"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt8)
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Field::new(self.name(), DataType::UInt8, false).into())
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::UInt8(Some(0))))
    }
}
