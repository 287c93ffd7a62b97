//! NaN as the least or the greatest float in Arrow's order, so that `max` and `min` prefer all others.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, Signature, Volatility};

use super::numbers::{rows, shaped};
use super::scalar::Scalar;

/// NaN as less than all numbers. No query can write the function's name.
pub fn nan_least() -> ScalarUDF {
    const NAME: &str = "nan/least";
    Scalar::udf(
        NAME,
        Signature::any(1, Volatility::Immutable),
        |args| Ok(as_given(NAME, &args.arg_fields[0])),
        |args| with_nan(&args, -1.0),
    )
}

/// NaN as greater than all numbers. No query can write the function's name.
pub fn nan_greatest() -> ScalarUDF {
    const NAME: &str = "nan/greatest";
    Scalar::udf(
        NAME,
        Signature::any(1, Volatility::Immutable),
        |args| Ok(as_given(NAME, &args.arg_fields[0])),
        |args| with_nan(&args, 1.0),
    )
}

fn as_given(name: &str, field: &Field) -> FieldRef {
    Arc::new(Field::new(name, field.data_type().clone(), field.is_nullable()))
}

/// The floats, where each NaN has the sign of `sign`.
fn with_nan(args: &ScalarFunctionArgs, sign: f64) -> Result<ColumnarValue> {
    let values = args.args[0].to_array(rows(&args.args, args.number_rows))?;
    let (short, long) = (f32::NAN.copysign(sign as f32), f64::NAN.copysign(sign));
    let values: ArrayRef = match values.data_type() {
        DataType::Float32 => Arc::new(
            values
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|value| if value.is_nan() { short } else { value }),
        ),
        _ => Arc::new(
            values
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|value| if value.is_nan() { long } else { value }),
        ),
    };
    shaped(values, &args.args)
}
