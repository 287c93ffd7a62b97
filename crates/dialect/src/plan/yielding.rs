//! Makes joins yield to other tasks.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Wraps joins so that they yield now and then. DataFusion's tables yield between their batches; but a join can produce
/// any number of rows from one batch, and an aggregate above reads all of them in one go. No time limit would end that,
/// and other tasks on the thread would starve.
pub fn yielding(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        Ok(match node.children().len() > 1 {
            true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>),
            false => Transformed::no(node),
        })
    })
    .data()
}
