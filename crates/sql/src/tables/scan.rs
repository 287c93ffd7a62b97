//! The leaf of a plan over our own tables: some streams, and a count of their rows.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

/// Runs the pieces of a table, each as a partition. Rows are counted as they are read, before any processing: that is
/// the progress of a query whose dictionary waits for its source.
pub struct Scan {
    name: &'static str,
    pieces: Vec<Arc<dyn PartitionStream>>,
    properties: Arc<PlanProperties>,
    /// Number of rows of all pieces, if known.
    rows: Precision<usize>,
    metrics: ExecutionPlanMetricsSet,
}

impl Scan {
    /// All pieces must have this schema.
    pub fn new(name: &'static str, schema: SchemaRef, pieces: Vec<Arc<dyn PartitionStream>>) -> Scan {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(pieces.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let (rows, metrics) = (Precision::Absent, ExecutionPlanMetricsSet::new());
        Scan { name, pieces, properties: Arc::new(properties), rows, metrics }
    }

    /// Sets the number of rows of all pieces: a plan for few rows is not spread over threads. It is an estimate, so
    /// that count() reads the rows, and progress counts them.
    pub fn with_rows(self, rows: u64) -> Scan {
        Scan { rows: usize::try_from(rows).map_or(Precision::Absent, Precision::Inexact), ..self }
    }
}

/// Bytes of a column's rows, without the rest of its buffers.
fn slice_bytes(column: &ArrayRef) -> usize {
    // Nested columns, which no table here has, count as nothing.
    column.to_data().get_slice_memory_size().unwrap_or(0)
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("table", &self.name).finish_non_exhaustive()
    }
}

impl DisplayAs for Scan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scan: {}, pieces={}", self.name, self.pieces.len())
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("A leaf has no children") }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, piece: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = MetricBuilder::new(&self.metrics).output_rows(piece);
        let bytes = MetricBuilder::new(&self.metrics).output_bytes(piece);
        let stream = self.pieces[piece].execute(context).inspect(move |batch| {
            if let Ok(batch) = batch {
                rows.add(batch.num_rows());
                bytes.add(batch.columns().iter().map(slice_bytes).sum());
            }
        });
        let schema = Arc::clone(self.pieces[piece].schema());
        Ok(make_cooperative(Box::pin(RecordBatchStreamAdapter::new(schema, stream))))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if args.partition().is_none() || self.pieces.len() == 1 {
            statistics.num_rows = self.rows;
        }
        Ok(Arc::new(statistics))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
