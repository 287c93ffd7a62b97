//! What stands behind a batch of Arrow: it says how many values it has, and not all of them take bytes. Those of the type
//! Null take none, nor do the values of a run, lists of no items and bytes of no length; keys of a dictionary, and views,
//! may all mean one long value.

use crate::error::{Code, DictError};
use crate::limits::{ARROW_VALUES_MAX, DECODED_ROWS, ROW_BYTES_MAX};
use arrow::array::{Array, ArrayData, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType as Arrow;

/// How many rows of a batch are made into ours at once: no more than take a bounded number of bytes, as values are
/// copied that several rows share.
///
/// # Errors
/// `LIMIT_EXCEEDED` for a batch with more values than its bytes can be.
pub(super) fn rows_at_once(batch: &RecordBatch) -> Result<usize, DictError> {
    let columns: Vec<ArrayData> = batch.columns().iter().map(Array::to_data).collect();
    // Rows of all columns are as many, and one that has bytes for them is enough.
    if batch.num_rows() > ARROW_VALUES_MAX && !columns.iter().any(is_backed) {
        return Err(too_many(batch.num_rows()));
    }
    columns.iter().flat_map(ArrayData::child_data).try_for_each(check_backed)?;
    match columns.iter().any(shares_values) {
        true => {
            let longest = columns.iter().map(longest_buffer).max().unwrap_or_default();
            Ok((ROW_BYTES_MAX / longest.max(1)).clamp(1, DECODED_ROWS))
        }
        false => Ok(DECODED_ROWS),
    }
}

fn check_backed(data: &ArrayData) -> Result<(), DictError> {
    match data.len() > ARROW_VALUES_MAX && !is_backed(data) {
        true => Err(too_many(data.len())),
        false => data.child_data().iter().try_for_each(check_backed),
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
