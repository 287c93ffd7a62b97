//! Conversion of Arrow arrays of other types into ours: other writers of Arrow have their types, and a query's results
//! have the engine's.

use super::{Column, composite};
use crate::error::{Code, DictError};
use crate::types::{DataType, digits_of, extremes, kept_digits, sign_extended, truncate};
use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, PrimitiveArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType as Arrow, Decimal128Type, Decimal256Type, Float64Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, i256,
};
use arrow::error::ArrowError;
use std::sync::Arc;

impl DataType {
    /// The same values as an array of this type's Arrow type, NULL where they are NULL. A text is read as ClickHouse
    /// reads it, a number as seconds where a moment is wanted; digits that a moment does not have are cut,
    /// towards 1970.
    ///
    /// # Errors
    /// A value that this type does not have.
    pub fn adopt(&self, array: &ArrayRef) -> Result<ArrayRef, DictError> {
        self.adopted(array, Column::push_parsed)
    }

    /// Adopts a part of an array, a map or a tuple, where texts of times are read as people write them.
    pub(super) fn adopt_part(&self, array: &ArrayRef) -> Result<ArrayRef, DictError> {
        self.adopted(array, Column::push_lenient)
    }

    fn adopted(&self, array: &ArrayRef, push_text: PushText) -> Result<ArrayRef, DictError> {
        let data_type = self.inner();
        match (array.data_type(), data_type) {
            (Arrow::Null, _) => Ok(new_null_array(&data_type.to_arrow(), array.len())),
            (
                Arrow::List(_) | Arrow::LargeList(_) | Arrow::FixedSizeList(..) | Arrow::Map(..),
                DataType::Array(_) | DataType::Map(_) | DataType::Nested(_),
            ) => composite::lists(array, data_type),
            (_, DataType::Tuple(_)) if array.logical_null_count() > 0 => {
                Err(DictError::parse_text(format!("NULL is no {data_type}")))
            }
            (Arrow::Struct(_), DataType::Tuple(_)) => composite::tuples(array.as_struct(), data_type),
            (text, other) if text.is_string() && *other != DataType::String => {
                parsed(array, data_type, push_text, NoValue::IsError)
            }
            (_, DataType::DateTime64 { precision, .. }) => moments(array, data_type, *precision),
            (theirs, _) if *theirs == data_type.to_arrow() && !data_type.is_wide() => Ok(Arc::clone(array)),
            // Arrow takes a time without a zone for a local one.
            (Arrow::Timestamp(..), DataType::DateTime { .. }) => moments(array, data_type, 0),
            (Arrow::FixedSizeBinary(16 | 32), integer) if integer.is_wide() => Ok(integers(array, integer)),
            _ => converted(array, data_type).map_err(failed),
        }
    }

    /// The values of texts, NULL where a text is no value of this type.
    ///
    /// # Errors
    /// The array is not of texts.
    pub fn texts_or_null(&self, texts: &ArrayRef) -> Result<ArrayRef, DictError> {
        parsed(texts, self.inner(), Column::push_parsed, NoValue::IsNull)
    }
}

pub(super) fn failed(e: ArrowError) -> DictError {
    DictError::new(Code::CannotParseText, format!("Arrow: {e}"))
}

/// What to do with a text that is no value of the type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoValue {
    IsError,
    IsNull,
}

/// How a column takes a text.
type PushText = fn(&mut Column, &str) -> Result<(), DictError>;

fn parsed(
    array: &ArrayRef,
    data_type: &DataType,
    push_text: PushText,
    no_value: NoValue,
) -> Result<ArrayRef, DictError> {
    let texts = cast(array, &Arrow::Utf8).map_err(failed)?;
    let mut column = Column::new(&DataType::Nullable(Box::new(data_type.clone())));
    for text in texts.as_string::<i32>() {
        match text.map(|text| push_text(&mut column, text)) {
            None => column.push_null(),
            Some(Err(_)) if no_value == NoValue::IsNull => column.push_null(),
            Some(pushed) => pushed?,
        }
    }
    column.finish()
}

/// ClickHouse writes a Date as UInt16 and a DateTime as UInt32, which Arrow knows as numbers alone.
fn converted(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let number = match (array.data_type(), data_type) {
        (Arrow::UInt16, DataType::Date | DataType::Date32) => Some(Arrow::Int32),
        (Arrow::UInt32, DataType::DateTime { .. }) => Some(Arrow::Int64),
        _ => None,
    };
    let array = number.map(|number| cast(array, &number)).unwrap_or_else(|| Ok(array.clone()))?;
    whole(&array, cast(&array, &data_type.to_arrow())?, data_type)
}

/// Refuses a cast that lost values: they became NULL, or Arrow's type of a wide integer has more numbers than ours.
fn whole(before: &ArrayRef, after: ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let fits = match after.as_primitive_opt::<Decimal256Type>() {
        Some(numbers) if data_type.is_wide() => numbers.iter().flatten().all(|number| data_type.has(number)),
        _ => true,
    };
    match fits && after.logical_null_count() == before.logical_null_count() {
        true => Ok(after),
        false => Err(ArrowError::CastError(format!("a value is no {data_type}"))),
    }
}

/// Moments of any unit, days, and seconds.
fn moments(array: &ArrayRef, data_type: &DataType, precision: u8) -> Result<ArrayRef, DictError> {
    let kept = kept_digits(precision);
    let (numbers, digits) = match array.data_type() {
        // A moment is one whatever the zone that it is shown in: only its number counts.
        Arrow::Timestamp(unit, _) => (cast(array, &Arrow::Int64), digits_of(*unit)),
        Arrow::Date32 => {
            (cast(array, &Arrow::Timestamp(TimeUnit::Second, None)).and_then(|a| cast(&a, &Arrow::Int64)), 0)
        }
        Arrow::Float32 | Arrow::Float64 => (fractions(array, precision), precision),
        Arrow::Decimal128(_, scale) => (parts(array, *scale, precision), precision),
        _ => (cast(array, &Arrow::Int64), 0),
    };
    // A moment of another column may be any that Arrow has; ClickHouse takes numbers for the nearest that it has.
    let is_moment = matches!(array.data_type(), Arrow::Timestamp(..));
    let [first, last] = extremes(precision);
    let numbers = numbers.and_then(|numbers| whole(array, numbers, data_type)).map_err(failed)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    let in_unit = |number: i64| -> Result<i64, DictError> {
        let scaled = match kept >= digits {
            true => number.checked_mul(10i64.pow((kept - digits).into())),
            false => Some(number / 10i64.pow((digits - kept).into())),
        };
        let scaled = scaled
            .filter(|scaled| is_moment || (first..=last).contains(scaled))
            .ok_or_else(|| DictError::new(Code::CannotParseText, format!("{number} is no {data_type}")))?;
        Ok(truncate(scaled, precision))
    };
    // The number under a NULL is arbitrary.
    let values: PrimitiveArray<Int64Type> =
        numbers.iter().map(|number| number.map(in_unit).transpose()).collect::<Result<_, _>>()?;
    let zone = match data_type.to_arrow() {
        Arrow::Timestamp(_, zone) => zone,
        _ => None,
    };
    Ok(match kept {
        0 => Arc::new(values.reinterpret_cast::<TimestampSecondType>().with_timezone_opt(zone)),
        3 => Arc::new(values.reinterpret_cast::<TimestampMillisecondType>().with_timezone_opt(zone)),
        6 => Arc::new(values.reinterpret_cast::<TimestampMicrosecondType>().with_timezone_opt(zone)),
        _ => Arc::new(values.reinterpret_cast::<TimestampNanosecondType>().with_timezone_opt(zone)),
    })
}

/// Seconds with a fraction as ticks of `digits` digits, without further digits; NULL if 64 bits do not hold them.
fn fractions(array: &ArrayRef, digits: u8) -> Result<ArrayRef, ArrowError> {
    let seconds = cast(array, &Arrow::Float64)?;
    let tick = 10f64.powi(digits.into());
    let ticks = seconds.as_primitive::<Float64Type>().iter().map(|seconds| {
        let ticks = (seconds? * tick).trunc();
        (ticks.abs() < i64::MAX as f64).then_some(ticks as i64)
    });
    Ok(Arc::new(ticks.collect::<PrimitiveArray<Int64Type>>()))
}

/// Seconds as decimals of this scale as ticks of `digits` digits, cut like [`fractions`].
fn parts(array: &ArrayRef, scale: i8, digits: u8) -> Result<ArrayRef, ArrowError> {
    let shift = i32::from(scale) - i32::from(digits);
    let power = 10i128.checked_pow(shift.unsigned_abs());
    let ticks = |number: i128| {
        let ticks = if shift < 0 { number.checked_mul(power?)? } else { number.checked_div(power?)? };
        i64::try_from(ticks).ok()
    };
    let ticks = array.as_primitive::<Decimal128Type>().iter().map(|number| number.and_then(ticks));
    Ok(Arc::new(ticks.collect::<PrimitiveArray<Int64Type>>()))
}

/// Integers as their bytes, as ClickHouse writes them.
fn integers(array: &ArrayRef, data_type: &DataType) -> ArrayRef {
    let number = |raw: &[u8]| match <[u8; 16]>::try_from(raw) {
        Ok(raw) if *data_type == DataType::UInt128 => i256::from_parts(u128::from_le_bytes(raw), 0),
        _ => i256::from_le_bytes(sign_extended(raw)),
    };
    let numbers: Decimal256Array = array.as_fixed_size_binary().iter().map(|raw| raw.map(number)).collect();
    let numbers: PrimitiveArray<Decimal256Type> = numbers.with_data_type(data_type.to_arrow());
    Arc::new(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        Date32Array, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int64Array, StringArray,
        TimestampNanosecondArray, TimestampSecondArray, UInt32Array,
    };
    use arrow::datatypes::TimestampMicrosecondType;

    fn adopted(data_type: &str, array: impl Array + 'static) -> Result<ArrayRef, DictError> {
        let data_type = DataType::parse(data_type).unwrap();
        let adopted = data_type.adopt(&arrow::array::make_array(array.to_data()))?;
        assert_eq!(*adopted.data_type(), data_type.to_arrow());
        Ok(adopted)
    }

    #[test]
    fn moments_of_every_kind() {
        let micros =
            |array: ArrayRef| array.as_primitive::<TimestampMicrosecondType>().iter().collect::<Vec<_>>();
        let zone = "DateTime64(4, 'Asia/Tokyo')";
        let nanos = TimestampNanosecondArray::from(vec![Some(1_234_567_890), None, Some(-1), Some(-100_001)]);
        assert_eq!(micros(adopted(zone, nanos).unwrap()), [Some(1_234_500), None, Some(0), Some(-100)]);
        let seconds = TimestampSecondArray::from(vec![7]).with_timezone("Europe/Moscow");
        assert_eq!(micros(adopted(zone, seconds).unwrap()), [Some(7_000_000)]);
        assert_eq!(micros(adopted(zone, Date32Array::from(vec![1])).unwrap()), [Some(86_400_000_000)]);
        assert_eq!(micros(adopted(zone, UInt32Array::from(vec![7])).unwrap()), [Some(7_000_000)]);
        assert_eq!(micros(adopted(zone, Float64Array::from(vec![1.5])).unwrap()), [Some(1_500_000)]);
        let texts = StringArray::from(vec![Some("1970-01-01 09:00:01.23456"), None]);
        assert_eq!(micros(adopted(zone, texts).unwrap()), [Some(1_234_500), None]);
        let plain = TimestampSecondArray::from(vec![7, -1]);
        let seconds = adopted("DateTime('Asia/Tokyo')", plain).unwrap();
        assert_eq!(seconds.as_primitive::<TimestampSecondType>().values(), &[7, -1]);
        assert!(adopted(zone, Int64Array::from(vec![i64::MAX])).is_err());
        assert!(adopted(zone, Float64Array::from(vec![f64::INFINITY])).is_err());
        // Digits beyond the precision are cut.
        let cut = micros(adopted(zone, Float64Array::from(vec![1.99999, -1.00015])).unwrap());
        assert_eq!(cut, [Some(1_999_900), Some(-1_000_100)]);
        let decimals = Decimal128Array::from(vec![100_199, -100_199]).with_precision_and_scale(9, 5).unwrap();
        assert_eq!(micros(adopted(zone, decimals).unwrap()), [Some(1_001_900), Some(-1_001_900)]);
        // The years that there are.
        for number in [-2_208_988_801, 10_413_792_000, 1_582_934_400_123] {
            assert!(adopted(zone, Int64Array::from(vec![number])).is_err());
            assert!(adopted(zone, Float64Array::from(vec![number as f64])).is_err());
        }
        assert!(adopted(zone, Int64Array::from(vec![-2_208_988_800, 10_413_791_999])).is_ok());
        assert!(adopted("DateTime64(9)", TimestampSecondArray::from(vec![10_000_000_000])).is_err());
    }

    #[test]
    fn wide_integers_and_addresses() {
        let bytes = [[0xff; 16], [1; 16]];
        let raw = || FixedSizeBinaryArray::try_from_iter(bytes.iter()).unwrap();
        let signed = adopted("Int128", raw()).unwrap();
        assert_eq!(signed.as_primitive::<Decimal256Type>().value(0), i256::MINUS_ONE);
        let unsigned = adopted("UInt128", raw()).unwrap();
        assert_eq!(unsigned.as_primitive::<Decimal256Type>().value(0), i256::from_parts(u128::MAX, 0));
        assert!(adopted("UInt128", Int64Array::from(vec![-1])).is_err());
        assert!(adopted("Int128", unsigned).is_err());
        assert!(adopted("Int256", Int64Array::from(vec![Some(-1), None])).is_ok());
        assert!(adopted("IPv4", StringArray::from(vec!["1.2.3.4"])).is_ok());
        assert!(adopted("IPv4", StringArray::from(vec!["1.2.3"])).is_err());
        assert!(adopted("IPv4", Int64Array::from(vec![-1])).is_err());
        assert!(adopted("IPv6", raw()).is_ok());
    }
}
