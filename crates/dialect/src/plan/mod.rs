//! Rewrites of DataFusion's plans, where types are known.

mod below_joins;
mod coercion;
mod comparisons;
mod distinct_rows;
mod in_lists;
mod in_order;
mod in_subqueries;
mod join_keys;
mod lambda_variables;
mod listed_numbers;
mod marks;
mod multisets;
mod nan_last;
mod optimise;
mod outer_join;
mod planning;
mod result_names;
mod scalar_subqueries;
mod settings;
mod type_names;
mod yielding;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

pub(crate) use comparisons::{function_of, never_compared, no_common_type};
pub use optimise::{Optimised, optimise};
pub use outer_join::{Unmatched, filled};
pub use planning::{configuration, planning};
pub use settings::QuerySettings;
pub use yielding::yielding;

/// Whether a plan or one of its subqueries has such a node. Most plans do not, and are left as they are.
pub fn has_node(plan: &LogicalPlan, mut wanted: impl FnMut(&LogicalPlan) -> Result<bool>) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = wanted(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether a node has such an expression, at any depth.
pub fn has_expression(node: &LogicalPlan, wanted: impl Fn(&Expr) -> bool) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found = expr.exists(|expr| Ok(wanted(expr)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The columns that a node's expressions can use: those of all its inputs.
pub fn schema_below(node: &LogicalPlan) -> DFSchema {
    let mut schema = DFSchema::empty();
    node.inputs().iter().for_each(|input| schema.merge(input.schema()));
    schema
}

/// Rewrites a node's expressions bottom up; their columns keep their names.
pub fn map_named_expressions(
    node: LogicalPlan,
    mut change: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(&mut change)?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })
}
