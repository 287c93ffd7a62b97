//! `assumeNotNull(x)`: the value in the type without Nullable; the type's default for NULL. `CAST(x AS T)` to such a
//! type refuses NULL instead.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Scalar as Datum};
use datafusion::arrow::compute::{is_not_null, kernels::zip::zip};
use datafusion::common::Result;
use datafusion::logical_expr::{ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments::{self, check_count};
use super::default_value::default_value;
use super::numbers::{rows, shaped};
use super::scalar::Scalar;
use crate::error::Error;

/// The name of [`refuse_null`], which no query can write.
pub const NOT_NULL: &str = "cast/notNull";

/// `assumeNotNull` itself.
pub fn assume_not_null() -> ScalarUDF {
    const NAME: &str = "assumeNotNull";
    let field = |args: ReturnFieldArgs<'_>| {
        check_count(NAME, args.arg_fields.len(), 1..=1)?;
        let field = args.arg_fields[0].as_ref().clone().with_name(NAME);
        let nullable = field.data_type().is_null() && field.is_nullable();
        Ok(Arc::new(field.with_nullable(nullable)))
    };
    Scalar::udf(NAME, arguments::any(Volatility::Immutable), field, |args| {
        let Some(values) = with_nulls(&args)? else { return Ok(args.args[0].clone()) };
        let default = default_value(values.data_type())?.to_array()?;
        shaped(zip(&is_not_null(&values)?, &values, &Datum::new(default))?, &args.args)
    })
}

/// Its variant within CAST, which refuses NULL.
pub fn refuse_null() -> ScalarUDF {
    let field = |args: ReturnFieldArgs<'_>| {
        check_count(NOT_NULL, args.arg_fields.len(), 1..=1)?;
        let field = args.arg_fields[0].as_ref().clone().with_name(NOT_NULL);
        let nullable = field.data_type().is_null();
        Ok(Arc::new(field.with_nullable(nullable)))
    };
    Scalar::udf(NOT_NULL, arguments::any(Volatility::Immutable), field, |args| match with_nulls(&args)? {
        None => Ok(args.args[0].clone()),
        Some(_) => {
            let what = "Cannot convert NULL value to non-Nullable type: write CAST(x AS Nullable(T)) for what may be NULL";
            Err(Error::cannot_insert_null(what).into())
        }
    })
}

/// The values, if NULL is among them, and not all that their type has.
fn with_nulls(args: &ScalarFunctionArgs) -> Result<Option<ArrayRef>> {
    let values = args.args[0].to_array(rows(&args.args, args.number_rows))?;
    Ok(Some(values).filter(|values| values.null_count() > 0 && !values.data_type().is_null()))
}
