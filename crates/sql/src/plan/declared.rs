//! Choices between values of a type that Arrow does not have are of that type, too: of `if(c, ip, other_ip)` and
//! `coalesce(ip, other_ip)` DataFusion knows only that they are numbers.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, ScalarUDF, lit};
use datafusion::optimizer::AnalyzerRule;
use granary_dict::DataType as ClickHouseType;

use super::{has_expression, has_node, map_named_expressions};
use crate::functions::as_type::AsType;
use crate::types::{CLICKHOUSE_TYPE, plain_name};

/// Functions that give one of their arguments.
const CHOICES: &[&str] = &["coalesce", "nvl", "greatest", "least"];

/// Says of each choice what its type is. It runs when all branches have one Arrow type.
#[derive(Debug)]
pub struct DeclaredTypes;

impl AnalyzerRule for DeclaredTypes {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_node(&plan, |node| has_expression(node, |expr| branches(expr).is_some()))? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(declare_all).data()
    }

    fn name(&self) -> &str {
        "declared_types"
    }
}

fn declare_all(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if node.inputs().is_empty() {
        return Ok(Transformed::no(node));
    }
    let mut schema = DFSchema::empty();
    for input in node.inputs() {
        schema.merge(input.schema());
    }
    let declared = map_named_expressions(node, |expr| Ok(declare(expr, &schema)))?;
    // What is below may have got other types, too.
    declared.map_data(LogicalPlan::recompute_schema)
}

fn declare(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Some(branches) = branches(&expr) else { return Transformed::no(expr) };
    let types: Option<Vec<ClickHouseType>> = branches
        .into_iter()
        .filter(|branch| !is_null(branch))
        .map(|branch| declared(branch, schema))
        .collect();
    let Some(common) = types.and_then(common) else { return Transformed::no(expr) };
    // Arrow's name says as much.
    if plain_name(&common.to_arrow()) == common.to_string() {
        return Transformed::no(expr);
    }
    let function = ScalarUDF::from(AsType::default());
    Transformed::yes(function.call(vec![expr, lit(common.to_string())]))
}

/// The values of which an expression is one.
fn branches(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            Some(results.chain(case.else_expr.as_deref()).collect())
        }
        Expr::ScalarFunction(call) if CHOICES.contains(&call.name()) => Some(call.args.iter().collect()),
        Expr::ScalarFunction(call) if call.name() == "nullif" => call.args.first().map(|value| vec![value]),
        _ => None,
    }
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        Expr::Alias(alias) => is_null(&alias.expr),
        _ => false,
    }
}

/// What an expression is declared to be, if it still is that: a cast keeps what was said of its argument.
fn declared(expr: &Expr, schema: &DFSchema) -> Option<ClickHouseType> {
    let (_, field) = expr.to_field(schema).ok()?;
    let found = ClickHouseType::parse(field.metadata().get(CLICKHOUSE_TYPE)?).ok()?.inner().clone();
    is_of(&field, &found).then_some(found)
}

fn is_of(field: &Arc<Field>, found: &ClickHouseType) -> bool {
    match (field.data_type(), found) {
        (DataType::Timestamp(..), ClickHouseType::DateTime64 { .. }) => true,
        (data_type, found) => *data_type == found.to_arrow(),
    }
}

/// The type of which all are; times have as many digits as the longest of them.
fn common(types: Vec<ClickHouseType>) -> Option<ClickHouseType> {
    types.into_iter().map(Some).reduce(|one, other| match (one?, other?) {
        (one, other) if one == other => Some(one),
        (
            ClickHouseType::DateTime64 { precision, tz },
            ClickHouseType::DateTime64 { precision: other, .. },
        ) => Some(ClickHouseType::DateTime64 { precision: precision.max(other), tz }),
        _ => None,
    })?
}
