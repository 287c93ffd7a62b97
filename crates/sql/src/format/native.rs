//! `Native`: blocks of columns, each behind its name and type.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use granary_dialect::Result;
use granary_dialect::types::type_name;

use super::binary::{Layout, bytes, varint};
use super::{BatchWriter, Statistics, columns, names};
use crate::limits::BINARY_PIECE_BYTES;

/// ClickHouse's own format, as it is over HTTP: without block information.
pub struct Native<'a> {
    out: &'a mut (dyn Write + Send),
    heads: Vec<Vec<u8>>,
    layouts: Vec<Layout>,
    /// An empty result is one block without rows, which says what its columns would be.
    empty: bool,
}

impl<'a> Native<'a> {
    pub fn new(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Self {
        let head = |(name, field): (&String, _)| {
            let mut head = Vec::new();
            bytes(name.as_bytes(), &mut head);
            bytes(type_name(field).as_bytes(), &mut head);
            head
        };
        let fields = schema.fields().iter().map(|field| field.as_ref());
        let heads = names(schema).iter().zip(fields).map(head).collect();
        let layouts = schema.fields().iter().map(|field| Layout::of(field)).collect();
        Self { out, heads, layouts, empty: true }
    }

    fn block(&mut self, rows: usize, batch: Option<&RecordBatch>) -> Result<()> {
        let mut block = Vec::new();
        varint(self.heads.len() as u64, &mut block);
        varint(rows as u64, &mut block);
        let columns = batch.map(columns).transpose()?.unwrap_or_default();
        for (i, (head, layout)) in self.heads.iter().zip(&self.layouts).enumerate() {
            block.extend_from_slice(head);
            if let Some(column) = columns.get(i) {
                layout.write_column(column, 0..rows, &mut block)?;
            }
            // Whoever reads the block begins while its other columns are made.
            if block.len() >= BINARY_PIECE_BYTES {
                self.out.write_all(&block)?;
                block.clear();
            }
        }
        Ok(self.out.write_all(&block)?)
    }
}

impl BatchWriter for Native<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.empty = false;
        self.block(batch.num_rows(), Some(batch))
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        if self.empty { self.block(0, None) } else { Ok(()) }
    }
}
