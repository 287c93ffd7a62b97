//! `asType(x, 'IPv4')`, which `toIPv4(x)`, `toDateTime64(x, 3)`, `CAST(x AS Int128)` and the like are rewritten to:
//! types that Arrow does not have, and times in a zone.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array, make_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use granary_dict::{DataType as ClickHouseType, digits_of, ticks_written};

use super::convert::{check_range, clamped, convert};
use super::cut_decimal::to_decimal;
use super::exact::adopted;
use super::identifiers::Identifier;
use super::numbers::{array_bits, from_bits, rows, shaped};
use super::parse::{no_time, parse_or_null};
use super::planner::constant_text;
use super::supertype::is_plain;
use super::{bool, uuid};
use crate::error::Error;
use crate::types::{fixed_bytes, is_time, is_wide, plain_field_name, plain_name};

/// The function's name, for rewritten calls only.
pub const AS_TYPE: &str = "asType";

/// The zone of a time if the wanted type names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NoZone {
    /// It keeps its own, as in a conversion.
    Stays,
    /// It gets none, as beside times without a zone.
    IsNone,
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct AsType {
    no_zone: NoZone,
    signature: Signature,
}

impl Default for AsType {
    fn default() -> Self {
        Self { no_zone: NoZone::Stays, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl AsType {
    /// Converts a value to its common type with others. If that has no zone, a time gets none.
    pub fn exact(value: Expr, wanted: impl Display) -> Expr {
        let exactly = Self { no_zone: NoZone::IsNone, ..Self::default() };
        ScalarUDF::from(exactly).call(vec![value, lit(wanted.to_string())])
    }

    fn wanted(&self, given: &Field, name: Option<&ScalarValue>) -> Result<ClickHouseType> {
        let wanted = wanted(name)?;
        Ok(match self.no_zone {
            NoZone::Stays => in_zone_of(given, wanted),
            NoZone::IsNone => wanted,
        })
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
        let wanted = self.wanted(&args.arg_fields[0], args.scalar_arguments[1])?;
        check_source(&args.arg_fields[0], &wanted)?;
        let nullable = wanted.is_nullable() || args.arg_fields[0].is_nullable();
        let (inner, arrow) = (wanted.inner(), wanted.to_arrow());
        // If Arrow's name says as much, no metadata is added, as for columns that never had another type.
        let field = match plain_name(&arrow) == inner.to_string() {
            true => Field::new(AS_TYPE, arrow, nullable),
            false => inner.to_field(AS_TYPE).with_nullable(nullable),
        };
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = match &args.args[1] {
            ColumnarValue::Scalar(name) => Some(name),
            ColumnarValue::Array(_) => None,
        };
        let wanted = self.wanted(&args.arg_fields[0], name)?;
        let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        shaped(converted(&args.arg_fields[0], &array, &wanted)?, &args.args)
    }
}

/// A time keeps its zone if no other is given.
fn in_zone_of(field: &Field, wanted: ClickHouseType) -> ClickHouseType {
    use ClickHouseType::{DateTime, DateTime64, Nullable};
    let DataType::Timestamp(_, Some(zone)) = field.data_type() else { return wanted };
    let zone = || Some(zone.to_string());
    match wanted {
        Nullable(inner) => Nullable(Box::new(in_zone_of(field, *inner))),
        DateTime { tz: None } => DateTime { tz: zone() },
        DateTime64 { precision, tz: None } => DateTime64 { precision, tz: zone() },
        wanted => wanted,
    }
}

/// Refuses conversions that ClickHouse does not have.
fn check_source(field: &Field, wanted: &ClickHouseType) -> Result<()> {
    use ClickHouseType::{Date32, DateTime64, Decimal, Int128, Int256, Ipv4, UInt128, Uuid};
    let from = plain_field_name(field);
    let (is_uuid, is_ipv6, is_ipv4) = (from == "UUID", from == "IPv6", from == "IPv4");
    let data_type = field.data_type();
    let refused = match wanted.inner() {
        Ipv4 => {
            let is_number = data_type.is_unsigned_integer() || from == "IPv6";
            !(is_number || from == "IPv4" || data_type.is_string() || data_type.is_null())
        }
        Uuid => is_ipv6 || !(is_uuid || data_type.is_string() || data_type.is_null()),
        Int128 | UInt128 | Int256 => is_uuid || is_ipv6 || is_ipv4 || data_type == &DataType::Date32,
        Decimal { .. } if is_time(data_type) => {
            matches!(data_type, DataType::Date32 | DataType::Timestamp(TimeUnit::Second, _))
        }
        DateTime64 { .. } | Decimal { .. } | Date32 => is_wide(field) || is_ipv4,
        _ => false,
    };
    match refused {
        true => {
            Err(Error::not_implemented(format!("Conversion from {from} to {wanted} is not supported")).into())
        }
        false => Ok(()),
    }
}

/// The range of a Date32 in days: 1900 to 2299.
pub const DAYS: RangeInclusive<i64> = -25_567..=120_529;

/// The range of a DateTime64 in seconds, the same years.
pub const MOMENTS: RangeInclusive<i64> = -2_208_988_800..=10_413_791_999;

/// Converts values to another type. A text that is no number, UUID or address becomes NULL if the type is Nullable.
fn converted(field: &Field, array: &ArrayRef, wanted: &ClickHouseType) -> Result<ArrayRef> {
    use ClickHouseType::{
        Bool, Date, Date32, DateTime, DateTime64, Decimal, Int128, Int256, Ipv4, Ipv6, String, UInt128, Uuid,
    };
    let (inner, target) = (wanted.inner(), wanted.to_arrow());
    let lenient = wanted.is_nullable() && array.data_type().is_string() && fixed_bytes(field).is_none();
    // A DateTime64 without fraction digits has another range than the DateTime that Arrow takes it for.
    if !matches!(inner, Date32 | DateTime64 { .. } | Ipv4 | Ipv6) {
        check_range(field, array, &target)?;
    }
    match inner {
        DateTime { .. } | Date if lenient => Ok(clamped(parse_or_null(array, &target)?)),
        DateTime { .. } | Date => Ok(clamped(convert(field, array, &target)?)),
        Date32 if lenient => parse_or_null(array, &target),
        Decimal { .. } | Int128 | UInt128 | Int256 if lenient => {
            wanted.texts_or_null(array).map_err(|error| Error::from(error).into())
        }
        Bool => bool::converted(array),
        Uuid if lenient => Identifier::Uuid.parse_or_null(array),
        Uuid => uuid::parse(array),
        Ipv4 if lenient => Identifier::Ipv4.parse_or_null(array),
        Ipv6 if lenient => Identifier::Ipv6.parse_or_null(array),
        Ipv4 if array.data_type().is_string() => {
            let addresses = Identifier::Ipv4.parse_or_null(array)?;
            match addresses.null_count() > array.null_count() {
                true => Err(Error::cannot_parse_ipv4("Invalid IPv4 value").into()),
                false => Ok(addresses),
            }
        }
        Ipv4 | Ipv6 => adopted(field, array, wanted),
        DateTime64 { precision, tz } if array.data_type().is_string() => {
            let ticks = |text: &str| {
                ticks_written(text, *precision, tz.as_deref()).map_err(|why| no_time(text, &target, why))
            };
            ticks_from_texts(array, &target, lenient, ticks)
        }
        // Digits beyond the precision are cut off.
        DateTime64 { precision, .. } if array.data_type().is_decimal() => {
            let digits = DataType::Decimal128(38, *precision as i8);
            let cut = to_decimal(array, &digits)?;
            adopted(field, cut.as_ref().unwrap_or(array), wanted)
        }
        Decimal { .. } | Int128 | UInt128 | Int256
            if let DataType::Timestamp(unit, _) = array.data_type() =>
        {
            let fitted = decimals_from_timestamps(array, *unit, &target)?;
            adopted(field, fitted.as_ref().unwrap_or(array), wanted)
        }
        Date32 if matches!(array.data_type(), DataType::Timestamp(..)) => convert(field, array, &target),
        Date32 if array.data_type().is_integer() => days_from_integers(array, &target),
        // An Int256 may have a digit more than Arrow's decimals.
        Int128 | UInt128 | Int256 if is_wide(field) => adopted(field, array, wanted),
        Int128 | UInt128 | Int256
            if let DataType::Decimal128(..) | DataType::Decimal256(..) = array.data_type() =>
        {
            match to_decimal(array, &target)? {
                Some(whole) => adopted(field, &whole, wanted),
                None => adopted(field, array, wanted),
            }
        }
        String => convert(field, array, &target),
        _ if is_plain(&target) && lenient => parse_or_null(array, &target),
        _ if is_plain(&target) => convert(field, array, &target),
        _ => adopted(field, array, wanted),
    }
}

/// Times that texts write, by `ticks`. Lenient, a text that is no time becomes NULL.
fn ticks_from_texts(
    array: &ArrayRef,
    target: &DataType,
    lenient: bool,
    ticks: impl Fn(&str) -> Result<i64, Error>,
) -> Result<ArrayRef> {
    let texts = cast(array, &DataType::Utf8)?;
    let ticks = texts.as_string::<i32>().iter().map(|text| match text.map(&ticks).transpose() {
        Err(_) if lenient => Ok(None),
        ticks => ticks,
    });
    let ticks: Int64Array = ticks.collect::<Result<_, Error>>()?;
    Ok(make_array(ticks.into_data().into_builder().data_type(target.clone()).build()?))
}

/// Times as seconds with a fraction. `None`: the target is no decimal of Arrow's.
fn decimals_from_timestamps(array: &ArrayRef, unit: TimeUnit, target: &DataType) -> Result<Option<ArrayRef>> {
    let ticks = cast(array, &DataType::Int64)?;
    let ticks = ticks.as_primitive::<Int64Type>().iter().map(|ticks| ticks.map(i128::from));
    let seconds = Decimal128Array::from_iter(ticks).with_precision_and_scale(38, digits_of(unit) as i8)?;
    to_decimal(&(Arc::new(seconds) as ArrayRef), target)
}

/// Integers as days since 1970.
fn days_from_integers(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let days = array_bits(array).unwrap_or_default();
    let signed = array.data_type().is_signed_integer();
    let is_day = |bits: u64| DAYS.contains(&(bits as i64)) && (signed || bits <= i64::MAX as u64);
    let is_in = |row: usize| array.is_null(row) || is_day(days[row]);
    if !(0..array.len()).all(is_in) {
        return Err(Error::argument_out_of_bound("A number of days is beyond Date32").into());
    }
    from_bits(days, array.logical_nulls(), target)
        .ok_or_else(|| DataFusionError::Internal(format!("no days of {}", array.data_type())))
}

/// Converts values to the type of a column that they are inserted into, by the rules of CAST.
///
/// # Errors
/// NOT_IMPLEMENTED for conversions that are missing, and errors of values outside the type.
pub fn inserted(field: &Field, array: &ArrayRef, wanted: &ClickHouseType) -> Result<ArrayRef> {
    let wanted = wanted.inner();
    check_source(field, wanted)?;
    converted(field, array, wanted)
}

fn wanted(name: Option<&ScalarValue>) -> Result<ClickHouseType> {
    let name =
        constant_text(name).ok_or_else(|| Error::illegal_type("The name of a type must be a constant"))?;
    Ok(ClickHouseType::parse_column(name).map_err(Error::from)?)
}
