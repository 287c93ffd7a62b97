//! A function without state of its own, as DataFusion calls it.

use std::fmt;
use std::hash::{Hash, Hasher};

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// A function whose name says all about it: no two of them have one name.
pub struct Scalar {
    name: &'static str,
    signature: Signature,
    field: fn(ReturnFieldArgs<'_>) -> Result<FieldRef>,
    invoke: fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
}

impl Scalar {
    /// A function that returns values of `field`, computed by `invoke`.
    pub fn udf(
        name: &'static str,
        signature: Signature,
        field: fn(ReturnFieldArgs<'_>) -> Result<FieldRef>,
        invoke: fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
    ) -> ScalarUDF {
        ScalarUDF::from(Self { name, signature, field, invoke })
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scalar").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Scalar {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} needs its arguments' fields", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        (self.field)(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.invoke)(args)
    }
}
