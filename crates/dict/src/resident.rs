//! SELECT * FROM a dictionary: what is in the cache, or for DIRECT what is in the source.

use crate::definition::{Definition, Structure};
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::{Loader, Pool, Turn};
use crate::row::{Column, Decoder};
use crate::store::Store;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Found and fresh entries, in no order.
pub(crate) fn scan(
    store: &Store,
    loader: &Loader,
    structure: &Structure,
) -> Result<Vec<RecordBatch>, DictError> {
    let now = loader.clock.now();
    let schema = structure.schema();
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
        if rows.len() == limits::RESIDENT_BATCH_ROWS && failure.is_none() {
            let full = (std::mem::take(&mut keys), std::mem::replace(&mut rows, start().1));
            keys = start().0;
            match finish(&schema, full.0, full.1) {
                Ok(batch) => batches.push(batch),
                Err(error) => failure = Some(error),
            }
        }
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    if rows.len() > 0 || batches.is_empty() {
        batches.push(finish(&schema, keys, rows)?);
    }
    Ok(batches)
}

fn finish(schema: &SchemaRef, keys: Vec<Column>, rows: Decoder<'_>) -> Result<RecordBatch, DictError> {
    let mut columns: Vec<ArrayRef> = keys.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
    columns.extend(rows.finish()?);
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
) -> Result<Vec<RecordBatch>, DictError> {
    let (answer, answers) = channel();
    let update = &definition.layout.update;
    let worker = loader.clone();
    let job = move |turn: Turn<'_>| {
        if let Turn::Run(source) = turn {
            // Nobody waits any longer if the query timed out.
            let _ = answer.send(worker.ask(source, |source| source.load_all()));
        }
    };
    let patience = Duration::from_millis(update.update_queue_push_timeout_ms);
    let unavailable = |what: &str| {
        DictError::new(
            Code::TimeoutExceeded,
            format!("Dictionary {} source seems unavailable, because {what}", loader.name),
        )
    };
    pool.push(Box::new(job), patience).map_err(|_| unavailable("its queue is full or closed"))?;
    let timeout_ms = update.query_wait_timeout_ms;
    let batches = answers
        .recv_timeout(Duration::from_millis(timeout_ms))
        .map_err(|_| unavailable(&format!("{timeout_ms} ms timeout exceeded")))??;
    let schema = definition.structure.schema();
    batches
        .iter()
        .map(|answered| loader.with_defaults(answered).and_then(|columns| batch(&schema, columns)))
        .collect()
}
