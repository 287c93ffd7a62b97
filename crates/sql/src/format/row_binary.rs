//! `RowBinary` and its kin: values row by row, a byte before what may be NULL.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use granary_dialect::Result;
use granary_dialect::types::type_name;

use super::binary::{Layout, bytes, varint};
use super::{BatchWriter, Statistics, columns, names};
use crate::limits::BINARY_PIECE_BYTES;

/// Rows as bytes.
pub struct RowBinary<'a> {
    out: &'a mut (dyn Write + Send),
    layouts: Vec<Layout>,
    buffer: Vec<u8>,
}

impl<'a> RowBinary<'a> {
    pub fn new(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Self {
        let layouts = schema.fields().iter().map(|field| Layout::of(field)).collect();
        Self { out, layouts, buffer: Vec::new() }
    }

    pub fn with_names(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Result<Self> {
        out.write_all(&head(schema))?;
        Ok(Self::new(schema, out))
    }

    pub fn with_names_and_types(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Result<Self> {
        let mut head = head(schema);
        schema.fields().iter().for_each(|field| bytes(type_name(field).as_bytes(), &mut head));
        out.write_all(&head)?;
        Ok(Self::new(schema, out))
    }
}

/// How many columns there are, and their names.
fn head(schema: &Schema) -> Vec<u8> {
    let mut head = Vec::new();
    varint(schema.fields().len() as u64, &mut head);
    names(schema).iter().for_each(|name| bytes(name.as_bytes(), &mut head));
    head
}

impl BatchWriter for RowBinary<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(batch)?;
        self.buffer.clear();
        for row in 0..batch.num_rows() {
            for (layout, column) in self.layouts.iter().zip(&columns) {
                layout.write(column, row, &mut self.buffer)?;
            }
            if self.buffer.len() >= BINARY_PIECE_BYTES {
                self.out.write_all(&self.buffer)?;
                self.buffer.clear();
            }
        }
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(())
    }
}
