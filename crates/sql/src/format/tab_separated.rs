//! `TabSeparated` and its kin.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use granary_dialect::Result;
use granary_dialect::text::{Style, write_cell};
use granary_dialect::types::type_name;

use super::{BatchWriter, Statistics, columns, escape, names};

/// The lines above the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HeaderLines {
    Absent,
    Names,
    NamesAndTypes,
}

/// A row a line, tabs between the values.
pub struct TabSeparated<'a> {
    out: &'a mut (dyn Write + Send),
    style: Style,
    buffer: Vec<u8>,
}

impl<'a> TabSeparated<'a> {
    pub fn open(
        schema: &Schema,
        out: &'a mut (dyn Write + Send),
        header: HeaderLines,
        style: Style,
    ) -> Result<Self> {
        if header != HeaderLines::Absent {
            out.write_all(&line(names(schema)))?;
        }
        if header == HeaderLines::NamesAndTypes {
            out.write_all(&line(schema.fields().iter().map(|field| type_name(field)).collect()))?;
        }
        Ok(Self { out, style, buffer: Vec::new() })
    }
}

fn line(texts: Vec<String>) -> Vec<u8> {
    let mut line = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        if i > 0 {
            line.push(b'\t');
        }
        escape::tab(text.as_bytes(), &mut line);
    }
    line.push(b'\n');
    line
}

impl BatchWriter for TabSeparated<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(batch)?;
        self.buffer.clear();
        for row in 0..batch.num_rows() {
            for (i, column) in columns.iter().enumerate() {
                if i > 0 {
                    self.buffer.push(b'\t');
                }
                write_cell(column, row, self.style, &mut self.buffer);
            }
            self.buffer.push(b'\n');
        }
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(())
    }
}
