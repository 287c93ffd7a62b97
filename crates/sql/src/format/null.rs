//! `FORMAT Null`: the query runs, nothing is written.

use datafusion::arrow::array::RecordBatch;
use granary_dialect::Result;

use super::{BatchWriter, Statistics};

/// Drops every batch.
pub struct Null;

impl BatchWriter for Null {
    fn write(&mut self, _batch: &RecordBatch) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(())
    }
}
