//! `JSONCompactEachRow` and its relatives with names: one array a line.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use granary_dialect::Result;
use granary_dialect::text::{Style, write_cell};
use granary_dialect::types::type_name;

use super::tab_separated::HeaderLines;
use super::{BatchWriter, Statistics, columns, escape, names};

/// One JSON array a row.
pub struct JsonCompactEachRow<'a> {
    out: &'a mut (dyn Write + Send),
    buffer: Vec<u8>,
}

impl<'a> JsonCompactEachRow<'a> {
    pub fn open(schema: &Schema, out: &'a mut (dyn Write + Send), header: HeaderLines) -> Result<Self> {
        let mut head = Vec::new();
        if header != HeaderLines::Absent {
            line(names(schema), &mut head);
        }
        if header == HeaderLines::NamesAndTypes {
            line(schema.fields().iter().map(|field| type_name(field)).collect(), &mut head);
        }
        out.write_all(&head)?;
        Ok(Self { out, buffer: Vec::new() })
    }
}

fn line(texts: Vec<String>, out: &mut Vec<u8>) {
    for (i, text) in texts.iter().enumerate() {
        out.extend_from_slice(if i == 0 { b"[" } else { b", " });
        escape::json(text.as_bytes(), out);
    }
    out.extend_from_slice(b"]\n");
}

impl BatchWriter for JsonCompactEachRow<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(batch)?;
        self.buffer.clear();
        for row in 0..batch.num_rows() {
            for (i, column) in columns.iter().enumerate() {
                self.buffer.extend_from_slice(if i == 0 { b"[" } else { b", " });
                write_cell(column, row, Style::Json, &mut self.buffer);
            }
            self.buffer.extend_from_slice(b"]\n");
        }
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(())
    }
}
