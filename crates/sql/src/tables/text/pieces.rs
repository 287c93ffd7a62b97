//! A text file cut into pieces, one for each thread.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use granary_dialect::{Error, Result};
use granary_dict::TextFormat;

use super::reader::{Compression, Reader};
use super::{TextFile, ValueKind};
use crate::limits::{TEXT_CHUNK_BYTES, TEXT_SPLIT_BYTES};

/// A range of a file's unpacked bytes that begins with a row.
pub type Range = std::ops::Range<u64>;

/// Where to cut. Only in a TabSeparated file can row ends be told without reading from its beginning.
pub fn ranges(file: &TextFile, threads: usize) -> Result<Vec<Range>> {
    let splits = file.format == TextFormat::TabSeparated && file.compression == Compression::None;
    let failed = |error: std::io::Error| Error::cannot_open_file(format!("Cannot read: {error}"));
    let handle = File::open(&file.path).map_err(failed)?;
    let bytes = handle.metadata().map_err(failed)?.len();
    let pieces = if splits { (bytes / TEXT_SPLIT_BYTES).clamp(1, threads as u64) } else { 1 };
    let mut ranges = Vec::new();
    let mut start = file.header_bytes as u64;
    for piece in 1..pieces {
        let cut = row_start(&handle, bytes / pieces * piece).map_err(failed)?;
        if let Some(cut) = cut.filter(|&cut| cut > start) {
            ranges.push(start..cut);
            start = cut;
        }
    }
    ranges.push(start..u64::MAX);
    Ok(ranges)
}

/// The first row that begins after `from`, if it is near.
fn row_start(file: &File, from: u64) -> std::io::Result<Option<u64>> {
    let mut window = vec![0; TEXT_CHUNK_BYTES];
    let length = file.read_at(&mut window, from)?;
    let window = &window[..length];
    // A backslash before the window may escape its first byte: the first byte after leading backslashes is in doubt.
    let doubtful = window.iter().take_while(|&&byte| byte == b'\\').count();
    let mut escaped = true;
    for (at, &byte) in window.iter().enumerate().skip(doubtful) {
        match byte {
            b'\n' if !escaped => return Ok(Some(from + at as u64 + 1)),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    Ok(None)
}

/// One piece for one thread.
#[derive(Debug)]
pub struct TextPiece {
    pub file: Arc<TextFile>,
    pub range: Range,
    /// Places of the wanted columns.
    pub columns: Vec<usize>,
    /// Schema of these columns.
    pub schema: SchemaRef,
}

impl PartitionStream for TextPiece {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch_rows = context.session_config().batch_size();
        let batches = Batches {
            file: Arc::clone(&self.file),
            range: self.range.clone(),
            columns: self.columns.clone(),
            schema: Arc::clone(&self.schema),
            reader: None,
            rows: 0,
        };
        let cut = move |batch: Result<RecordBatch>| -> Vec<datafusion::common::Result<RecordBatch>> {
            match batch {
                Ok(batch) => (0..batch.num_rows())
                    .step_by(batch_rows)
                    .map(|at| Ok(batch.slice(at, batch_rows.min(batch.num_rows() - at))))
                    .collect(),
                Err(error) => vec![Err(error.into())],
            }
        };
        let stream = futures::stream::iter(batches.flat_map(cut));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }
}

/// The rows of a piece as they are read; an error is the last item.
struct Batches {
    file: Arc<TextFile>,
    range: Range,
    columns: Vec<usize>,
    schema: SchemaRef,
    /// Opened by the first call, taken at the end.
    reader: Option<Option<Reader>>,
    rows: usize,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batch().map_err(|error| error.at(&self.file.path)).transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.reader = Some(None);
        }
        batch
    }
}

impl Batches {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let file = &self.file;
        if self.reader.is_none() {
            let reader = Reader::open(&file.path, file.compression, file.format, self.range.clone())?;
            self.reader = Some(Some(reader));
        }
        let Some(Some(reader)) = &mut self.reader else { return Ok(None) };
        let Some(text) = reader.next_rows()? else { return Ok(None) };
        // Rows are counted by a column, even if none is wanted.
        let read = if self.columns.is_empty() { &[0][..] } else { &self.columns };
        let arrays = file.format.read(&file.columns, read, &text, self.rows)?;
        let rows = arrays[0].len();
        self.rows += rows;
        let arrays = self.columns.iter().zip(arrays).map(|(&column, array)| shown(file.kinds[column], array));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?))
    }
}

fn shown(kind: ValueKind, array: ArrayRef) -> Result<ArrayRef> {
    match kind {
        ValueKind::DateTime64 => Ok(cast(&array, kind.field("").data_type())?),
        _ => Ok(array),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_where_rows_begin() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"ab\\\ncd\nx\\\\\ny\n").unwrap();
        let cuts: Vec<_> = (0..12).map(|from| row_start(&file, from).unwrap()).collect();
        assert!(cuts.iter().flatten().all(|cut| [7, 11, 13].contains(cut)), "{cuts:?}");
        assert_eq!((cuts[0], cuts[7], cuts[11]), (Some(7), Some(11), Some(13)));
    }
}
