//! ClickHouse's meaning of expressions that DataFusion would evaluate differently, applied once types are known: floats
//! compare as in IEEE 754, choices and columns of several queries have the smallest type that holds all values, and the
//! items of an array are NULL only if they are Nullable.

mod aggregates;
mod choices;
mod common_types;
mod comparisons;
mod declared;
mod items;
mod lists;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use self::common_types::{flattened, has_common, with_common};
use super::outer_join::{Unmatched, is_outer};
use super::type_names::{TYPE_NAME, type_named};
use super::{has_expression, has_node, map_named_expressions, schema_below};

pub use comparisons::{differ_in_zone, element, in_one_zone};

/// Gives the expressions of a plan ClickHouse's meaning. Runs before type coercion.
pub fn apply_clickhouse_types(plan: LogicalPlan, missing: Unmatched) -> Result<LogicalPlan> {
    let is_node = |node: &LogicalPlan| {
        let is_one = matches!(node, LogicalPlan::Unnest(_)) || has_common(node);
        Ok(is_one || has_expression(node, is_concerned)?)
    };
    if !has_node(&plan, is_node)? {
        return Ok(plan);
    }
    let plan = flattened(plan)?;
    let is_above_outer_join = has_node(&plan, |node| Ok(is_outer(node)))?;
    plan.transform_up_with_subqueries(|node| {
        // Nodes above refer to these by names that cannot be kept.
        if node.inputs().is_empty()
            || node.expressions().iter().any(|expr| matches!(expr, Expr::GroupingSet(_)))
        {
            return Ok(Transformed::no(node));
        }
        // The equalities of a join match rows by hashes, as ClickHouse's joins do: bit by bit. Those with a constant
        // are conditions.
        let known = Node { is_join: matches!(node, LogicalPlan::Join(_)), is_above_outer_join };
        let schema = schema_below(&node);
        let node = match has_expression(&node, is_concerned)? {
            true => map_named_expressions(node, |expr| changed(expr, &schema, known))?.data,
            false => node,
        };
        // The inputs may have new types.
        let node = node.recompute_schema()?;
        Ok(Transformed::yes(match node {
            LogicalPlan::Unnest(unnest) => items::known(unnest)?,
            node => with_common(node, missing)?,
        }))
    })
    .data()
}

fn is_concerned(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_comparison(*op),
        Expr::Between(_)
        | Expr::Case(_)
        | Expr::InList(_)
        | Expr::AggregateFunction(_)
        | Expr::HigherOrderFunction(_)
        | Expr::WindowFunction(_) => true,
        Expr::ScalarFunction(call) => {
            [TYPE_NAME, ARRAY, MAP].contains(&call.name()) || CHOICES.contains(&call.name())
        }
        _ => false,
    }
}

/// The functions that make arrays and maps.
pub const ARRAY: &str = "array";
const MAP: &str = "mapOf";

const CHOICES: &[&str] = &["coalesce", "nvl"];

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn has_constant(compared: &BinaryExpr) -> bool {
    !compared.left.any_column_refs() || !compared.right.any_column_refs()
}

/// What an expression's rewriting must know of its node.
#[derive(Clone, Copy)]
struct Node {
    is_join: bool,
    is_above_outer_join: bool,
}

fn changed(expr: Expr, schema: &DFSchema, node: Node) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(compared)
            if node.is_join && compared.op == Operator::Eq && !has_constant(&compared) =>
        {
            Ok(Transformed::yes(Expr::BinaryExpr(comparisons::at_one_zone(compared, schema)?)))
        }
        Expr::BinaryExpr(compared) if is_comparison(compared.op) => comparisons::compared(compared, schema),
        Expr::InList(list) => lists::listed(list, schema),
        Expr::Between(between) => comparisons::between(between, schema),
        Expr::Case(case) => choices::case(case, schema).map(Transformed::yes),
        Expr::ScalarFunction(call) if CHOICES.contains(&call.name()) => choices::first_known(call, schema),
        Expr::ScalarFunction(call) if call.name() == ARRAY => items::brought_to_one_type(call, 1, schema),
        Expr::ScalarFunction(call) if call.name() == MAP => items::brought_to_one_type(call, 2, schema),
        // An outer join's missing values are filled in later.
        Expr::ScalarFunction(_) if !node.is_above_outer_join => type_named(expr, schema),
        Expr::HigherOrderFunction(call) => items::of_lambda(call, schema),
        Expr::AggregateFunction(call) => aggregates::changed(call, schema),
        Expr::WindowFunction(call) => aggregates::changed_window(call, schema),
        other => Ok(Transformed::no(other)),
    }
}
