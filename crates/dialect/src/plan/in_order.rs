//! The order of a sorted subquery is kept. SQL leaves that open, and DataFusion drops such sorts; ClickHouse keeps
//! them, and its users rely on it: `SELECT groupArray(x) FROM (SELECT x FROM t ORDER BY y)`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;

/// Whether rows are sorted before the end of a query. Their order must then last until there, as it does in a single
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

/// Whether there is a sort of all rows. One with a LIMIT yields a single batch anyway.
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

/// Makes sorts by arrays, maps and tuples that may contain NULL sort all rows: a top-k sort skips rows that are not
/// less than those it has kept, and NULL within makes that comparison unknown.
#[derive(Debug)]
pub struct WholeSorts;

impl PhysicalOptimizerRule for WholeSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
            let schema = sort.input().schema();
            let has_null =
                |by: &PhysicalSortExpr| by.expr.data_type(&schema).is_ok_and(|by| has_null_within(&by));
            let Some(fetch) = sort.fetch().filter(|_| sort.expr().iter().any(has_null)) else {
                return Ok(Transformed::no(node));
            };
            let keeps = sort.preserve_partitioning();
            let whole = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()));
            let whole = Arc::new(whole.with_preserve_partitioning(keeps)) as Arc<dyn ExecutionPlan>;
            Ok(Transformed::yes(match keeps {
                true => Arc::new(LocalLimitExec::new(whole, fetch)) as Arc<dyn ExecutionPlan>,
                false => Arc::new(GlobalLimitExec::new(whole, 0, Some(fetch))),
            }))
        })
        .data()
    }

    fn name(&self) -> &str {
        "WholeSorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether values of a type may have NULL within them.
fn has_null_within(data_type: &DataType) -> bool {
    let of = |field: &FieldRef| field.is_nullable() || has_null_within(field.data_type());
    match data_type {
        DataType::List(item) => of(item),
        DataType::Map(entry, _) => has_null_within(entry.data_type()),
        DataType::Struct(fields) => fields.iter().any(of),
        _ => false,
    }
}

/// Marks sorts within a plan as required by their reader, so that DataFusion does not drop them. Later rules of
/// DataFusion remove the marks again.
#[derive(Debug)]
pub struct WantedSorts;

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
