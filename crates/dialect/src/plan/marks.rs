//! `SELECT x IN (SELECT ..)`: DataFusion plans such a subquery as a join in a condition on rows, but not as a value.
//! Here it becomes the same join, with a mark for rows that have a partner.

use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, JoinType, Result, ScalarValue};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, lit, when};
use datafusion::optimizer::AnalyzerRule;

use super::{has_expression, has_node};

/// The rule that makes these joins.
#[derive(Debug)]
pub struct MarkedRows;

impl AnalyzerRule for MarkedRows {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_node(&plan, has_values)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| match has_values(&node)? {
            true => marked(&node).map(Transformed::yes),
            false => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "marked_rows"
    }
}

/// Whether a node computes columns from such subqueries.
fn has_values(node: &LogicalPlan) -> Result<bool> {
    let makes_columns = matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
    Ok(makes_columns && has_expression(node, is_value)?)
}

/// Whether it is a subquery that does not depend on the row.
fn is_value(expr: &Expr) -> bool {
    matches!(expr, Expr::InSubquery(found) if found.subquery.outer_ref_columns.is_empty())
}

fn marked(node: &LogicalPlan) -> Result<LogicalPlan> {
    let names = NamePreserver::new(node);
    let mut input = node.inputs()[0].clone();
    let mut columns = Vec::new();
    for expr in node.expressions() {
        let name = names.save(&expr);
        let expr = expr.transform_up(|expr| match expr {
            Expr::InSubquery(found) if found.subquery.outer_ref_columns.is_empty() => {
                let (joined, mark) = join(&input, found)?;
                input = joined;
                Ok(Transformed::yes(mark))
            }
            other => Ok(Transformed::no(other)),
        })?;
        columns.push(name.restore(expr.data));
    }
    node.with_new_exprs(columns, vec![input])
}

/// The input with a mark for each row, and the mark's column.
fn join(input: &LogicalPlan, found: InSubquery) -> Result<(LogicalPlan, Expr)> {
    // Plans of different queries never meet, but those of one query do.
    static NAMES: AtomicU64 = AtomicU64::new(1);
    let alias = format!("in {}", NAMES.fetch_add(1, Ordering::Relaxed));
    let right =
        LogicalPlanBuilder::from(found.subquery.subquery.as_ref().clone()).alias(alias.as_str())?.build()?;
    let partner = Expr::Column(right.schema().columns().swap_remove(0));
    let joined = LogicalPlanBuilder::from(input.clone())
        .join_on(right, JoinType::LeftMark, [found.expr.as_ref().clone().eq(partner)])?
        .build()?;
    let mark = Expr::Column(Column::new(Some(alias), "mark"));
    let mark = if found.negated { !mark } else { mark };
    if !found.expr.nullable(input.schema())? {
        return Ok((joined, mark));
    }
    // For a NULL the result is unknown.
    let unknown = lit(ScalarValue::Boolean(None));
    Ok((joined, when(found.expr.as_ref().clone().is_null(), unknown).otherwise(mark)?))
}
