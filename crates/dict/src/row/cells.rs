//! An Arrow array, read value by value as raw bytes.

use super::value;
use crate::error::{Code, DictError};
use crate::types::{DataType, Element, Shape};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::buffer::{Buffer, NullBuffer};
use std::sync::Arc;

/// One column of a batch. Cheap to make: it shares the array's buffers.
pub(crate) struct Cells {
    values: CellValues,
    nulls: Option<NullBuffer>,
}

enum CellValues {
    Fixed {
        width: usize,
        bytes: Buffer,
        start: usize,
    },
    Bits(BooleanArray),
    Text(StringArray),
    /// The items or elements of row `i` end at `ends[i]`.
    Items {
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
    /// The bytes of the items of an array or a map, or of the elements of a tuple.
    Items(&'a [u8]),
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
                CellValues::Fixed { width, bytes: data.buffers()[0].clone(), start: data.offset() * width }
            }
            Shape::Bit => CellValues::Bits(array.as_boolean().clone()),
            Shape::Text => CellValues::Text(array.as_string::<i32>().clone()),
            Shape::List => lists(data_type.item(), array)?,
            Shape::Tuple => tuples(data_type.elements(), array)?,
        };
        Ok(Cells { values, nulls: array.logical_nulls() })
    }

    #[inline]
    pub fn get(&self, row: usize) -> Raw<'_> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Raw::Null;
        }
        match &self.values {
            CellValues::Fixed { width, bytes, start } => {
                let at = start + row * width;
                Raw::Fixed(&bytes[at..at + width])
            }
            CellValues::Bits(bits) => Raw::Bit(bits.value(row)),
            CellValues::Text(texts) => Raw::Text(texts.value(row).as_bytes()),
            CellValues::Items { bytes, ends } => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                Raw::Items(&bytes[start..ends[row]])
            }
        }
    }
}

/// Arrays and maps as the bytes that their rows have.
fn lists(item: &DataType, array: &ArrayRef) -> Result<CellValues, DictError> {
    let (offsets, items) = match array.as_map_opt() {
        Some(map) => (map.offsets(), Arc::new(map.entries().clone()) as ArrayRef),
        None => (array.as_list::<i32>().offsets(), Arc::clone(array.as_list::<i32>().values())),
    };
    let items = Cells::new(item, &items)?;
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(array.len()));
    for (row, range) in offsets.windows(2).enumerate() {
        if array.is_valid(row) {
            (range[0]..range[1]).for_each(|i| value::put(item, &items.get(i as usize), &mut bytes));
        }
        ends.push(bytes.len());
    }
    Ok(CellValues::Items { bytes, ends })
}

fn tuples(elements: &[Element], array: &ArrayRef) -> Result<CellValues, DictError> {
    let columns = elements.iter().zip(array.as_struct().columns());
    let columns: Vec<(&DataType, Cells)> = columns
        .map(|(element, column)| Ok((&element.data_type, Cells::new(&element.data_type, column)?)))
        .collect::<Result<_, DictError>>()?;
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(array.len()));
    for row in 0..array.len() {
        columns.iter().for_each(|(data_type, cells)| value::put(data_type, &cells.get(row), &mut bytes));
        ends.push(bytes.len());
    }
    Ok(CellValues::Items { bytes, ends })
}
