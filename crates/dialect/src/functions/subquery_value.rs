//! The value of `(SELECT array ..)`, where a subquery is used as a value: DataFusion takes it out of its column, and
//! loses the declared types of the items.

use std::sync::Arc;

use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments;
use super::numbers::{rows, shaped};
use super::scalar::Scalar;
use crate::error::Error;
use crate::types::plain_name;

const NAME: &str = "subqueryValue";

/// The function around such a subquery.
pub fn subquery_value() -> ScalarUDF {
    Scalar::udf(NAME, arguments::any(Volatility::Immutable), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    // The items say their types; what the column says is not known when the query runs.
    Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_metadata([].into())))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let wanted = args.return_field.data_type();
    let values = args.args[0].to_array(rows(&args.args, args.number_rows))?;
    if wanted.is_list() && values.null_count() > 0 {
        let what = format!(
            "Scalar subquery returned empty result of type {} which cannot be Nullable",
            plain_name(wanted)
        );
        return Err(Error::incorrect_subquery(what).into());
    }
    let values = if values.data_type() == wanted { values } else { cast(&values, wanted)? };
    shaped(values, &args.args)
}
