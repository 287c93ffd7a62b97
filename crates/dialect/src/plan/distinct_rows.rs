//! DISTINCT becomes a GROUP BY here. DataFusion would drop a DISTINCT over rows that it believes unique, which it does
//! also after arrayJoin, where grouped values repeat (55.2: `Unnest` keeps the keys).

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan};

use super::has_node;

/// Groups by all columns where a plan has DISTINCT.
pub fn grouped(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| Ok(matches!(node, LogicalPlan::Distinct(_))))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Distinct(Distinct::All(input)) if !input.schema().fields().is_empty() => {
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(input, columns, Vec::new())?)))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}
