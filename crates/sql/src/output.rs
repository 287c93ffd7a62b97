//! The answer of a statement.

use std::io::Write;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use futures::future::{Either, select};
use granary_dialect::plan::QuerySettings;
use granary_dialect::{Error, Result};
use tokio::runtime::Handle;
use tokio::time::timeout_at;

use crate::format::{self, Format, Statistics};
use crate::query::Query;

/// The answer of a statement: batches, made on demand.
pub struct Output {
    /// The names and types of its columns.
    pub schema: SchemaRef,
    /// The format that the statement asked for.
    pub format: Option<Format>,
    /// Rows that the statement put into tables.
    pub written: Written,
    /// The query, until it begins: when its first batch is asked for.
    query: Option<Query>,
    stream: SendableRecordBatchStream,
    plan: Option<Arc<dyn ExecutionPlan>>,
    limits: Limits,
    /// Completes when the answer is not wanted any more.
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    rows: Arc<AtomicU64>,
    /// Counted only if there is a limit.
    bytes: u64,
    /// See [`Output::set_native_revision`].
    native_revision: u64,
}

/// Rows that were put into a table, and their size.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Bytes of the rows as columns in memory.
    pub bytes: u64,
}

/// Limits of a query's time and answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    rows: Option<u64>,
    bytes: Option<u64>,
    seconds: Option<f64>,
    deadline: Option<Instant>,
}

impl Limits {
    /// The limits of a query that begins now.
    pub fn of(config: &SessionConfig) -> Limits {
        let Some(settings) = config.options().extensions.get::<QuerySettings>() else {
            return Limits::default();
        };
        let seconds = Some(settings.max_execution_time).filter(|seconds| *seconds > 0.0);
        // A deadline too far away to be represented is none.
        let deadline = seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .and_then(|timeout| Instant::now().checked_add(timeout));
        let limit = |most: u64| Some(most).filter(|most| *most > 0);
        let (rows, bytes) = (limit(settings.max_result_rows), limit(settings.max_result_bytes));
        Limits { rows, bytes, seconds, deadline }
    }
}

impl Output {
    /// The answer of a statement without rows.
    pub(crate) fn empty() -> Output {
        Output::of(Arc::new(Schema::empty()), vec![])
    }

    /// The answer of a statement that put these rows into a table.
    pub(crate) fn of_insert(rows: &[RecordBatch]) -> Output {
        let written = Written {
            rows: rows.iter().map(|batch| batch.num_rows() as u64).sum(),
            bytes: rows.iter().map(bytes_of).sum(),
        };
        Output { written, ..Output::empty() }
    }

    pub(crate) fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Output {
        let stream = futures::stream::iter(batches.into_iter().map(Ok));
        let stream = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), stream));
        Output {
            schema,
            format: None,
            written: Written::default(),
            query: None,
            stream,
            plan: None,
            limits: Limits::default(),
            gone: None,
            rows: Arc::default(),
            bytes: 0,
            native_revision: 0,
        }
    }

    /// The answer of a query, which begins when its first batch is asked for.
    pub(crate) fn of_query(format: Option<Format>, query: Query, limits: Limits) -> Output {
        let (schema, plan) = (Arc::clone(&query.schema), Arc::clone(&query.plan));
        Output { query: Some(query), plan: Some(plan), format, limits, ..Output::of(schema, vec![]) }
    }

    /// One batch with these columns.
    pub(crate) fn columns(columns: Vec<(&str, ArrayRef)>) -> Result<Output> {
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        Ok(Output::of(schema, vec![batch]))
    }

    /// Whether there is anything to write: commands such as DROP answer nothing, not even a header.
    pub fn has_columns(&self) -> bool {
        !self.schema.fields().is_empty()
    }

    /// Ends the query when `gone` completes: its answer is not wanted any more.
    pub fn end_when(&mut self, gone: impl Future<Output = ()> + Send + 'static) {
        self.gone = Some(Box::pin(gone));
    }

    /// The next batch, or `None` at the end.
    ///
    /// # Errors
    /// QUERY_WAS_CANCELLED if the answer is not wanted any more, TIMEOUT_EXCEEDED and TOO_MANY_ROWS_OR_BYTES beyond the
    /// settings' limits, and the query's own errors.
    pub async fn next(&mut self) -> Option<Result<RecordBatch>> {
        if let Err(error) = self.begin(Query::ahead) {
            return Some(Err(error));
        }
        let (stream, deadline) = (&mut self.stream, self.limits.deadline);
        let next = async {
            match deadline {
                None => Ok(stream.next().await),
                Some(deadline) => timeout_at(deadline.into(), stream.next()).await,
            }
        };
        let next = match &mut self.gone {
            None => next.await,
            // Seen when the query yields, which it does now and then.
            Some(gone) => match select(gone, pin!(next)).await {
                Either::Left(_) => {
                    return Some(Err(Error::query_was_cancelled("Query was cancelled: nobody waits for it")));
                }
                Either::Right((next, _)) => next,
            },
        };
        let Ok(next) = next else { return Some(Err(self.out_of_time())) };
        let batch = match next? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error.into())),
        };
        let rows = batch.num_rows() as u64;
        let rows = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        if self.limits.bytes.is_some() {
            self.bytes += bytes_of(&batch);
        }
        let limits = [("rows", rows, self.limits.rows), ("bytes", self.bytes, self.limits.bytes)];
        for (what, count, most) in limits {
            if let Some(most) = most.filter(|most| count > *most) {
                let message =
                    format!("Limit for result exceeded, max {what}: {most}, current {what}: {count}");
                return Some(Err(Error::too_many_rows(message)));
            }
        }
        Some(Ok(batch))
    }

    fn begin(&mut self, how: impl FnOnce(&Query) -> Result<SendableRecordBatchStream>) -> Result<()> {
        if let Some(query) = self.query.take() {
            self.stream = how(&query)?;
        }
        Ok(())
    }

    fn out_of_time(&self) -> Error {
        let seconds = self.limits.seconds.unwrap_or_default();
        Error::timeout_exceeded(format!("Timeout exceeded: the query took longer than {seconds} seconds"))
    }

    /// Rows answered so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Sets the revision of ClickHouse's protocol by which `Native` is written; 0: as in files.
    pub fn set_native_revision(&mut self, revision: u64) {
        self.native_revision = revision;
    }

    /// Writes all batches, from a thread that may wait: `out` may block, and is called outside the runtime.
    pub fn write(&mut self, runtime: &Handle, format: Format, out: &mut (dyn Write + Send)) -> Result<()> {
        if self.limits.deadline.is_none() {
            let _runtime = runtime.enter();
            // No thread has to be woken, which for a small query takes as long as its lookup.
            self.begin(Query::here)?;
        }
        let mut writer = format::open_for(self.native_revision, format, Arc::clone(&self.schema), out)?;
        while let Some(batch) = runtime.block_on(self.next()) {
            writer.write(&batch?)?;
        }
        writer.finish(self.progress().read())
    }

    /// A view on the query's progress.
    pub fn progress(&self) -> Progress {
        Progress { plan: self.plan.clone(), answered: Arc::clone(&self.rows) }
    }
}

/// A view on a running query.
pub struct Progress {
    plan: Option<Arc<dyn ExecutionPlan>>,
    answered: Arc<AtomicU64>,
}

impl Progress {
    /// Rows read from tables so far.
    pub fn rows_read(&self) -> usize {
        self.read().rows_read
    }

    /// Rows answered so far.
    pub fn rows_answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Rows and bytes read from tables so far.
    pub fn read(&self) -> Statistics {
        let mut total = Statistics::default();
        if let Some(plan) = &self.plan {
            add_leaves(plan, &mut total);
        }
        total
    }
}

/// Bytes of a batch's rows, without the rest of their buffers.
fn bytes_of(batch: &RecordBatch) -> u64 {
    if batch.num_rows() == 0 {
        return 0;
    }
    // An array type that cannot tell its slice's size counts whole.
    let bytes = |array: &ArrayRef| {
        array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()) as u64
    };
    batch.columns().iter().map(bytes).sum()
}

fn add_leaves(plan: &Arc<dyn ExecutionPlan>, total: &mut Statistics) {
    let children = plan.children();
    children.iter().for_each(|child| add_leaves(child, total));
    if !children.is_empty() {
        return;
    }
    if plan.is::<PlaceholderRowExec>() {
        // A query without FROM reads the one row of ClickHouse's system.one.
        total.rows_read += 1;
        total.bytes_read += 1;
    } else if let Some(metrics) = plan.metrics() {
        let bytes = metrics.sum(|metric| matches!(metric.value(), MetricValue::OutputBytes(_)));
        total.rows_read += metrics.output_rows().unwrap_or(0);
        total.bytes_read += bytes.map_or(0, |bytes| bytes.as_usize());
    }
}
