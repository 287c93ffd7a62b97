//! `assumeNotNull(x)`: the value in the type without Nullable; the type's default for NULL. `CAST(x AS T)` to such a
//! type refuses NULL instead.

use std::sync::Arc;

use datafusion::arrow::array::{Array, Scalar};
use datafusion::arrow::compute::{is_not_null, kernels::zip::zip};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use super::default_value::default_value;
use super::numbers::{rows, shaped};
use crate::error::Error;

/// The name of [`AssumeNotNull::checked`], which no query can write.
pub const NOT_NULL: &str = "cast/notNull";

/// `assumeNotNull`, or its variant within CAST.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct AssumeNotNull {
    /// Whether NULL is an error.
    is_checked: bool,
    signature: Signature,
}

impl AssumeNotNull {
    /// `assumeNotNull` itself.
    pub fn unchecked() -> Self {
        Self { is_checked: false, signature: arguments::any(Volatility::Immutable) }
    }

    /// The variant of CAST, which refuses NULL.
    pub fn checked() -> Self {
        Self { is_checked: true, signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for AssumeNotNull {
    fn name(&self) -> &str {
        if self.is_checked { NOT_NULL } else { "assumeNotNull" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of assumeNotNull is that of its argument's field".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=1)?;
        let field = args.arg_fields[0].as_ref().clone().with_name(self.name());
        let nullable = field.data_type().is_null();
        if !self.is_checked && field.data_type().is_null() {
            return Ok(Arc::new(field));
        }
        Ok(Arc::new(field.with_nullable(nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        if values.null_count() == 0 || values.data_type().is_null() {
            return Ok(args.args[0].clone());
        }
        if self.is_checked {
            let what = "Cannot convert NULL value to non-Nullable type: write CAST(x AS Nullable(T)) for what may be NULL";
            return Err(Error::cannot_insert_null(what).into());
        }
        let default = default_value(values.data_type())?.to_array()?;
        shaped(zip(&is_not_null(&values)?, &values, &Scalar::new(default))?, &args.args)
    }
}
