//! `rand()` is one number for each row, wherever it stands: of equal calls in a SELECT ClickHouse makes one column, and
//! `rand() % 10 BETWEEN 3 AND 5` looks at one number. DataFusion computes each call, and both sides of a BETWEEN.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection};

use super::{has_expression, has_node, map_named_expressions};
use crate::functions::is_random;

/// How the names of their columns begin.
const NAME: &str = "rand/";

/// Computes the random numbers of each node in a projection below it, and below the filter that what is selected passes.
pub fn computed_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| has_expression(node, is_random))? {
        return Ok(plan);
    }
    plan.transform_down_with_subqueries(|node| {
        let node = map_named_expressions(node, compared)?.data;
        match is_one(&node) && has_expression(&node, is_random)? {
            true => below(node).map(Transformed::yes),
            false => Ok(Transformed::yes(node)),
        }
    })
    .data()
}

/// Whether a node is one whose expressions may look at columns of a projection below it.
fn is_one(node: &LogicalPlan) -> bool {
    let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSet(_));
    let is_computed = |expr: &Expr| matches!(expr, Expr::Alias(alias) if is_random(&alias.expr) && alias.name.starts_with(NAME));
    match node {
        LogicalPlan::Projection(projection) => !projection.expr.iter().any(is_computed),
        LogicalPlan::Filter(_) => true,
        // What is above knows sets by names that cannot be kept.
        LogicalPlan::Aggregate(aggregate) => !aggregate.group_expr.iter().any(is_set),
        _ => false,
    }
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
    let mut computed = Computed::default();
    let node = map_named_expressions(node, |expr| computed.replaced(expr))?.data;
    let input = match (&node, node.inputs()[0]) {
        (LogicalPlan::Filter(_), input) => computed.below(input.clone())?,
        // What WHERE looks at is what is selected.
        (_, LogicalPlan::Filter(filter)) => {
            let condition = filter.predicate.clone().transform_up(|expr| computed.replaced(expr))?.data;
            let input = computed.below(filter.input.as_ref().clone())?;
            LogicalPlan::Filter(Filter::try_new(condition, Arc::new(input))?)
        }
        (_, input) => computed.below(input.clone())?,
    };
    let shown = node.inputs()[0].schema().columns().into_iter().map(Expr::Column).collect();
    match node.with_new_exprs(node.expressions(), vec![input])? {
        filter @ LogicalPlan::Filter(_) => {
            Ok(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(filter))?))
        }
        node => Ok(node),
    }
}

/// The random numbers that are computed.
#[derive(Default)]
struct Computed {
    calls: Vec<Expr>,
}

impl Computed {
    /// The column of an expression that is a random number.
    fn replaced(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        if !is_random(&expr) {
            return Ok(Transformed::no(expr));
        }
        let place = self.calls.iter().position(|known| *known == expr).unwrap_or(self.calls.len());
        if place == self.calls.len() {
            self.calls.push(expr);
        }
        Ok(Transformed::yes(Expr::Column(Column::new_unqualified(format!("{NAME}{place}")))))
    }

    /// All columns of a node, and the numbers.
    fn below(self, input: LogicalPlan) -> Result<LogicalPlan> {
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        let calls = self.calls.into_iter().enumerate();
        let calls = calls.map(|(place, call)| call.alias(format!("{NAME}{place}")));
        let columns = columns.chain(calls).collect();
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?))
    }
}
