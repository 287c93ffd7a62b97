//! An Arrow array, read value by value as raw bytes.

use super::value;
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
    Fixed {
        width: usize,
        bytes: Buffer,
        start: usize,
    },
    Bits(BooleanArray),
    Text(StringArray),
    /// The items of row `i` end at `ends[i]`.
    Lists {
        bytes: Vec<u8>,
        ends: Vec<usize>,
    },
}

/// One value of a column, borrowed.
#[derive(Clone, Copy)]
pub(crate) enum Raw<'a> {
    Null,
    Fixed(&'a [u8]),
    Bit(bool),
    Text(&'a [u8]),
    /// The bytes of an array's items.
    List(&'a [u8]),
}

impl Cells {
    /// # Errors
    /// `TYPE_MISMATCH` if the array is not of `data_type`'s Arrow type.
    pub fn new(data_type: &DataType, array: &ArrayRef) -> Result<Cells, DictError> {
        let expected = data_type.to_arrow();
        if *array.data_type() != expected && !array.data_type().equals_datatype(&expected) {
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
            Shape::List => lists(data_type.item(), array)?,
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
            Values::Lists { bytes, ends } => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                Raw::List(&bytes[start..ends[row]])
            }
        }
    }
}

/// Arrays as the bytes that their rows have.
fn lists(item: &DataType, array: &ArrayRef) -> Result<Values, DictError> {
    let list = array.as_list::<i32>();
    let items = Cells::new(item, list.values())?;
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(list.len()));
    for (row, range) in list.offsets().windows(2).enumerate() {
        if list.is_valid(row) {
            (range[0]..range[1]).for_each(|i| value::put(item, &items.get(i as usize), &mut bytes));
        }
        ends.push(bytes.len());
    }
    Ok(Values::Lists { bytes, ends })
}
