//! `Values`: rows as in INSERT.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use granary_dialect::Result;
use granary_dialect::text::{Style, write_cell};

use super::{BatchWriter, Statistics, columns};

/// A tuple a row, commas between them.
pub struct Values<'a> {
    out: &'a mut (dyn Write + Send),
    is_first: bool,
    buffer: Vec<u8>,
}

impl<'a> Values<'a> {
    pub fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, is_first: true, buffer: Vec::new() }
    }
}

impl BatchWriter for Values<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(batch)?;
        self.buffer.clear();
        for row in 0..batch.num_rows() {
            self.buffer.extend_from_slice(if std::mem::take(&mut self.is_first) { b"(" } else { b",(" });
            for (i, column) in columns.iter().enumerate() {
                if i > 0 {
                    self.buffer.push(b',');
                }
                write_cell(column, row, Style::Nested, &mut self.buffer);
            }
            self.buffer.push(b')');
        }
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(())
    }
}
