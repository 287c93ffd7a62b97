//! `numbers(N)`, `numbers(offset, N)` and `system.numbers`.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use granary_dialect::Error;

use super::provider::{Provider, Table, Wanted};
use super::scan::Scan;
use crate::limits::NUMBERS_SPLIT_ROWS;

/// The table function.
#[derive(Debug)]
pub struct NumbersFunction;

impl TableFunctionImpl for NumbersFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let counts = args.exprs().iter().map(count).collect::<Result<Vec<u64>, Error>>()?;
        match counts.as_slice() {
            [rows] => Ok(Provider::of(Numbers { first: 0, rows: *rows })),
            [first, rows] => Ok(Provider::of(Numbers { first: *first, rows: *rows })),
            _ => Err(Error::wrong_argument_count(
                "Table function numbers requires a count, or an offset and a count",
            )
            .into()),
        }
    }
}

fn count(expr: &Expr) -> Result<u64, Error> {
    let wrong =
        || Error::bad_arguments("Arguments of table function numbers must be constant unsigned integers");
    let Expr::Literal(value, _) = expr else { return Err(wrong()) };
    match value.cast_to(&DataType::UInt64) {
        Ok(ScalarValue::UInt64(Some(count))) => Ok(count),
        _ => Err(wrong()),
    }
}

/// The numbers from `first` on, in one UInt64 column `number`.
#[derive(Debug)]
pub struct Numbers {
    pub first: u64,
    pub rows: u64,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("number", DataType::UInt64, false)]))
}

impl Table for Numbers {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn scan(&self, wanted: &Wanted<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = wanted.limit.map_or(self.rows, |limit| self.rows.min(limit as u64));
        // A limited scan takes the first numbers, so it is not split; system.numbers is never read to its end.
        let pieces = match wanted.limit {
            None if (NUMBERS_SPLIT_ROWS..u64::MAX).contains(&rows) => {
                wanted.config.target_partitions() as u64
            }
            _ => 1,
        };
        // Unused columns are dropped by the piece itself: an empty projection still has rows to count.
        let schema = wanted.schema(&schema())?;
        let (size, larger) = (rows / pieces, rows % pieces);
        let mut next = self.first;
        let partitions = (0..pieces).map(|i| {
            let rows = size + u64::from(i < larger);
            let piece = NumbersPiece { first: next, rows, schema: Arc::clone(&schema) };
            next = next.wrapping_add(rows);
            Arc::new(piece) as Arc<dyn PartitionStream>
        });
        let scan = Scan::new("numbers", Arc::clone(&schema), partitions.collect());
        // A query that takes some of system.numbers takes the first: with a small estimate, the plan above stays on one
        // thread, in order.
        let estimate = if self.rows == u64::MAX { 1 } else { rows };
        Ok(Arc::new(scan.with_rows(estimate)))
    }
}

/// A run of numbers for one thread.
#[derive(Debug)]
struct NumbersPiece {
    first: u64,
    rows: u64,
    schema: SchemaRef,
}

impl PartitionStream for NumbersPiece {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch_rows = context.session_config().batch_size() as u64;
        let (schema, first, rows) = (Arc::clone(&self.schema), self.first, self.rows);
        let batches = (0..rows.div_ceil(batch_rows)).map(move |i| {
            let start = i * batch_rows;
            let rows = batch_rows.min(rows - start);
            let mut columns: Vec<datafusion::arrow::array::ArrayRef> = Vec::new();
            if !schema.fields().is_empty() {
                let start = first.wrapping_add(start);
                columns.push(Arc::new((0..rows).map(|j| start.wrapping_add(j)).collect::<UInt64Array>()));
            }
            let options = RecordBatchOptions::new().with_row_count(Some(rows as usize));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(batches)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::configuration;
    use datafusion::execution::context::SessionContext;
    use datafusion::physical_plan::ExecutionPlanProperties;
    use datafusion::prelude::SessionConfig;

    /// A LIMIT behind a condition takes the first rows, from any thread.
    #[tokio::test]
    async fn no_threads_share_all_numbers() {
        let config = configuration().with_target_partitions(4).with_create_default_catalog_and_schema(true);
        let context = SessionContext::new_with_config(config);
        for (rows, threads) in [(u64::MAX, 1), (1 << 30, 4)] {
            context.deregister_table("n").unwrap();
            context.register_table("n", Provider::of(Numbers { first: 0, rows })).unwrap();
            let rows = context.sql("SELECT number + 1 FROM n WHERE number % 3 = 1").await.unwrap();
            let plan = rows.create_physical_plan().await.unwrap();
            assert_eq!(plan.output_partitioning().partition_count(), threads);
        }
    }

    /// A LIMIT behind a condition takes the first rows, from any piece.
    #[tokio::test]
    async fn all_numbers_are_one_piece() {
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
        for (rows, pieces) in [(u64::MAX, 1), (NUMBERS_SPLIT_ROWS, 4), (10, 1)] {
            let numbers = Provider::of(Numbers { first: 0, rows });
            let scan = numbers.scan(&context.state(), None, &[], None).await.unwrap();
            assert_eq!(scan.output_partitioning().partition_count(), pieces);
        }
    }
}
