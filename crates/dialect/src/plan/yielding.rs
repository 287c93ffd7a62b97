//! Joins let other tasks run.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Has what joins give up its thread now and then. DataFusion's tables do so between their batches; but a join can make
/// more rows of one batch than anybody waits for, and whoever sums them up asks for all of them in one go. No limit of
/// time would end that, and nobody else be served.
pub fn yielding(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        Ok(match node.children().len() > 1 {
            true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>),
            false => Transformed::no(node),
        })
    })
    .data()
}
