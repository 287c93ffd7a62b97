//! Keeps physical filter pushdown from crossing joins: DataFusion 55.2 loses a filter pushed through an outer join
//! whose sides were swapped.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

/// Applies a rule below joins only.
#[derive(Debug)]
pub struct BelowJoins(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for BelowJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !has_join(&plan)? {
            return self.0.optimize(plan, config);
        }
        let below = |child: &Arc<dyn ExecutionPlan>| self.optimize(Arc::clone(child), config);
        let children = plan.children().into_iter().map(below).collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(plan, children)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn has_join(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(node.name().contains("Join")))
}
