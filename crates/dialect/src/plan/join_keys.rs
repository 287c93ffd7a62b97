//! Join keys without a common type: DataFusion would compare them as texts; ClickHouse refuses.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};

use crate::error::Error;
use crate::types::{is_time, plain_name};

/// Refuses joins whose keys are text on one side only, or times on one side and numbers on the other.
///
/// # Errors
/// NO_COMMON_TYPE.
pub fn check_join_keys(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node {
            check(join)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map(drop)
}

fn check(join: &Join) -> Result<()> {
    let on = join.on.iter().map(|(left, right)| (left, right));
    let equal = join.filter.iter().flat_map(split_conjunction).filter_map(|condition| match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            Some((left.as_ref(), right.as_ref()))
        }
        _ => None,
    });
    for (left, right) in
        on.chain(equal).filter(|(left, right)| left.any_column_refs() && right.any_column_refs())
    {
        // Columns of a subquery are not among the join's.
        let schema = join.left.schema().join(join.right.schema())?;
        let key_type = |key: &Expr| as_written(key).get_type(&schema);
        let (Ok(one), Ok(other)) = (key_type(left), key_type(right)) else { continue };
        if !have_common(&one, &other) {
            let (one, other) = (plain_name(&one), plain_name(&other));
            return Err(Error::no_common_type(format!(
                "There is no supertype for types {one}, {other}: JOIN cannot infer common type for keys {left} and {right}; convert one of them, as with toString"
            ))
            .into());
        }
    }
    Ok(())
}

/// The key before its conversion: a time compared with a number was cast by then, see `functions/planner.rs`. A query's
/// own cast is a function here.
fn as_written(key: &Expr) -> &Expr {
    match key {
        Expr::Cast(cast) => &cast.expr,
        other => other,
    }
}

fn have_common(one: &DataType, other: &DataType) -> bool {
    let is_apart = |one: &DataType, other: &DataType| {
        one.is_string() && !other.is_string() || is_time(one) && other.is_numeric()
    };
    one.is_null() || other.is_null() || !(is_apart(one, other) || is_apart(other, one))
}
