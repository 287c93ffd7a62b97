//! Numbers: signs, bounds, roots of squares; and numbers of bytes for people.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int8Array, StringArray, UInt8Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type, TimeUnit};
use datafusion::common::Result;

use super::local::is_time;
use super::{Function, of};

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
