//! Comparisons that ClickHouse refuses: of texts with other types, unless the text is a constant, which is read as the
//! other type; of dates with numbers. DataFusion would find a type for both.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, Volatility,
};

use super::coercion::element;
use super::schema_below;
use crate::error::Error;
use crate::functions::as_type::AS_TYPE;
use crate::limits::CONSTANT_STEPS_MAX;
use crate::rewrite::CONSTANT_SUFFIX;
use crate::types::{is_address, type_name};

/// Whether an expression compares.
pub fn is_comparison(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => function_of(*op).is_some(),
        Expr::Between(_) => true,
        _ => false,
    }
}

/// The name of an operator's function in ClickHouse.
pub fn function_of(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Eq => "equals",
        Operator::NotEq => "notEquals",
        Operator::Lt => "less",
        Operator::LtEq => "lessOrEquals",
        Operator::Gt => "greater",
        Operator::GtEq => "greaterOrEquals",
        Operator::IsDistinctFrom => "isDistinctFrom",
        Operator::IsNotDistinctFrom => "isNotDistinctFrom",
        _ => return None,
    })
}

/// Refuses comparisons of types without a common one.
///
/// # Errors
/// NO_COMMON_TYPE, ILLEGAL_TYPE_OF_ARGUMENT.
pub fn check_comparisons(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let mut schema = None;
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if is_comparison(expr) {
                    let schema = schema.get_or_insert_with(|| schema_below(node));
                    check(expr, &Inputs { plans: &node.inputs(), schema })?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map(drop)
}

/// The plans that a node's expressions read, and their columns.
struct Inputs<'a> {
    plans: &'a [&'a LogicalPlan],
    schema: &'a DFSchema,
}

fn check(expr: &Expr, inputs: &Inputs<'_>) -> Result<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => check_sides(left, *op, right, inputs),
        Expr::Between(Between { expr, negated, low, high }) => {
            let (from, to) =
                if *negated { (Operator::Lt, Operator::Gt) } else { (Operator::GtEq, Operator::LtEq) };
            check_sides(expr, from, low, inputs)?;
            check_sides(expr, to, high, inputs)
        }
        _ => Ok(()),
    }
}

fn check_sides(left: &Expr, operator: Operator, right: &Expr, inputs: &Inputs<'_>) -> Result<()> {
    let Some(function) = function_of(operator) else { return Ok(()) };
    let sides = [as_written(left), as_written(right)];
    let field = |expr: &Expr| expr.to_field(inputs.schema).ok().map(|(_, field)| field);
    let (Some(one), Some(other)) = (field(sides[0]), field(sides[1])) else { return Ok(()) };
    if one.data_type().is_null() || other.data_type().is_null() {
        return Ok(());
    }
    if let (DataType::Struct(left), DataType::Struct(right)) = (one.data_type(), other.data_type()) {
        let count = left.len().min(right.len());
        return (0..count).try_for_each(|at| {
            check_sides(&element(sides[0], at), operator, &element(sides[1], at), inputs)
        });
    }
    let name = |field: &Field| type_name(&field.clone().with_nullable(false));
    let (one_name, other_name) = (name(&one), name(&other));
    let dates = |one: &DataType, other: &DataType| matches!(one, DataType::Date32) && other.is_numeric();
    if dates(one.data_type(), other.data_type()) || dates(other.data_type(), one.data_type()) {
        return Err(never_compared(&one_name, &other_name, function).into());
    }
    let is_number = |field: &Field| {
        let data_type = field.data_type();
        data_type.is_signed_integer()
            || data_type.is_floating()
            || data_type.is_decimal()
            || matches!(data_type, DataType::Timestamp(..))
    };
    let mixed = is_address(&one) && is_number(&other) || is_address(&other) && is_number(&one);
    let times = |one: &Field, other: &Field| {
        matches!(one.data_type(), DataType::Timestamp(..)) && other.data_type().is_decimal()
    };
    let sixteen_bytes = |field: &Field| matches!(field.data_type(), DataType::FixedSizeBinary(16));
    let mixed = mixed || sixteen_bytes(&one) && sixteen_bytes(&other) && one_name != other_name;
    let is_distinct = matches!(operator, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom);
    let mixed = mixed
        || are_texts_and_others(one.data_type(), other.data_type())
        || is_distinct && one.data_type().is_string() != other.data_type().is_string();
    if mixed || times(&one, &other) || times(&other, &one) {
        return Err(never_compared(&one_name, &other_name, function).into());
    }
    let text = match (one.data_type().is_string(), other.data_type().is_string()) {
        (true, false) => sides[0],
        (false, true) => sides[1],
        _ => return Ok(()),
    };
    let mut steps = CONSTANT_STEPS_MAX;
    if is_constant(text, inputs.plans, &mut steps) {
        return Ok(());
    }
    let is_exact = [&one_name, &other_name]
        .iter()
        .any(|name| ["Decimal", "DateTime64"].iter().any(|exact| name.starts_with(exact)));
    Err(match is_exact {
        true => Error::illegal_type(format!("No operation {function} between {one_name} and {other_name}")),
        false => no_common_type(&one_name, &other_name, function),
    }
    .into())
}

/// Whether, of two types of arrays or maps, one has texts where the other has another type.
fn are_texts_and_others(one: &DataType, other: &DataType) -> bool {
    let within = |one: &Field, other: &Field| {
        let (one, other) = (one.data_type(), other.data_type());
        let are_known = !one.is_null() && !other.is_null();
        are_known && one.is_string() != other.is_string() || are_texts_and_others(one, other)
    };
    match (one, other) {
        (DataType::List(one), DataType::List(other)) | (DataType::Map(one, _), DataType::Map(other, _)) => {
            within(one, other)
        }
        (DataType::Struct(one), DataType::Struct(other)) => {
            one.iter().zip(other).any(|(one, other)| within(one, other))
        }
        _ => false,
    }
}

/// ClickHouse's error for a text and another type.
pub fn no_common_type(one: &str, other: &str, function: &str) -> Error {
    Error::no_common_type(format!(
        "There is no supertype for types {one}, {other} because some of them are String/FixedString/Enum and some of \
         them are not: while executing function {function}; convert one of them, as with toString"
    ))
}

/// ClickHouse's error for types that are never compared.
pub fn never_compared(one: &str, other: &str, function: &str) -> Error {
    Error::illegal_type(format!("Illegal types of arguments (`{one}`, `{other}`) of function `{function}`"))
}

/// The expression before its conversion: a text compared with a value of a type unknown to Arrow was converted by then,
/// see `functions/planner.rs`. A query's own conversion has no cast within.
fn as_written(side: &Expr) -> &Expr {
    match side {
        Expr::ScalarFunction(call) if [AS_TYPE, "toUUID"].contains(&call.name()) => match call.args.first() {
            Some(Expr::Cast(text)) => &text.expr,
            _ => side,
        },
        _ => side,
    }
}

/// Whether an expression has the same value in all rows, as far as ClickHouse knows before it reads any.
fn is_constant(expr: &Expr, inputs: &[&LogicalPlan], steps: &mut usize) -> bool {
    let mut constant = true;
    let seen = expr.apply(|expr| {
        // Beyond this many steps, an expression is taken for a constant.
        *steps = steps.saturating_sub(1);
        constant = match expr {
            _ if *steps == 0 => return Ok(TreeNodeRecursion::Stop),
            Expr::ScalarSubquery(_) => return Ok(TreeNodeRecursion::Jump),
            Expr::Column(column) => is_constant_column(column, inputs, steps),
            Expr::ScalarFunction(call) => {
                call.func.signature().volatility != Volatility::Volatile
                    || call.name().ends_with(CONSTANT_SUFFIX)
            }
            Expr::AggregateFunction(_)
            | Expr::WindowFunction(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::LambdaVariable(_)
            | Expr::InSubquery(_)
            | Expr::Exists(_) => false,
            _ => true,
        };
        Ok(if constant { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    seen.is_ok() && constant
}

fn is_constant_column(column: &Column, inputs: &[&LogicalPlan], steps: &mut usize) -> bool {
    let mut places = inputs.iter().map(|input| (input, input.schema().maybe_index_of_column(column)));
    let found = places.find_map(|(input, place)| Some((input, place?)));
    found.is_some_and(|(input, place)| is_constant_output(input, place, steps))
}

fn is_constant_output(plan: &LogicalPlan, place: usize, steps: &mut usize) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(place);
            expr.is_some_and(|expr| is_constant(expr, &[&projection.input], steps))
        }
        LogicalPlan::SubqueryAlias(alias) => is_constant_output(&alias.input, place, steps),
        LogicalPlan::Filter(filter) => is_constant_output(&filter.input, place, steps),
        LogicalPlan::Limit(limit) => is_constant_output(&limit.input, place, steps),
        LogicalPlan::Sort(sort) => is_constant_output(&sort.input, place, steps),
        LogicalPlan::Distinct(Distinct::All(input)) => is_constant_output(input, place, steps),
        _ => false,
    }
}
