//! Evaluates `toTypeName(x)` during planning: once `x` becomes a constant, its type is lost.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};

use super::{has_expression, map_named_expressions, schema_below};
use crate::types::pretty_type_name;

/// The name of the function.
pub const TYPE_NAME: &str = "toTypeName";

/// Replaces calls in a node by constants.
pub fn with_type_names(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !has_expression(&node, is_call)? {
        return Ok(Transformed::no(node));
    }
    let schema = schema_below(&node);
    map_named_expressions(node, |expr| type_named(expr, &schema))
}

/// Replaces a call by a constant.
pub fn type_named(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match &expr {
        Expr::ScalarFunction(call)
            if is_call(&expr) && call.args.len() == 1 && !has_lambda(&call.args[0])? =>
        {
            let (_, field) = call.args[0].to_field(schema)?;
            Ok(Transformed::yes(lit(pretty_type_name(&field))))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

fn is_call(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.name() == TYPE_NAME)
}

/// Whether an expression's type is known only at execution.
fn has_lambda(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| {
        Ok(matches!(expr, Expr::HigherOrderFunction(_) | Expr::Lambda(_) | Expr::LambdaVariable(_)))
    })
}
