//! A subquery used as a value is NULL if it returns no row, whatever its column's type. Arrays are never NULL, and keep
//! the types of their items.

use datafusion::arrow::datatypes::Field;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDF};

use super::{has_expression, has_node, map_named_expressions};
use crate::functions::{ToNullable, subquery_value};

/// Makes such values Nullable, unless their type cannot be.
pub fn nullable_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| has_expression(node, |expr| is_nested(expr) || is_never_null(expr)))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let node = map_named_expressions(node, |expr| {
            Ok(match expr {
                expr if is_nested(&expr) => Transformed::yes(subquery_value().call(vec![expr])),
                expr if is_never_null(&expr) => {
                    Transformed::yes(ScalarUDF::from(ToNullable::of_subquery()).call(vec![expr]))
                }
                expr => Transformed::no(expr),
            })
        })?;
        Ok(Transformed::yes(node.data.recompute_schema()?))
    })
    .data()
}

fn is_never_null(expr: &Expr) -> bool {
    is_value(expr, |field| !field.is_nullable() && !field.data_type().is_nested())
}

fn is_nested(expr: &Expr) -> bool {
    is_value(expr, |field| field.data_type().is_nested())
}

fn is_value(expr: &Expr, wanted: impl Fn(&Field) -> bool) -> bool {
    let Expr::ScalarSubquery(subquery) = expr else { return false };
    subquery.subquery.schema().fields().first().is_some_and(|field| wanted(field))
}
