//! The parameters of lambdas, after the arrays got their final types: DataFusion knows the type of `x` in
//! `arrayMap(x -> .., array)` from the array as it was first planned.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::{has_expression, has_node};
use crate::error::Error;
use crate::types::type_name;

/// Gives the parameters the declared types of their arrays' items.
///
/// # Errors
/// NOT_IMPLEMENTED if a type is another one by now: the lambda was planned for the first.
pub fn with_known_variables(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_variable = |expr: &Expr| matches!(expr, Expr::LambdaVariable(_));
    if !has_node(&plan, |node| has_expression(node, is_variable))? {
        return Ok(plan);
    }
    let before = types(&plan)?;
    let resolved = plan.resolve_lambda_variables()?;
    if !resolved.transformed {
        return Ok(resolved.data);
    }
    for (before, after) in before.iter().zip(types(&resolved.data)?) {
        if *before != after {
            return Err(Error::not_implemented(format!(
                "The items of a lambda's array are {after} here, and were taken for {before}: give the array a type, as \
                 CAST does"
            ))
            .into());
        }
    }
    let plan = resolved.data;
    plan.transform_up_with_subqueries(|node| Ok(Transformed::yes(node.recompute_schema()?))).data()
}

/// The types of the parameters, wherever they are used.
fn types(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut types = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::LambdaVariable(variable) = expr {
                    types.push(variable.field.as_deref().map(type_name).unwrap_or_default());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(types)
}
