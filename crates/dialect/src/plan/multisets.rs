//! INTERSECT ALL and EXCEPT ALL of repeated rows: DataFusion only asks, for each row, whether the other side has an
//! equal one. Here the first of equal rows matches the other side's first, and the second the second.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, JoinType, NullEquality, Result, TableReference};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, lit};

use super::has_node;
use crate::functions::{self, materialize};

/// Columns with the number of equal rows, and a row's number among them.
const COUNT: &str = "granary.count";
const TURN: &str = "granary.turn";

/// Numbers the rows of both sides of each INTERSECT ALL and EXCEPT ALL.
pub fn numbered(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| Ok(is_of_multisets(node)))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if is_multiset_join(&join) => number(join).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn is_of_multisets(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if is_multiset_join(join))
}

/// Before analysis, other joins have their conditions in a filter, or do not equate NULLs.
fn is_multiset_join(join: &Join) -> bool {
    let is_set = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti);
    let is_of_rows = !join.on.is_empty() && join.filter.is_none();
    is_set
        && is_of_rows
        && join.null_equality == NullEquality::NullEqualsNull
        && !matches!(*join.left, LogicalPlan::Distinct(_))
}

fn number(join: Join) -> Result<LogicalPlan> {
    let Join { left, right, on, join_type, .. } = join;
    let columns: Vec<Expr> = left.schema().columns().into_iter().map(Expr::Column).collect();
    let (mut left_keys, mut right_keys): (Vec<Column>, Vec<Column>) = on
        .iter()
        .filter_map(|(left, right)| Some((left.try_as_col()?.clone(), right.try_as_col()?.clone())))
        .unzip();
    let (left, right) = (with_turns(left)?, with_turns(right)?);
    left_keys.push(Column::from_name(TURN));
    right_keys.push(Column::from_name(TURN));
    LogicalPlanBuilder::from(left)
        .join_detailed(right, join_type, (left_keys, right_keys), None, NullEquality::NullEqualsNull)?
        .project(columns)?
        .build()
}

/// Numbers equal rows 1, 2, .. in a column: equal rows are grouped, each group gets a list of as many numbers as it has
/// rows, and the list is unnested. DataFusion would still take the grouped columns for unique, so they are wrapped in
/// `materialize`.
fn with_turns(plan: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let fields: Vec<(Option<TableReference>, FieldRef)> =
        plan.schema().iter().map(|(relation, field)| (relation.cloned(), Arc::clone(field))).collect();
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let hidden = fields.iter().zip(&columns).map(|((relation, field), column)| {
        let value = materialize().call(vec![column.clone()]);
        value.alias_qualified(relation.clone(), field.name())
    });
    let range = functions::value_function("range").expect("it is one of them");
    let turns = range.call(vec![Expr::Column(Column::from_name(COUNT))]).alias(TURN);
    LogicalPlanBuilder::from(plan)
        .aggregate(columns.clone(), vec![count(lit(1)).alias(COUNT)])?
        .project(hidden.chain([turns]))?
        .unnest_column(Column::from_name(TURN))?
        .build()
}
