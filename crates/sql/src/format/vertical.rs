//! `Vertical`: a value a line, for wide rows.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use granary_dialect::Result;
use granary_dialect::text::{Style, write_cell};

use super::{BatchWriter, Statistics, columns, names};

/// A value a line.
pub struct Vertical<'a> {
    out: &'a mut (dyn Write + Send),
    /// `name:   `, padded to the longest.
    labels: Vec<String>,
    rows: u64,
}

impl<'a> Vertical<'a> {
    pub fn new(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Self {
        let names = names(schema);
        let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let label = |name: &String| format!("{name}: {}", " ".repeat(widest - name.chars().count()));
        Self { out, labels: names.iter().map(label).collect(), rows: 0 }
    }
}

impl BatchWriter for Vertical<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(batch)?;
        let mut text = Vec::new();
        for row in 0..batch.num_rows() {
            if self.rows > 0 {
                text.push(b'\n');
            }
            self.rows += 1;
            let title = format!("Row {}:", self.rows);
            text.extend_from_slice(format!("{title}\n{}\n", "─".repeat(title.len())).as_bytes());
            for (label, column) in self.labels.iter().zip(&columns) {
                text.extend_from_slice(label.as_bytes());
                write_cell(column, row, Style::Pretty, &mut text);
                text.push(b'\n');
            }
        }
        Ok(self.out.write_all(&text)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(())
    }
}
