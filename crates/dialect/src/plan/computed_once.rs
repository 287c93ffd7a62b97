//! `rand()` is one number for each row, wherever it stands: of equal calls in a SELECT ClickHouse makes one column, and
//! `rand() % 10 BETWEEN 3 AND 5` looks at one number. DataFusion computes each call, and both sides of a BETWEEN.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};

use super::{has_expression, has_node, map_named_expressions};
use crate::functions::is_random;

/// Computes the random numbers of each node in a projection below it.
pub fn computed_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| has_expression(node, is_random))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let node = map_named_expressions(node, compared)?.data;
        let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSet(_));
        let is_one = match &node {
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) => true,
            // What is above knows sets by names that cannot be kept.
            LogicalPlan::Aggregate(aggregate) => !aggregate.group_expr.iter().any(is_set),
            _ => false,
        };
        match is_one && has_expression(&node, is_random)? {
            true => below(node).map(Transformed::yes),
            false => Ok(Transformed::yes(node)),
        }
    })
    .data()
}

/// What a BETWEEN compares, as two references to one value.
fn compared(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::Between(Between { expr, negated, low, high }) = expr else { return Ok(Transformed::no(expr)) };
    let value = *expr;
    Ok(Transformed::yes(match negated {
        false => value.clone().gt_eq(*low).and(value.lt_eq(*high)),
        true => value.clone().lt(*low).or(value.gt(*high)),
    }))
}

fn below(node: LogicalPlan) -> Result<LogicalPlan> {
    let input = node.inputs()[0].clone();
    let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let known = columns.clone();
    let mut calls: Vec<Expr> = Vec::new();
    let node = map_named_expressions(node, |expr| {
        if !is_random(&expr) {
            return Ok(Transformed::no(expr));
        }
        let place = calls.iter().position(|call| *call == expr).unwrap_or(calls.len());
        if place == calls.len() {
            calls.push(expr);
        }
        Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name(place)))))
    })?
    .data;
    columns.extend(calls.into_iter().enumerate().map(|(place, call)| call.alias(name(place))));
    let computed = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?);
    let is_filter = matches!(node, LogicalPlan::Filter(_));
    let node = node.with_new_exprs(node.expressions(), vec![computed])?;
    match is_filter {
        true => Ok(LogicalPlan::Projection(Projection::try_new(known, Arc::new(node))?)),
        false => Ok(node),
    }
}

/// The name of a column of random numbers.
fn name(place: usize) -> String {
    format!("rand/{place}")
}
