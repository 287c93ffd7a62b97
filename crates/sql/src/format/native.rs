//! `Native`: blocks of columns, each behind its name and type.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use granary_dialect::Result;
use granary_dialect::types::type_name;

use super::binary::{Layout, bytes, varint};
use super::{BatchWriter, Statistics, columns, names};
use crate::limits::BINARY_PIECE_BYTES;

/// From this revision of ClickHouse's protocol on, blocks begin with block information,
const WITH_BLOCK_INFO: u64 = 51_903;
/// and from this one on a byte after each type says whether its values have a custom serialization.
const WITH_SERIALIZATION: u64 = 54_454;

/// ClickHouse's own format; without block information unless the client gives its revision.
pub struct Native<'a> {
    out: &'a mut (dyn Write + Send),
    info: &'static [u8],
    heads: Vec<Vec<u8>>,
    layouts: Vec<Layout>,
    /// An empty result is one block without rows, which names its columns.
    empty: bool,
}

impl<'a> Native<'a> {
    /// `revision` of the protocol; 0: as in files, and over HTTP.
    pub fn new(schema: &Schema, out: &'a mut (dyn Write + Send), revision: u64) -> Self {
        let head = |(name, field): (&String, _)| {
            let mut head = Vec::new();
            bytes(name.as_bytes(), &mut head);
            bytes(type_name(field).as_bytes(), &mut head);
            if revision >= WITH_SERIALIZATION {
                head.push(0);
            }
            head
        };
        // Field 1: no rows beyond a limit; field 2: no bucket (-1, in 4 bytes); the end.
        let info: &[u8] = if revision >= WITH_BLOCK_INFO { &[1, 0, 2, 255, 255, 255, 255, 0] } else { &[] };
        let fields = schema.fields().iter().map(|field| field.as_ref());
        let heads = names(schema).iter().zip(fields).map(head).collect();
        let layouts = schema.fields().iter().map(|field| Layout::of(field)).collect();
        Self { out, info, heads, layouts, empty: true }
    }

    fn block(&mut self, rows: usize, batch: Option<&RecordBatch>) -> Result<()> {
        let mut block = self.info.to_vec();
        varint(self.heads.len() as u64, &mut block);
        varint(rows as u64, &mut block);
        let columns = batch.map(columns).transpose()?.unwrap_or_default();
        for (i, (head, layout)) in self.heads.iter().zip(&self.layouts).enumerate() {
            block.extend_from_slice(head);
            if let Some(column) = columns.get(i) {
                layout.write_column(column, 0..rows, &mut block)?;
            }
            // The reader can begin with the block while its other columns are made.
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
