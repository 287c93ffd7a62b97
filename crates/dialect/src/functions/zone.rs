//! `toTimeZone(t, 'zone')`: the same moment, shown in another zone.

use std::sync::Arc;

use datafusion::arrow::array::make_array;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};
use granary_dict::DataType as ClickHouseType;

use super::arguments::{self, check_count};
use super::numbers::{rows, shaped};
use super::planner::constant_text;
use super::scalar::Scalar;
use crate::error::Error;
use crate::types::type_name;

/// Its name.
pub const TO_TIME_ZONE: &str = "toTimezone";

/// The function.
pub fn to_time_zone() -> ScalarUDF {
    Scalar::udf(TO_TIME_ZONE, arguments::any(Volatility::Immutable), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    check_count(TO_TIME_ZONE, args.arg_fields.len(), 2..=2)?;
    let time = &args.arg_fields[0];
    let field = in_zone(time, args.scalar_arguments[1])?.to_field(TO_TIME_ZONE);
    Ok(Arc::new(field.with_nullable(time.is_nullable())))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let times = args.args[0].to_array(rows(&args.args, args.number_rows))?;
    let data_type = args.return_field.data_type().clone();
    let shown = make_array(times.to_data().into_builder().data_type(data_type).build()?);
    shaped(shown, &args.args)
}

fn in_zone(time: &FieldRef, zone: Option<&ScalarValue>) -> Result<ClickHouseType> {
    let zone = constant_text(zone).ok_or_else(|| {
        Error::illegal_column("The time zone of function toTimeZone must be a constant text")
    })?;
    let name = type_name(&time.as_ref().clone().with_nullable(false));
    let wanted = match ClickHouseType::parse(&name).map_err(Error::from)? {
        ClickHouseType::DateTime { .. } => format!("DateTime('{zone}')"),
        ClickHouseType::DateTime64 { precision, .. } => format!("DateTime64({precision}, '{zone}')"),
        _ => {
            let what = format!(
                "Illegal type {name} of argument of function toTimeZone. Should be DateTime or DateTime64"
            );
            return Err(Error::illegal_type(what).into());
        }
    };
    Ok(ClickHouseType::parse(&wanted).map_err(Error::from)?)
}
