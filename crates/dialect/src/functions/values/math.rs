//! Numbers: signs, bounds, roots of squares; and byte sizes for people.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int8Array, Scalar, StringArray, UInt8Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cmp::lt;
use datafusion::arrow::compute::kernels::numeric::neg_wrapping;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, TimeUnit};
use datafusion::common::{Result, ScalarValue};

use super::calendar::numbers;
use super::local::{is_time, ticks_per_second};
use super::{Function, of};
use crate::error::Error;
use crate::functions::numbers::array_bits;
use crate::functions::{is_plain, supertype, type_of};
use crate::types::{is_address, is_wide};

/// A function of floats, or of other numbers converted to them.
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
            field: |given| {
                (all_numbers(given) && is_plain(given[0].data_type())).then(|| of(DataType::UInt8))
            },
            answer: |given, _| {
                let is: fn(f64) -> bool = $is;
                let numbers = floats(&given[0])?;
                let answers = numbers.values().iter().map(|number| u8::from(is(*number)));
                Ok(Arc::new(UInt8Array::from_iter_values(answers)))
            },
        }
    };
}

/// A time as ticks of this unit since 1970.
macro_rules! ticks {
    ($name:literal, $unit:ident) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| {
                let has_parts = is_time(&given[0]) && ticks_per_second(given[0].data_type()) > 1;
                has_parts.then(|| of(DataType::Int64))
            },
            answer: |given, _| {
                let zone = super::local::zone_of(given[0].data_type());
                let ticks = cast(&given[0], &DataType::Timestamp(TimeUnit::$unit, zone))?;
                if ticks.null_count() > given[0].null_count() {
                    return Err(Error::decimal_overflow("A time is too far away for so many ticks").into());
                }
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
                other if all_numbers(given) && other.is_numeric() && !is_wide(&given[0]) => {
                    given[0].as_ref().clone()
                }
                _ => return None,
            })
        },
        answer: absolute,
    },
    float!("exp", 1, |[x]| x.exp()),
    float!("exp2", 1, |[x]| x.exp2()),
    float!("log", 1, |[x]| x.ln()),
    float!("log2", 1, |[x]| x.log2()),
    float!("log10", 1, |[x]| x.log10()),
    float!("sqrt", 1, |[x]| x.sqrt()),
    float!("cbrt", 1, |[x]| x.cbrt()),
    float!("sin", 1, |[x]| x.sin()),
    float!("cos", 1, |[x]| x.cos()),
    float!("atan2", 2, |[y, x]| y.atan2(x)),
    Function {
        name: "pow",
        arguments: 2..=2,
        field: |given| all_numbers(given).then(|| of(DataType::Float64)),
        answer: |given, _| {
            let (bases, exponents) = (floats(&given[0])?, floats(&given[1])?);
            let power = |row: usize| match exponents.value(row) {
                // ClickHouse's own function fails there.
                exponent if exponent.is_finite() && exponent.abs() > EXPONENT_MAX => {
                    let what = format!("The exponent of function pow must not be beyond {EXPONENT_MAX}");
                    Err(Error::argument_out_of_bound(what).into())
                }
                exponent => Ok(bases.value(row).powf(exponent)),
            };
            Ok(Arc::new(Float64Array::from((0..given[0].len()).map(power).collect::<Result<Vec<f64>>>()?)))
        },
    },
    float!("hypot", 2, |[x, y]| x.hypot(y)),
    Function {
        name: "ifNotFinite",
        arguments: 2..=2,
        field: |given| {
            let types = given.iter().map(|field| type_of(field)).collect::<Option<Vec<_>>>()?;
            let common = supertype(&types)?.to_arrow();
            (all_numbers(given) && is_plain(&common)).then(|| of(common))
        },
        answer: |given, field| {
            let numbers = floats(&given[0])?;
            let finite: BooleanArray = numbers.iter().map(|number| number.map(f64::is_finite)).collect();
            let [numbers, otherwise] = [0, 1].map(|at: usize| cast(&given[at], field.data_type()));
            Ok(zip(&finite, &numbers?, &otherwise?)?)
        },
    },
    question!("isFinite", f64::is_finite),
    question!("isInfinite", f64::is_infinite),
    question!("isNaN", f64::is_nan),
    Function {
        name: "sign",
        arguments: 1..=1,
        field: |given| all_numbers(given).then(|| of(DataType::Int8)),
        answer: |given, _| {
            // NaN has the sign of positive numbers.
            let sign = |number: &f64| i8::from(*number != 0.0) - 2 * i8::from(*number < 0.0);
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
        field: |given| (all_numbers(given) && is_plain(given[0].data_type())).then(|| of(DataType::Utf8)),
        answer: |given, _| {
            let sizes = floats(&given[0])?;
            Ok(Arc::new(StringArray::from_iter_values(sizes.values().iter().map(|size| readable(*size)))))
        },
    },
];

/// Maximum exponent of powers.
const EXPONENT_MAX: f64 = 1e9;

/// The absolute value; for integers unsigned, so that the least one has one, too.
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
    given.iter().all(|field| field.data_type().is_numeric() && !is_address(field))
}

fn floats(array: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

fn readable(bytes: f64) -> String {
    const UNITS: [&str; 9] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    if bytes.is_nan() {
        return "nan B".to_owned();
    }
    let mut size = bytes;
    let mut unit = 0;
    while size.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2} {}", UNITS[unit])
}
