//! ArrowStream: Arrow's IPC stream. Columns are found by their names, and cast to our types: what writes such a
//! stream has types of its own, ClickHouse too.

use super::{ColumnOrder, Rows, backing};
use crate::error::DictError;
use crate::limits::ROW_BYTES_MAX;
use crate::quiet_panics::caught_quietly;
use crate::row::Cells;
use crate::types::DataType;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use std::sync::Arc;

/// One stream of one batch.
pub(super) fn write(
    columns: &[(String, DataType)],
    keys: &[ArrayRef],
    out: &mut Vec<u8>,
) -> Result<(), DictError> {
    let field = |((name, data_type), key): (&(String, DataType), &ArrayRef)| {
        let nullable = data_type.is_nullable() || key.null_count() > 0;
        Field::new(name, key.data_type().clone(), nullable)
    };
    let schema = Schema::new(columns.iter().zip(keys).map(field).collect::<Vec<_>>());
    let write = || {
        let batch = RecordBatch::try_new(Arc::new(schema), keys.to_vec())?;
        let mut writer = StreamWriter::try_new(out, &batch.schema())?;
        writer.write(&batch)?;
        writer.finish()
    };
    write().map_err(failed)
}

fn failed(e: ArrowError) -> DictError {
    DictError::parse_text(format!("Arrow: {e}"))
}

/// State of a stream that is being read.
#[derive(Default)]
pub(super) struct ArrowStreamReader {
    decoder: StreamDecoder,
    /// Bytes since the last whole batch, buffered by the decoder.
    gathered: usize,
}

impl ArrowStreamReader {
    /// Reads the batches that are whole by now.
    pub fn read(&mut self, bytes: &[u8], rows: &mut Rows) -> Result<(), DictError> {
        let mut buffer = Buffer::from(bytes);
        while !buffer.is_empty() {
            let before = buffer.len();
            // The decoder looks at sizes and offsets, but trusts a few of them.
            let decoded = caught_quietly(|| self.decoder.decode(&mut buffer))
                .unwrap_or_else(|| Err(ArrowError::IpcError("a message makes no sense".into())));
            self.gathered += before - buffer.len();
            match decoded.map_err(failed)? {
                Some(batch) => {
                    self.gathered = 0;
                    push(&batch, rows)?;
                }
                None if self.gathered > ROW_BYTES_MAX => {
                    let text = format!("An Arrow message of more than {ROW_BYTES_MAX} bytes");
                    return Err(DictError::parse_text(text));
                }
                None => {}
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Result<(), DictError> {
        self.decoder.finish().map_err(failed)
    }
}

/// Adds the rows of a batch whose columns have names.
pub(in crate::source) fn push(batch: &RecordBatch, rows: &mut Rows) -> Result<(), DictError> {
    let schema = batch.schema();
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let order = ColumnOrder::of_names(&names, rows)?;
    let wanted: Vec<(usize, &ArrayRef)> = order
        .places
        .iter()
        .zip(batch.columns())
        .filter_map(|(place, array)| place.map(|column| (column, array)))
        .collect();
    let arrays: Vec<&ArrayRef> = wanted.iter().map(|(_, array)| *array).collect();
    for part in backing::parts(&arrays, batch.num_rows())? {
        for (column, array) in &wanted {
            push_values(*column, &array.slice(part.start, part.len()), rows)?;
        }
        part.into_iter().try_for_each(|_| order.end_row(rows))?;
        rows.check_growth()?;
    }
    Ok(())
}

fn push_values(column: usize, array: &ArrayRef, rows: &mut Rows) -> Result<(), DictError> {
    let data_type = rows.data_type(column).clone();
    let adopted = data_type.adopt(array).and_then(|array| data_type.check_range(&array).map(|()| array));
    let array = adopted.map_err(|e| rows.within(column, e))?;
    let cells = Cells::new(data_type.inner(), &array)?;
    for row in 0..array.len() {
        rows.column(column).push(cells.get(row));
    }
    Ok(())
}
