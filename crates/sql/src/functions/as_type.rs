//! `asType(x, 'IPv4')`, of which `toIPv4(x)`, `toDateTime64(x, 3)`, `CAST(x AS Int128)` and the like are made: the types
//! that Arrow does not have, and times in a zone.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dict::DataType as ClickHouseType;

use super::convert::{clamped, convert};
use super::exact::adopted;
use super::numbers::{rows, shaped};
use super::planner::constant_text;
use crate::error::Error;

/// Its name, which nobody writes.
pub const AS_TYPE: &str = "asType";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct AsType {
    signature: Signature,
}

impl Default for AsType {
    fn default() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for AsType {
    fn name(&self) -> &str {
        AS_TYPE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of asType needs its constant argument".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let wanted = wanted(args.scalar_arguments[1])?;
        let nullable = wanted.is_nullable() || args.arg_fields[0].is_nullable();
        Ok(Arc::new(wanted.inner().to_field(AS_TYPE).with_nullable(nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let wanted = match &args.args[1] {
            ColumnarValue::Scalar(name) => wanted(Some(name))?,
            ColumnarValue::Array(_) => wanted(None)?,
        };
        let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        let converted = match wanted.inner() {
            ClickHouseType::DateTime { .. } | ClickHouseType::Date => {
                clamped(convert(&args.arg_fields[0], &array, &wanted.to_arrow())?)
            }
            _ => adopted(&args.arg_fields[0], &array, &wanted)?,
        };
        shaped(converted, &args.args)
    }
}

fn wanted(name: Option<&ScalarValue>) -> Result<ClickHouseType> {
    let name =
        constant_text(name).ok_or_else(|| Error::illegal_type("The name of a type must be a constant"))?;
    Ok(ClickHouseType::parse(name).map_err(Error::from)?)
}
