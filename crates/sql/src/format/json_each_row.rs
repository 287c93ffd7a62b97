//! `JSONEachRow`: one object a line.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use granary_dialect::Result;
use granary_dialect::text::{Style, write_cell};

use super::{BatchWriter, Statistics, columns, escape, names};

/// One JSON object a row.
pub struct JsonEachRow<'a> {
    out: &'a mut (dyn Write + Send),
    /// `{"a":`, `,"b":`, ready to be written before each value.
    prefixes: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl<'a> JsonEachRow<'a> {
    pub fn new(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Self {
        let prefix = |(i, name): (usize, String)| {
            let mut prefix = vec![if i == 0 { b'{' } else { b',' }];
            escape::json(name.as_bytes(), &mut prefix);
            prefix.push(b':');
            prefix
        };
        let prefixes = names(schema).into_iter().enumerate().map(prefix).collect();
        Self { out, prefixes, buffer: Vec::new() }
    }
}

impl BatchWriter for JsonEachRow<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(batch)?;
        self.buffer.clear();
        for row in 0..batch.num_rows() {
            for (prefix, column) in self.prefixes.iter().zip(&columns) {
                self.buffer.extend_from_slice(prefix);
                write_cell(column, row, Style::Json, &mut self.buffer);
            }
            self.buffer.extend_from_slice(b"}\n");
        }
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(())
    }
}
