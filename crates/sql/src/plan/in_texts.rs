//! `number IN (SELECT text)`: compared as texts, as in ClickHouse. DataFusion would read every text as a number.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use super::{has_expression, has_node};

/// Makes texts of what is looked for among texts, before DataFusion brings both sides to one type.
pub fn in_texts(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_one = |expr: &Expr| matches!(expr, Expr::InSubquery(_));
    if !has_node(&plan, |node| has_expression(node, is_one))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        for input in node.inputs() {
            schema.merge(input.schema());
        }
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| compared(expr, &schema))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::InSubquery(within) = expr else { return Ok(Transformed::no(expr)) };
    let texts = within.subquery.subquery.schema().fields().first().map(|field| field.data_type().clone());
    let given = within.expr.get_type(schema)?;
    if !given.is_numeric() || !texts.is_some_and(|data_type| data_type.is_string()) {
        return Ok(Transformed::no(Expr::InSubquery(within)));
    }
    let text = within.expr.cast_to(&DataType::Utf8, schema)?;
    Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr: Box::new(text), ..within })))
}
