//! What a statement answers.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use tokio::runtime::Handle;

use crate::error::Result;
use crate::format::{self, Format, Statistics};

/// The answer of a statement: batches that come as they are asked for.
pub struct Output {
    pub schema: SchemaRef,
    /// The format that the statement asked for.
    pub format: Option<Format>,
    pub(crate) stream: SendableRecordBatchStream,
    pub(crate) plan: Option<Arc<dyn ExecutionPlan>>,
}

impl Output {
    /// The answer of a statement that has none.
    pub(crate) fn empty() -> Output {
        Output::of(Arc::new(Schema::empty()), vec![])
    }

    pub(crate) fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Output {
        let stream = futures::stream::iter(batches.into_iter().map(Ok));
        let stream = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), stream));
        Output { schema, format: None, stream, plan: None }
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

    /// The next batch, or `None` at the end.
    pub async fn next(&mut self) -> Option<Result<RecordBatch>> {
        self.stream.next().await.map(|batch| Ok(batch?))
    }

    /// Writes all batches, from a thread that may wait: `out` may block, and is called outside the runtime.
    pub fn write(&mut self, runtime: &Handle, format: Format, out: &mut (dyn Write + Send)) -> Result<()> {
        let mut writer = format::open(format, Arc::clone(&self.schema), out)?;
        while let Some(batch) = runtime.block_on(self.next()) {
            writer.write(&batch?)?;
        }
        writer.finish(self.progress().read())
    }

    /// Looks at how far a running query is.
    pub fn progress(&self) -> Progress {
        Progress { plan: self.plan.clone() }
    }
}

/// A view on a running query.
pub struct Progress {
    plan: Option<Arc<dyn ExecutionPlan>>,
}

impl Progress {
    /// Rows read from tables so far.
    pub fn rows_read(&self) -> usize {
        self.read().rows_read
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
