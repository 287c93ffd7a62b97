//! A dictionary as a table: the entries that are resident.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use granary_dialect::Error;
use granary_dict::{Definition, DictError, Dictionary, Key, LayoutKind, Times};

use crate::tables::provider::{Table, Wanted};
use crate::tables::scan::Scan;

/// The table.
pub struct DictionaryTable {
    dictionary: Arc<Dictionary>,
    schema: SchemaRef,
    /// Place in the dictionary's row, by column.
    places: Vec<usize>,
    times: Times,
}

impl std::fmt::Debug for DictionaryTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DictionaryTable").field("name", &self.dictionary.definition().full_name()).finish()
    }
}

impl DictionaryTable {
    pub fn new(dictionary: Arc<Dictionary>, times: Times) -> Self {
        let (schema, places) = columns_of(dictionary.definition(), times);
        Self { dictionary, schema, places, times }
    }

    /// The dictionary, and each column's place in its row; `None` if the table has columns (times) that looked-up rows
    /// lack.
    pub fn found_by_key(&self) -> Option<(&Arc<Dictionary>, &[usize])> {
        (self.times == Times::Hidden).then_some((&self.dictionary, &self.places[..]))
    }
}

/// The columns of a dictionary as a table, and each column's place in the dictionary's row.
pub fn columns_of(definition: &Definition, times: Times) -> (SchemaRef, Vec<usize>) {
    let structure = definition.rows();
    let rows = structure.schema_with(times);
    let mut places: Vec<usize> = (0..rows.fields().len()).collect();
    // As in ClickHouse, the bounds of a range stand before a complex key and behind a simple one.
    if let Key::Complex(key) = &structure.key {
        places[..key.len() + definition.bounds().len()].rotate_left(key.len());
    }
    let fields: Vec<_> = places.iter().map(|&place| Arc::clone(&rows.fields()[place])).collect();
    (Arc::new(Schema::new(fields)), places)
}

impl Table for DictionaryTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, wanted: &Wanted<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = ResidentRows {
            dictionary: Arc::clone(&self.dictionary),
            times: self.times,
            schema: wanted.schema(&self.schema)?,
            places: wanted.columns(&self.schema).into_iter().map(|column| self.places[column]).collect(),
        };
        let scan = Scan::new("dictionary", Arc::clone(&rows.schema), vec![Arc::new(rows)]);
        // The number of rows of a source is unknown.
        Ok(Arc::new(match self.dictionary.definition().layout.kind {
            LayoutKind::Direct => scan,
            LayoutKind::Ssd(_) | LayoutKind::Memory { .. } | LayoutKind::FullLoad(_) => {
                scan.with_rows(self.dictionary.status().element_count)
            }
        }))
    }
}

/// The rows, read on demand.
struct ResidentRows {
    dictionary: Arc<Dictionary>,
    times: Times,
    /// Schema of the columns wanted.
    schema: SchemaRef,
    places: Vec<usize>,
}

impl std::fmt::Debug for ResidentRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResidentRows").field("dictionary", &self.dictionary.definition().full_name()).finish()
    }
}

impl PartitionStream for ResidentRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let places = self.places.clone();
        let wanted = move |batch: std::result::Result<RecordBatch, DictError>| -> Result<RecordBatch> {
            Ok(batch.map_err(Error::from)?.project(&places)?)
        };
        let batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send> =
            match self.dictionary.resident_with(self.times) {
                Ok(batches) => Box::new(batches.map(wanted)),
                Err(error) => Box::new(std::iter::once(Err(Error::from(error).into()))),
            };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(batches)))
    }
}
