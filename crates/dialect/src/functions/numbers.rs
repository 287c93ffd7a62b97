//! Reads any integer column as 64 bits, which arithmetic, conversions and hashes have in common.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::buffer::{NullBuffer, ScalarBuffer};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::*;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::error::Error;
use crate::limits::{BATCH_BYTES_MAX, CONSTANT_BYTES_WANTED};

/// The values of an integer argument, sign-extended to 64 bits.
pub enum Bits {
    One(u64),
    Many(ScalarBuffer<u64>),
}

impl Bits {
    /// The bits of row `row`.
    #[inline]
    pub fn at(&self, row: usize) -> u64 {
        match self {
            Bits::One(value) => *value,
            Bits::Many(values) => values[row],
        }
    }

    /// Applies `f` to these bits and the others', row by row.
    #[inline]
    pub fn zip(&self, other: &Bits, rows: usize, f: impl Fn(u64, u64) -> u64) -> Vec<u64> {
        match (self, other) {
            (Bits::One(left), Bits::One(right)) => vec![f(*left, *right); rows],
            (Bits::Many(left), Bits::One(right)) => left.iter().map(|left| f(*left, *right)).collect(),
            (Bits::One(left), Bits::Many(right)) => right.iter().map(|right| f(*left, *right)).collect(),
            (Bits::Many(left), Bits::Many(right)) => {
                left.iter().zip(right).map(|(left, right)| f(*left, *right)).collect()
            }
        }
    }
}

/// An argument's bits and its NULLs; `None` if it is not of an integer type.
pub fn bits(argument: &ColumnarValue) -> Result<Option<(Bits, Option<NullBuffer>)>> {
    match argument {
        ColumnarValue::Array(array) => {
            Ok(array_bits(array).map(|values| (Bits::Many(values), array.logical_nulls())))
        }
        ColumnarValue::Scalar(scalar) => {
            let array = scalar.to_array()?;
            Ok(array_bits(&array).map(|values| (Bits::One(values[0]), array.logical_nulls())))
        }
    }
}

/// 64-bit integers; 2^63 and more become negative: a place counted from the end, as in ClickHouse.
pub fn wrapped(array: &ArrayRef) -> Int64Array {
    let bits = array_bits(array).unwrap_or_default();
    Int64Array::new(bits.iter().map(|bits| *bits as i64).collect(), array.logical_nulls())
}

/// An array's bits; those of 64-bit columns are shared, not copied.
pub fn array_bits(array: &ArrayRef) -> Option<ScalarBuffer<u64>> {
    macro_rules! widen {
        ($type:ty, $wide:ty) => {
            array.as_primitive::<$type>().values().iter().map(|&v| v as $wide as u64).collect()
        };
    }
    Some(match array.data_type() {
        DataType::UInt64 => array.as_primitive::<UInt64Type>().values().clone(),
        DataType::Int64 => {
            ScalarBuffer::new(array.as_primitive::<Int64Type>().values().inner().clone(), 0, array.len())
        }
        DataType::UInt8 => widen!(UInt8Type, u64),
        DataType::UInt16 => widen!(UInt16Type, u64),
        DataType::UInt32 => widen!(UInt32Type, u64),
        DataType::Int8 => widen!(Int8Type, i64),
        DataType::Int16 => widen!(Int16Type, i64),
        DataType::Int32 => widen!(Int32Type, i64),
        DataType::Boolean => array.as_boolean().values().iter().map(u64::from).collect(),
        DataType::Date32 => widen!(Date32Type, i64),
        DataType::Timestamp(TimeUnit::Second, _) => widen!(TimestampSecondType, i64),
        _ => return None,
    })
}

/// An integer column of type `to` with the low bits of `values`, as by C's casts.
pub fn from_bits(values: ScalarBuffer<u64>, nulls: Option<NullBuffer>, to: &DataType) -> Option<ArrayRef> {
    macro_rules! narrow {
        ($type:ty, $native:ty) => {
            std::sync::Arc::new(PrimitiveArray::<$type>::new(
                values.iter().map(|&v| v as $native).collect(),
                nulls,
            ))
        };
    }
    Some(match to {
        DataType::UInt64 => std::sync::Arc::new(UInt64Array::new(values, nulls)),
        DataType::Int64 => {
            let rows = values.len();
            std::sync::Arc::new(Int64Array::new(ScalarBuffer::new(values.into_inner(), 0, rows), nulls))
        }
        DataType::UInt8 => narrow!(UInt8Type, u8),
        DataType::UInt16 => narrow!(UInt16Type, u16),
        DataType::UInt32 => narrow!(UInt32Type, u32),
        DataType::Int8 => narrow!(Int8Type, i8),
        DataType::Int16 => narrow!(Int16Type, i16),
        DataType::Int32 => narrow!(Int32Type, i32),
        DataType::Date32 => narrow!(Date32Type, i32),
        DataType::Timestamp(TimeUnit::Second, zone) => {
            let seconds = values.iter().map(|&v| v as i64).collect();
            Arc::new(TimestampSecondArray::new(seconds, nulls).with_timezone_opt(zone.clone()))
        }
        _ => return None,
    })
}

/// Returns a single row as a scalar if no argument was an array, so that constants stay constants.
pub fn shaped(array: ArrayRef, arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    if arguments.iter().any(|argument| matches!(argument, ColumnarValue::Array(_))) {
        Ok(ColumnarValue::Array(array))
    } else {
        scalar_of(&array).map(ColumnarValue::Scalar)
    }
}

/// The value of a one-row array as a scalar, of exactly the array's type.
pub fn scalar_of(row: &ArrayRef) -> Result<ScalarValue> {
    // Built from an item of an array, a scalar would lose the metadata of the items' field.
    match (row.as_list_opt::<i32>(), row.as_map_opt()) {
        (Some(list), _) => Ok(ScalarValue::List(Arc::new(list.clone()))),
        (_, Some(map)) => Ok(ScalarValue::Map(Arc::new(map.clone()))),
        _ => ScalarValue::try_from_array(row, 0),
    }
}

/// Rows to compute: the batch's, or one when every argument is constant.
pub fn rows(arguments: &[ColumnarValue], batch_rows: usize) -> usize {
    if arguments.iter().any(|argument| matches!(argument, ColumnarValue::Array(_))) { batch_rows } else { 1 }
}

/// An argument as a column of `rows` rows.
///
/// # Errors
/// MEMORY_LIMIT_EXCEEDED if it is a constant too long for that.
pub fn expanded(argument: &ColumnarValue, rows: usize) -> Result<ArrayRef> {
    if let ColumnarValue::Scalar(value) = argument
        && rows > 1
        && value.size().saturating_mul(rows) > BATCH_BYTES_MAX
    {
        let bytes = value.size();
        let what = format!("A constant of {bytes} bytes for each of {rows} rows takes too much memory");
        return Err(Error::memory_limit_exceeded(what).into());
    }
    argument.to_array(rows)
}

/// Runs a function on slices of the rows if a constant is long, as it is written out for each row.
///
/// # Errors
/// Returns the errors of the function, and MEMORY_LIMIT_EXCEEDED if its values for all rows take more than
/// [`BATCH_BYTES_MAX`].
pub fn by_slices(
    args: ScalarFunctionArgs,
    invoke: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let rows = rows(&args.args, args.number_rows);
    let bytes = args.args.iter().map(|argument| match argument {
        ColumnarValue::Scalar(value) => value.size(),
        ColumnarValue::Array(_) => 0,
    });
    let slice_rows = (CONSTANT_BYTES_WANTED / bytes.max().unwrap_or(0).max(1)).max(1);
    if rows <= slice_rows {
        return invoke(args);
    }
    let (mut parts, mut bytes) = (Vec::new(), 0);
    for start in (0..rows).step_by(slice_rows) {
        let number_rows = slice_rows.min(rows - start);
        let sliced = args.args.iter().map(|argument| match argument {
            ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(start, number_rows)),
            ColumnarValue::Scalar(value) => ColumnarValue::Scalar(value.clone()),
        });
        let part = invoke(ScalarFunctionArgs { args: sliced.collect(), number_rows, ..args.clone() })?;
        let part = part.into_array(number_rows)?;
        bytes += part.get_array_memory_size();
        check_bytes(bytes as u64)?;
        parts.push(part);
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::Array(concat(&parts)?))
}

/// Refuses values that take `bytes` bytes in one block.
///
/// # Errors
/// MEMORY_LIMIT_EXCEEDED if they are more than [`BATCH_BYTES_MAX`].
pub fn check_bytes(bytes: u64) -> Result<()> {
    if bytes <= BATCH_BYTES_MAX as u64 {
        return Ok(());
    }
    let what = format!("The values of a function for one block would take more than {BATCH_BYTES_MAX} bytes");
    Err(Error::memory_limit_exceeded(what).into())
}

/// A row is NULL if any of its arguments is.
pub fn union(left: Option<NullBuffer>, right: Option<NullBuffer>, rows: usize) -> Option<NullBuffer> {
    let spread = |nulls: Option<NullBuffer>| {
        nulls.map(|nulls| match nulls.len() == rows {
            true => nulls,
            false if nulls.is_null(0) => NullBuffer::new_null(rows),
            false => NullBuffer::new_valid(rows),
        })
    };
    NullBuffer::union(spread(left).as_ref(), spread(right).as_ref())
}
