//! The value of `(SELECT array ..)`, where a subquery is used as a value: DataFusion takes it out of its column, and
//! loses the declared types of the items.

use std::sync::Arc;

use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments;
use super::numbers::{rows, shaped};
use crate::error::Error;
use crate::types::plain_name;

/// The function around such a subquery.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SubqueryValue {
    signature: Signature,
}

impl Default for SubqueryValue {
    fn default() -> Self {
        Self { signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for SubqueryValue {
    fn name(&self) -> &'static str {
        "subqueryValue"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of a subquery is that of its column".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        // The items say their types; what the column says is not known when the query runs.
        Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_metadata([].into())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
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
}
