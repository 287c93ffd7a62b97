//! ENGINE = Join(strictness, kind, keys): tables whose rows are found by key.

use std::collections::HashMap;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;

/// What a row is found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinKeys {
    /// Places of the key columns.
    pub columns: Vec<usize>,
    /// ANY: of rows with the same key the first is kept. Else all are.
    pub is_any: bool,
}

/// The first row of each key, by the bytes of the key: which batch, which row in it.
pub type Found = HashMap<Box<[u8]>, (usize, usize)>;

impl JoinKeys {
    /// Turns key columns of the table's types into bytes.
    pub fn converter(&self, schema: &SchemaRef) -> Result<RowConverter> {
        let types = self.columns.iter().map(|&column| schema.field(column).data_type().clone());
        Ok(RowConverter::new(types.map(SortField::new).collect())?)
    }

    /// Finds the rows of a table.
    pub fn find(&self, converter: &RowConverter, batches: &[RecordBatch]) -> Result<Found> {
        let mut found = Found::new();
        for (number, batch) in batches.iter().enumerate() {
            for (row, key) in converter.convert_columns(&self.of(batch))?.iter().enumerate() {
                found.entry(key.as_ref().into()).or_insert((number, row));
            }
        }
        Ok(found)
    }

    /// What of new rows is kept beside those that are there.
    pub fn kept(
        &self,
        schema: &SchemaRef,
        there: &[RecordBatch],
        rows: Vec<RecordBatch>,
    ) -> Result<Vec<RecordBatch>> {
        if !self.is_any {
            return Ok(rows);
        }
        let converter = self.converter(schema)?;
        let mut known = self.find(&converter, there)?;
        let mut kept = Vec::with_capacity(rows.len());
        for batch in rows {
            let keys = converter.convert_columns(&self.of(&batch))?;
            let is_new = keys.iter().map(|key| known.insert(key.as_ref().into(), (0, 0)).is_none());
            kept.push(filter_record_batch(&batch, &is_new.map(Some).collect::<BooleanArray>())?);
        }
        Ok(kept)
    }

    fn of(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        self.columns.iter().map(|&column| batch.column(column).clone()).collect()
    }
}
