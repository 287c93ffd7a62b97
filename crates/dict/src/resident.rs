//! SELECT * FROM a dictionary: what is in the cache, or for DIRECT what is in the source.

use crate::definition::{Definition, Structure};
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::{Failure, Loader, Pool, errand};
use crate::row::{Column, Decoder};
use crate::store::Store;
use crate::types::DataType;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, TimestampSecondArray, UInt32Array};
use arrow::datatypes::{Schema, SchemaRef};
use std::sync::Arc;

/// The column behind the attributes that says when an entry was got from the source.
pub(crate) const UPDATED_AT: &str = "_updated_at";

/// Whether rows come with [`UPDATED_AT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The structure's columns alone.
    Hidden,
    /// One more: Nullable(DateTime), NULL where entries never expire, for then nobody knows.
    Shown,
}

impl Structure {
    /// The schema of rows that come with their times, or without. An attribute of the same name is itself.
    pub fn schema_with(&self, times: Times) -> SchemaRef {
        match times == Times::Shown && self.shows_times() {
            false => self.schema(),
            true => {
                let mut fields = self.key_fields();
                fields.extend(self.attribute_fields());
                fields.push(time_type().to_field(UPDATED_AT));
                Arc::new(Schema::new(fields))
            }
        }
    }

    fn shows_times(&self) -> bool {
        self.attribute_index(UPDATED_AT).is_none()
            && self.key_columns().iter().all(|key| key.name != UPDATED_AT)
    }
}

fn time_type() -> DataType {
    DataType::Nullable(Box::new(DataType::DateTime { tz: None }))
}

/// Found and fresh entries, in no order.
pub(crate) fn scan(
    store: &Store,
    loader: &Loader,
    structure: &Structure,
    times: Times,
) -> Result<Vec<RecordBatch>, DictError> {
    let now = loader.clock.now();
    let schema = structure.schema_with(times);
    let shows_times = times == Times::Shown && structure.shows_times();
    let mut updated = Column::new(&time_type());
    let all: Vec<usize> = (0..structure.attributes.len()).collect();
    let types = loader.key_format.data_types();
    let start = || {
        let keys: Vec<Column> = types.iter().map(Column::new).collect();
        (keys, Decoder::new(&loader.row_format, &all, 0))
    };
    let (mut keys, mut rows) = start();
    let mut batches = Vec::new();
    let mut failure = None;
    store.scan(|key, value, expires_at| {
        let Some(value) = value else { return };
        if expires_at != 0 && now > u64::from(expires_at) {
            return;
        }
        if !loader.key_format.is_whole(key) || rows.push(value).is_err() {
            loader.counters.rows_bad.add(1);
            return;
        }
        loader.key_format.decode(key, &mut keys);
        if shows_times {
            match loader.updated_at(key, expires_at) {
                Some(seconds) => updated.push_fixed(&seconds.to_le_bytes()),
                None => updated.push_null(),
            }
        }
        if rows.len() == limits::RESIDENT_BATCH_ROWS && failure.is_none() {
            let full = (std::mem::take(&mut keys), std::mem::replace(&mut rows, start().1));
            keys = start().0;
            let times = shows_times.then(|| std::mem::replace(&mut updated, Column::new(&time_type())));
            match finish(&schema, full.0, full.1, times) {
                Ok(batch) => batches.push(batch),
                Err(error) => failure = Some(error),
            }
        }
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    if rows.len() > 0 || batches.is_empty() {
        batches.push(finish(&schema, keys, rows, shows_times.then_some(updated))?);
    }
    Ok(batches)
}

fn finish(
    schema: &SchemaRef,
    keys: Vec<Column>,
    rows: Decoder<'_>,
    times: Option<Column>,
) -> Result<RecordBatch, DictError> {
    let mut columns: Vec<ArrayRef> = keys.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
    columns.extend(rows.finish()?);
    columns.extend(times.map(Column::finish).transpose()?);
    batch(schema, columns)
}

fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch, DictError> {
    let options = RecordBatchOptions::new();
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|e| DictError::new(Code::IncorrectData, e.to_string()))
}

/// Everything the source has, asked for on a source thread. NULLs where the type has none become defaults.
pub(crate) fn load_all(
    pool: &Pool,
    loader: &Arc<Loader>,
    definition: &Definition,
    times: Times,
) -> Result<Vec<RecordBatch>, DictError> {
    let batches =
        errand(pool, loader, &definition.layout.update, Failure::Counts, |source| source.load_all())?;
    loader.count_rows(&batches);
    let schema = definition.structure.schema_with(times);
    let shows_times = times == Times::Shown && definition.structure.shows_times();
    // What was just answered is of now.
    let now = TimestampSecondArray::new_scalar(loader.clock.now() as i64).into_inner();
    batches
        .iter()
        .map(|answered| {
            let mut columns = loader.with_defaults(answered)?;
            if shows_times {
                let rows = columns.first().map_or(0, |column| column.len());
                let same = UInt32Array::from(vec![0; rows]);
                let times = arrow::compute::take(&now, &same, None);
                columns.push(times.map_err(|e| DictError::new(Code::LimitExceeded, e.to_string()))?);
            }
            batch(&schema, columns)
        })
        .collect()
}
