//! What a subquery sorts stays sorted. SQL leaves that open, and DataFusion drops such sorts; ClickHouse keeps them, and
//! its users rely on it: `SELECT groupArray(x) FROM (SELECT x FROM t ORDER BY y)`.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::{Distribution, OrderingRequirements};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Whether rows are sorted before the end of a query. Then their order is to last until there, as it does in one
/// stream; several would be mixed.
pub fn sorts_within(plan: &LogicalPlan) -> Result<bool> {
    let mut last = plan;
    loop {
        last = match last {
            LogicalPlan::Sort(sort) => break find_sort(&sort.input),
            LogicalPlan::Explain(explain) => &explain.plan,
            LogicalPlan::Limit(limit) => &limit.input,
            LogicalPlan::Projection(some) if some.expr.iter().all(|e| matches!(e, Expr::Column(_))) => {
                &some.input
            }
            other => break find_sort(other),
        };
    }
}

/// Whether there is a sort of all rows. Those of which a LIMIT takes the first few are one batch anyway.
fn find_sort(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        found |= matches!(node, LogicalPlan::Sort(_));
        Ok(match node {
            _ if found => TreeNodeRecursion::Stop,
            LogicalPlan::Limit(limit) if matches!(*limit.input, LogicalPlan::Sort(_)) => {
                TreeNodeRecursion::Jump
            }
            _ => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// DataFusion's rules for plans, and that sorts are wanted by whoever reads them.
pub fn rules_in_order() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    // The first one notes what the whole answer wants, the last ones take such notes out again.
    rules.insert(1, Arc::new(WantedSorts));
    rules
}

#[derive(Debug)]
struct WantedSorts;

impl PhysicalOptimizerRule for WantedSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) else {
                return Ok(Transformed::no(node));
            };
            let order = Some(OrderingRequirements::from(sort.expr().clone()));
            let wanted = OutputRequirementExec::new(node, order, Distribution::SinglePartition, None);
            Ok(Transformed::yes(Arc::new(wanted) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &str {
        "WantedSorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
