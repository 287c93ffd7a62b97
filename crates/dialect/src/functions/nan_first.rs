//! NaN as the least or the greatest float in Arrow's order, so that `max` and `min` prefer all others.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::numbers::{rows, shaped};

/// NaN as the least, or as the greatest. No query can write the function's name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct NanFirst {
    is_least: bool,
    signature: Signature,
}

impl NanFirst {
    /// Makes NaN less than all numbers.
    pub fn least() -> Self {
        Self { is_least: true, signature: Signature::any(1, Volatility::Immutable) }
    }

    /// Makes NaN greater than all numbers.
    pub fn greatest() -> Self {
        Self { is_least: false, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for NanFirst {
    fn name(&self) -> &str {
        if self.is_least { "nan/least" } else { "nan/greatest" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = &args.arg_fields[0];
        Ok(Arc::new(Field::new(self.name(), field.data_type().clone(), field.is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        let sign = if self.is_least { -1.0_f64 } else { 1.0 };
        let nan = f64::NAN.copysign(sign);
        shaped(
            match values.data_type() {
                DataType::Float32 => {
                    Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|value| {
                        if value.is_nan() { f32::NAN.copysign(sign as f32) } else { value }
                    }))
                }
                _ => Arc::new(
                    values
                        .as_primitive::<Float64Type>()
                        .unary::<_, Float64Type>(|value| if value.is_nan() { nan } else { value }),
                ),
            },
            &args.args,
        )
    }
}
