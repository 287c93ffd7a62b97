//! An Arrow array, read value by value as raw bytes.

use crate::error::{Code, DictError};
use crate::types::{DataType, Shape};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::buffer::{Buffer, NullBuffer};

/// One column of a batch. Cheap to make: it shares the array's buffers.
pub(crate) struct Cells {
    values: Values,
    nulls: Option<NullBuffer>,
}

enum Values {
    Fixed { width: usize, bytes: Buffer, start: usize },
    Bits(BooleanArray),
    Text(StringArray),
}

/// One value of a column, borrowed.
pub(crate) enum Raw<'a> {
    Null,
    Fixed(&'a [u8]),
    Bit(bool),
    Text(&'a [u8]),
}

impl Cells {
    /// # Errors
    /// `TYPE_MISMATCH` if the array is not of `data_type`'s Arrow type.
    pub fn new(data_type: &DataType, array: &ArrayRef) -> Result<Cells, DictError> {
        let expected = data_type.to_arrow();
        if *array.data_type() != expected {
            return Err(DictError::new(
                Code::TypeMismatch,
                format!("Expected a column of type {data_type} ({expected}), got {}", array.data_type()),
            ));
        }
        let values = match data_type.shape() {
            Shape::Fixed(width) => {
                let data = array.to_data();
                Values::Fixed { width, bytes: data.buffers()[0].clone(), start: data.offset() * width }
            }
            Shape::Bit => Values::Bits(array.as_boolean().clone()),
            Shape::Text => Values::Text(array.as_string::<i32>().clone()),
        };
        Ok(Cells { values, nulls: array.logical_nulls() })
    }

    #[inline]
    pub fn get(&self, row: usize) -> Raw<'_> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Raw::Null;
        }
        match &self.values {
            Values::Fixed { width, bytes, start } => {
                let at = start + row * width;
                Raw::Fixed(&bytes[at..at + width])
            }
            Values::Bits(bits) => Raw::Bit(bits.value(row)),
            Values::Text(texts) => Raw::Text(texts.value(row).as_bytes()),
        }
    }
}
