//! `x IN (SELECT ..)` as in ClickHouse: a number is compared with texts as a text, where DataFusion would parse every
//! text; selected NULLs are ignored (`transform_null_in = 0`); times are compared as moments.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InSubquery, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Projection, lit, when,
};

use super::coercion::{differ_in_zone, in_one_zone};
use super::in_lists::{check_not_fixed, has_other_numbers};
use super::listed_numbers::is_rounded;
use super::{has_expression, has_node, schema_below};
use crate::error::Error;
use crate::functions::text_of;
use crate::types::{is_address, is_wide, plain_field_name, type_name};

/// Rewrites such expressions, before DataFusion coerces both sides.
pub fn in_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_one = |expr: &Expr| matches!(expr, Expr::InSubquery(_));
    if !has_node(&plan, |node| has_expression(node, is_one))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let schema = schema_below(&node);
        let names = NamePreserver::new(&node);
        let is_filter = matches!(node, LogicalPlan::Filter(_));
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| match expr {
                Expr::InSubquery(within) => {
                    check_alike(&within, &schema)?;
                    let within = compared_as_texts(as_numbers(within, &schema)?, &schema)?;
                    let within = without_nulls(as_moments(within, &schema)?)?;
                    Ok(Transformed::yes(Expr::InSubquery(within)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            let changed = changed.transform_data(|expr| match is_filter {
                true => filtered(expr, &schema),
                false => null_of_null(expr, &schema),
            })?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

/// A condition on rows, where NULL means the row is dropped: so DataFusion's joins suffice if such an expression is the
/// whole condition, or an operand of AND.
fn filtered(condition: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let (left, right) = (filtered(*left, schema)?, filtered(*right, schema)?);
            Ok(Transformed::yes(left.data.and(right.data)))
        }
        Expr::InSubquery(within) if within.negated && within.expr.nullable(schema)? => {
            let is_known = within.expr.clone().is_not_null();
            Ok(Transformed::yes(Expr::InSubquery(within).and(is_known)))
        }
        Expr::InSubquery(within) => Ok(Transformed::no(Expr::InSubquery(within))),
        other => null_of_null(other, schema),
    }
}

/// For a NULL `x` the result is unknown, even if nothing is selected.
fn null_of_null(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::InSubquery(within) if within.expr.nullable(schema)? => {
            let is_null = within.expr.clone().is_null();
            let unknown = lit(ScalarValue::Boolean(None));
            Ok(Transformed::yes(when(is_null, unknown).otherwise(Expr::InSubquery(within))?))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// Refuses a number looked up among addresses, where ClickHouse finds none, a UUID among IPv6 addresses, and a float
/// among decimals, also within tuples and arrays; within these also other numbers that DataFusion would round.
fn check_alike(within: &InSubquery, schema: &DFSchema) -> Result<()> {
    let (_, given) = within.expr.to_field(schema)?;
    let Some(selected) = within.subquery.subquery.schema().fields().first() else { return Ok(()) };
    check_not_fixed(&given)?;
    check_not_fixed(selected)?;
    let is_float = |field: &Field| field.data_type().is_floating();
    let is_mixed =
        is_float(&given) && selected.data_type().is_decimal() || is_wide(&given) && is_float(selected);
    match is_mixed
        || are_unlike(&given, selected)
        || has_other_numbers(given.data_type(), selected.data_type())
    {
        true => Err(Error::type_mismatch(format!(
            "A {} is not looked for among values of {}: convert one to the other's type",
            type_name(&given),
            type_name(selected)
        ))
        .into()),
        false => Ok(()),
    }
}

fn are_unlike(given: &Field, selected: &Field) -> bool {
    match (given.data_type(), selected.data_type()) {
        (DataType::List(given), DataType::List(selected))
        | (DataType::Map(given, _), DataType::Map(selected, _)) => are_unlike(given, selected),
        (DataType::Struct(given), DataType::Struct(selected)) => {
            given.iter().zip(selected).any(|(given, selected)| are_unlike(given, selected))
        }
        (DataType::FixedSizeBinary(16), DataType::FixedSizeBinary(16)) => {
            plain_field_name(given) != plain_field_name(selected)
        }
        (number, _) => is_address(selected) && !is_address(given) && number.is_numeric(),
    }
}

/// Numbers are compared exactly: DataFusion would round decimals, and integers with more bits than a float's mantissa.
fn as_numbers(mut within: InSubquery, schema: &DFSchema) -> Result<InSubquery> {
    let selected = Arc::clone(&within.subquery.subquery);
    let Some(field) = selected.schema().fields().first() else { return Ok(within) };
    let (given, other) = (within.expr.get_type(schema)?, field.data_type().clone());
    if !is_rounded(&given, &other) {
        return Ok(within);
    }
    if given.is_decimal() {
        within.expr = Box::new(Expr::Cast(Cast::new(within.expr, other)));
        return Ok(within);
    }
    // A selected number without an exact value in the other type is not found.
    let inner = Expr::Column(selected.schema().columns().swap_remove(0));
    let cast = |number: Expr, to: &DataType| Expr::TryCast(TryCast::new(Box::new(number), to.clone()));
    let number = cast(inner.clone(), &given);
    let is_same = cast(number.clone(), &other).eq(inner);
    let known = LogicalPlanBuilder::from(selected.as_ref().clone())
        .filter(is_same)?
        .project([number.alias(field.name())])?
        .build()?;
    within.subquery.subquery = Arc::new(known);
    Ok(within)
}

/// Values looked up among texts are compared by their text.
fn compared_as_texts(within: InSubquery, schema: &DFSchema) -> Result<InSubquery> {
    let texts = within.subquery.subquery.schema().fields().first().map(|field| field.data_type().clone());
    let given = within.expr.get_type(schema)?;
    let is_one = given.is_string() || given.is_nested() || given.is_null();
    if is_one || !texts.is_some_and(|data_type| data_type.is_string()) {
        return Ok(within);
    }
    Ok(InSubquery { expr: Box::new(text_of(*within.expr)), ..within })
}

/// Times are compared as moments, whatever their zones.
fn as_moments(mut within: InSubquery, schema: &DFSchema) -> Result<InSubquery> {
    let selected = Arc::clone(&within.subquery.subquery);
    let Some(field) = selected.schema().fields().first() else { return Ok(within) };
    let given = within.expr.get_type(schema)?;
    if !differ_in_zone(&given, field.data_type()) {
        return Ok(within);
    }
    let inner = Expr::Column(selected.schema().columns().swap_remove(0));
    let (left, right) = in_one_zone((*within.expr, given), (inner.clone(), field.data_type().clone()))?;
    within.expr = Box::new(left);
    if right != inner {
        let column = vec![right.alias(field.name())];
        let selected = Projection::try_new(column, Arc::clone(&selected))?;
        within.subquery.subquery = Arc::new(LogicalPlan::Projection(selected));
    }
    Ok(within)
}

fn without_nulls(mut within: InSubquery) -> Result<InSubquery> {
    let selected = &within.subquery.subquery;
    if selected.schema().fields().first().is_none_or(|field| !field.is_nullable()) {
        return Ok(within);
    }
    let column = Expr::Column(selected.schema().columns().swap_remove(0));
    let known = LogicalPlanBuilder::from(selected.as_ref().clone()).filter(column.is_not_null())?.build()?;
    within.subquery.subquery = Arc::new(known);
    Ok(within)
}
