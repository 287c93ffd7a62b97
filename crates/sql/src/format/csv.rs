//! `CSV` and `CSVWithNames`. Tuples take a column for each item, as in ClickHouse.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use granary_dialect::Result;
use granary_dialect::text::{Style, write_cell};

use super::{BatchWriter, Statistics, columns, escape, shown_name};

/// A row a line, commas between the values, strings in double quotes.
pub struct Csv<'a> {
    out: &'a mut (dyn Write + Send),
    buffer: Vec<u8>,
}

impl<'a> Csv<'a> {
    pub fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, buffer: Vec::new() }
    }

    pub fn with_names(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Result<Self> {
        let mut names = Vec::new();
        for field in schema.fields() {
            flat_names(shown_name(field.name()), field, &mut names);
        }
        let mut line = Vec::new();
        for (i, name) in names.iter().enumerate() {
            if i > 0 {
                line.push(b',');
            }
            escape::csv(name.as_bytes(), &mut line);
        }
        line.push(b'\n');
        out.write_all(&line)?;
        Ok(Self::new(out))
    }
}

fn flat_names(name: &str, field: &Field, names: &mut Vec<String>) {
    match field.data_type() {
        DataType::Struct(items) => {
            for item in items {
                flat_names(&format!("{name}.{}", item.name()), item, names);
            }
        }
        _ => names.push(name.to_owned()),
    }
}

impl BatchWriter for Csv<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(batch)?;
        self.buffer.clear();
        for row in 0..batch.num_rows() {
            for (i, column) in columns.iter().enumerate() {
                if i > 0 {
                    self.buffer.push(b',');
                }
                write_cell(column, row, Style::Csv, &mut self.buffer);
            }
            self.buffer.push(b'\n');
        }
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(())
    }
}
