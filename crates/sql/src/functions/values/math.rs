//! Numbers: signs, bounds, roots of squares; and numbers of bytes for people.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int8Array, Scalar, StringArray, UInt8Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cmp::lt;
use datafusion::arrow::compute::kernels::numeric::neg_wrapping;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, TimeUnit};
use datafusion::common::{Result, ScalarValue};

use super::calendar::numbers;
use super::local::is_time;
use super::{Function, of};
use crate::functions::numbers::array_bits;

/// Of floating-point numbers, or such of others.
macro_rules! float {
    ($name:literal, $arguments:literal, $of:expr) => {
        Function {
            name: $name,
            arguments: $arguments..=$arguments,
            field: |given| all_numbers(given).then(|| of(DataType::Float64)),
            answer: |given, _| {
                let numbers = given.iter().map(floats).collect::<Result<Vec<_>>>()?;
                let of: fn([f64; $arguments]) -> f64 = $of;
                let answer = |row| of(std::array::from_fn(|at| numbers[at].value(row)));
                Ok(Arc::new(Float64Array::from_iter_values((0..given[0].len()).map(answer))))
            },
        }
    };
}

macro_rules! question {
    ($name:literal, $is:expr) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| all_numbers(given).then(|| of(DataType::UInt8)),
            answer: |given, _| {
                let is: fn(f64) -> bool = $is;
                let numbers = floats(&given[0])?;
                let answers = numbers.values().iter().map(|number| u8::from(is(*number)));
                Ok(Arc::new(UInt8Array::from_iter_values(answers)))
            },
        }
    };
}

/// A time as ticks of so many a second since 1970.
macro_rules! ticks {
    ($name:literal, $unit:ident) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| is_time(&given[0]).then(|| of(DataType::Int64)),
            answer: |given, _| {
                let zone = super::local::zone_of(given[0].data_type());
                let ticks = cast(&given[0], &DataType::Timestamp(TimeUnit::$unit, zone))?;
                Ok(cast(&ticks, &DataType::Int64)?)
            },
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "abs",
        arguments: 1..=1,
        field: |given| {
            let number = |data_type| given[0].as_ref().clone().with_data_type(data_type);
            Some(match given[0].data_type() {
                DataType::Int8 => number(DataType::UInt8),
                DataType::Int16 => number(DataType::UInt16),
                DataType::Int32 => number(DataType::UInt32),
                DataType::Int64 => number(DataType::UInt64),
                other if other.is_numeric() => given[0].as_ref().clone(),
                _ => return None,
            })
        },
        answer: absolute,
    },
    float!("exp2", 1, |[x]| x.exp2()),
    float!("hypot", 2, |[x, y]| x.hypot(y)),
    float!("ifNotFinite", 2, |[x, otherwise]| if x.is_finite() { x } else { otherwise }),
    question!("isFinite", f64::is_finite),
    question!("isInfinite", f64::is_infinite),
    Function {
        name: "sign",
        arguments: 1..=1,
        field: |given| all_numbers(given).then(|| of(DataType::Int8)),
        answer: |given, _| {
            let sign = |number: &f64| i8::from(*number > 0.0) - i8::from(*number < 0.0);
            let numbers = floats(&given[0])?;
            Ok(Arc::new(Int8Array::from_iter_values(numbers.values().iter().map(sign))))
        },
    },
    ticks!("toUnixTimestamp64Second", Second),
    ticks!("toUnixTimestamp64Milli", Millisecond),
    ticks!("toUnixTimestamp64Micro", Microsecond),
    ticks!("toUnixTimestamp64Nano", Nanosecond),
    Function {
        name: "formatReadableSize",
        arguments: 1..=1,
        field: |given| all_numbers(given).then(|| of(DataType::Utf8)),
        answer: |given, _| {
            let sizes = floats(&given[0])?;
            Ok(Arc::new(StringArray::from_iter_values(sizes.values().iter().map(|size| readable(*size)))))
        },
    },
];

/// Of integers an unsigned one, which the least of them has, too.
fn absolute(given: &[ArrayRef], field: &Field) -> Result<ArrayRef> {
    Ok(match given[0].data_type() {
        whole if whole.is_unsigned_integer() => Arc::clone(&given[0]),
        whole if whole.is_signed_integer() => {
            let bits = array_bits(&given[0]).unwrap_or_default();
            numbers(bits.iter().map(|bits| (*bits as i64).unsigned_abs()).collect(), field)?
        }
        DataType::Float32 => {
            Arc::new(given[0].as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::abs))
        }
        DataType::Float64 => {
            Arc::new(given[0].as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::abs))
        }
        _ => {
            let zero = Scalar::new(ScalarValue::new_zero(given[0].data_type())?.to_array()?);
            zip(&lt(&given[0], &zero)?, &neg_wrapping(&given[0])?, &given[0])?
        }
    })
}

fn all_numbers(given: &[FieldRef]) -> bool {
    given.iter().all(|field| field.data_type().is_numeric())
}

fn floats(array: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

fn readable(bytes: f64) -> String {
    const UNITS: [&str; 9] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    let mut size = bytes;
    let mut unit = 0;
    while size.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2} {}", UNITS[unit])
}
