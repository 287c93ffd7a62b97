//! A subquery used as a value is NULL if it returns no row, whatever its column's type.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDF};

use super::{has_expression, has_node, map_named_expressions};
use crate::functions::ToNullable;

/// Makes such values Nullable, unless their type cannot be.
pub fn nullable_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| has_expression(node, is_never_null))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let node = map_named_expressions(node, |expr| {
            Ok(match is_never_null(&expr) {
                true => Transformed::yes(ScalarUDF::from(ToNullable::of_subquery()).call(vec![expr])),
                false => Transformed::no(expr),
            })
        })?;
        Ok(Transformed::yes(node.data.recompute_schema()?))
    })
    .data()
}

fn is_never_null(expr: &Expr) -> bool {
    let Expr::ScalarSubquery(subquery) = expr else { return false };
    let fields = subquery.subquery.schema().fields();
    fields.first().is_some_and(|field| !field.is_nullable() && !field.data_type().is_nested())
}
