//! `JSON` and `JSONCompact`: the whole result as one document, with the types of its columns.

use std::io::Write;
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use granary_dialect::Result;
use granary_dialect::text::{Style, write_cell};
use granary_dialect::types::type_name;

use super::{BatchWriter, Statistics, columns, escape, names};

/// How a row is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RowShape {
    Object,
    Array,
}

/// One JSON document a result.
pub struct Json<'a> {
    out: &'a mut (dyn Write + Send),
    row: RowShape,
    /// The bytes before each value of a row.
    prefixes: Vec<Vec<u8>>,
    rows: u64,
    started: Instant,
    buffer: Vec<u8>,
}

impl<'a> Json<'a> {
    pub fn open(schema: &Schema, out: &'a mut (dyn Write + Send), row: RowShape) -> Result<Self> {
        let mut head = b"{\n\t\"meta\":\n\t[\n".to_vec();
        let mut prefixes = Vec::new();
        for (i, (name, field)) in names(schema).iter().zip(schema.fields()).enumerate() {
            head.extend_from_slice(if i > 0 {
                b",\n\t\t{\n\t\t\t\"name\": "
            } else {
                b"\t\t{\n\t\t\t\"name\": "
            });
            escape::json(name.as_bytes(), &mut head);
            head.extend_from_slice(b",\n\t\t\t\"type\": ");
            escape::json(type_name(field).as_bytes(), &mut head);
            head.extend_from_slice(b"\n\t\t}");

            let mut prefix = match (row, i) {
                (RowShape::Object, 0) => b"\t\t\t".to_vec(),
                (RowShape::Object, _) => b",\n\t\t\t".to_vec(),
                (RowShape::Array, 0) => Vec::new(),
                (RowShape::Array, _) => b", ".to_vec(),
            };
            if row == RowShape::Object {
                escape::json(name.as_bytes(), &mut prefix);
                prefix.extend_from_slice(b": ");
            }
            prefixes.push(prefix);
        }
        head.extend_from_slice(b"\n\t],\n\n\t\"data\":\n\t[\n");
        out.write_all(&head)?;
        Ok(Self { out, row, prefixes, rows: 0, started: Instant::now(), buffer: Vec::new() })
    }
}

impl BatchWriter for Json<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(batch)?;
        let (begin, end, style): (&[u8], &[u8], Style) = match self.row {
            RowShape::Object => (b"\t\t{\n", b"\n\t\t}", Style::JsonIndented(3)),
            RowShape::Array => (b"\t\t[", b"]", Style::Json),
        };
        self.buffer.clear();
        for row in 0..batch.num_rows() {
            if self.rows > 0 {
                self.buffer.extend_from_slice(b",\n");
            }
            self.buffer.extend_from_slice(begin);
            for (prefix, column) in self.prefixes.iter().zip(&columns) {
                self.buffer.extend_from_slice(prefix);
                write_cell(column, row, style, &mut self.buffer);
            }
            self.buffer.extend_from_slice(end);
            self.rows += 1;
        }
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn finish(&mut self, read: Statistics) -> Result<()> {
        let elapsed = self.started.elapsed().as_secs_f64();
        let (rows, Statistics { rows_read, bytes_read }) = (self.rows, read);
        let tail = format!(
            "\n\t],\n\n\t\"rows\": {rows},\n\n\t\"statistics\":\n\t{{\n\t\t\"elapsed\": {elapsed:.9},\n\
             \t\t\"rows_read\": {rows_read},\n\t\t\"bytes_read\": {bytes_read}\n\t}}\n}}\n"
        );
        Ok(self.out.write_all(tail.as_bytes())?)
    }
}
