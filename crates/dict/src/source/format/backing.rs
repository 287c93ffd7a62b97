//! What stands behind a batch of Arrow: it says how many values it has, and not all of them take bytes. Those of the
//! type Null take none, nor do the values of a run, lists of no items and bytes of no length; keys of a dictionary, and
//! views, may all mean one long value.

use crate::error::{Code, DictError};
use crate::limits::{ARROW_VALUES_MAX, DECODED_ROWS, ROW_BYTES_MAX};
use arrow::array::{Array, ArrayData, ArrayRef, AsArray};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType as Arrow;
use std::ops::Range;

/// The parts of a batch that are made into ours one after the other: none takes more than a bounded number of bytes, as
/// values are copied that several rows share. `columns` are those that are wanted of a batch of `rows` rows.
///
/// # Errors
/// `LIMIT_EXCEEDED` for columns with more values than their bytes can be.
pub(super) fn parts(columns: &[&ArrayRef], rows: usize) -> Result<Vec<Range<usize>>, DictError> {
    let data: Vec<ArrayData> = columns.iter().map(|array| array.to_data()).collect();
    // Rows of all columns are as many, and one that has bytes for them is enough.
    if rows > ARROW_VALUES_MAX && !data.iter().any(is_backed) {
        return Err(too_many(rows));
    }
    data.iter().flat_map(ArrayData::child_data).try_for_each(check_backed)?;
    let shared: Vec<CopiedBytes> = columns
        .iter()
        .zip(&data)
        .filter(|(_, data)| shares_values(data))
        .map(|(array, data)| CopiedBytes::new(array, data))
        .collect();
    let rows_max = if shared.is_empty() { DECODED_ROWS } else { rows };
    let (mut parts, mut first, mut bytes) = (Vec::new(), 0, 0);
    for row in 0..rows {
        bytes += shared.iter().map(|column| column.of_row(row)).sum::<usize>();
        if bytes >= ROW_BYTES_MAX || row + 1 - first >= rows_max {
            parts.push(first..row + 1);
            (first, bytes) = (row + 1, 0);
        }
    }
    parts.extend((first < rows).then_some(first..rows));
    Ok(parts)
}

/// The bytes that are copied for each row of an array in which several rows may share a value.
enum CopiedBytes {
    /// The value of a dictionary, by row.
    Value { keys: Vec<usize>, lengths: Vec<usize> },
    /// The length of the view, by row.
    View(Vec<usize>),
    /// This many bytes at most.
    AtMost(usize),
}

impl CopiedBytes {
    fn new(array: &ArrayRef, data: &ArrayData) -> Self {
        if let Some(dictionary) = array.as_any_dictionary_opt()
            && !dictionary.values().is_empty()
            && let Some(lengths) = lengths(dictionary.values())
        {
            return Self::Value { keys: dictionary.normalized_keys(), lengths };
        }
        lengths(array).map_or_else(|| Self::AtMost(longest_buffer(data)), Self::View)
    }

    fn of_row(&self, row: usize) -> usize {
        match self {
            Self::Value { keys, lengths } => lengths[keys[row]],
            Self::View(lengths) => lengths[row],
            Self::AtMost(bytes) => *bytes,
        }
    }
}

/// The length of each text, of bytes, or of each value of a fixed width; `None`: of another type.
fn lengths(array: &ArrayRef) -> Option<Vec<usize>> {
    fn each(array: &ArrayRef, length: impl Fn(usize) -> usize) -> Vec<usize> {
        (0..array.len()).map(length).collect()
    }
    Some(match array.data_type() {
        Arrow::Utf8 => each(array, |i| array.as_string::<i32>().value_length(i) as usize),
        Arrow::LargeUtf8 => each(array, |i| array.as_string::<i64>().value_length(i) as usize),
        Arrow::Binary => each(array, |i| array.as_binary::<i32>().value_length(i) as usize),
        Arrow::LargeBinary => each(array, |i| array.as_binary::<i64>().value_length(i) as usize),
        Arrow::Utf8View => each(array, |i| array.as_string_view().views()[i] as u32 as usize),
        Arrow::BinaryView => each(array, |i| array.as_binary_view().views()[i] as u32 as usize),
        fixed => vec![fixed.primitive_width()?; array.len()],
    })
}

/// Checks an array that has a length of its own. The fields of a struct have the struct's, and one that has bytes for
/// it is enough.
fn check_backed(data: &ArrayData) -> Result<(), DictError> {
    if data.len() > ARROW_VALUES_MAX && !is_backed(data) {
        return Err(too_many(data.len()));
    }
    match data.data_type() {
        Arrow::Struct(_) => {
            data.child_data().iter().flat_map(ArrayData::child_data).try_for_each(check_backed)
        }
        _ => data.child_data().iter().try_for_each(check_backed),
    }
}

fn too_many(count: usize) -> DictError {
    DictError::new(Code::LimitExceeded, format!("Arrow: {count} values without bytes"))
}

/// Whether an array has a bit at least for each of its values, of its own or as a struct.
fn is_backed(data: &ArrayData) -> bool {
    let is_of_values = |buffer: &Buffer| buffer.len().saturating_mul(8) >= data.len();
    let is_of_each = |child: &ArrayData| child.len() >= data.len() && is_backed(child);
    data.buffers().iter().any(is_of_values) || data.child_data().iter().any(is_of_each)
}

/// Whether several values of an array, or of one inside of it, may be the same bytes.
fn shares_values(data: &ArrayData) -> bool {
    matches!(
        data.data_type(),
        Arrow::Dictionary(..)
            | Arrow::RunEndEncoded(..)
            | Arrow::ListView(_)
            | Arrow::LargeListView(_)
            | Arrow::Utf8View
            | Arrow::BinaryView
    ) || data.child_data().iter().any(shares_values)
}

/// Bytes of the longest part of an array.
fn longest_buffer(data: &ArrayData) -> usize {
    let own = data.buffers().iter().map(Buffer::len);
    own.chain(data.child_data().iter().map(longest_buffer)).max().unwrap_or_default()
}
