//! Aggregates of floats, for which NaN is neither the greatest nor the least, and of Nullable arguments.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::functions::math::expr_fn::isnan;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, NullTreatment, Sort, WindowFunction};
use datafusion::logical_expr::{
    Expr, ExprSchemable, ScalarUDF, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};

use super::comparisons::{is_float, is_of_uuids};
use crate::error::Error;
use crate::functions::quantile::ANSWERS;
use crate::functions::uuid_order::order_of;
use crate::functions::{
    ToNullable, has_list, is_plain, nan_greatest, nan_least, over_nullable, with_empty_value,
};
use crate::plan::nan_last::in_order;
use crate::rewrite::clickhouse_name;
use crate::types::{is_wide, type_name};

/// Statistics of two columns, which are NULL if one of the two is Nullable.
const OF_PAIRS: &[&str] = &["corr", "covar_pop", "covar_samp"];

/// Aggregates that return Float32 for Float32 in ClickHouse.
const STATISTICS: &[&str] = &["stddev", "stddev_pop", "var", "var_pop"];

/// Changes a window aggregate like a group's, and sorts NaN after all numbers in its row order.
pub fn changed_window(mut call: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let by = &mut call.params.order_by;
    let mut changed = false;
    // A bound at a distance, which is a number.
    let has_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    let frame = &call.params.window_frame;
    let is_near = frame.units == WindowFrameUnits::Range
        && (has_distance(&frame.start_bound) || has_distance(&frame.end_bound));
    if by.iter().any(|by| is_of_uuids(&by.expr, schema)) {
        return Err(Error::not_implemented("A window in the order of UUIDs is not implemented").into());
    }
    let is_number = |by: &Sort| by.expr.get_type(schema).is_ok_and(|data_type| data_type.is_numeric());
    if is_near && !by.iter().all(is_number) {
        let what = "A RANGE that reaches some way is one of numbers here: order by toUnixTimestamp(t), or toInt32(day)";
        return Err(Error::not_implemented(what).into());
    }
    // An unsigned number cannot go below 0 by the distance.
    if is_near {
        for by in by.iter_mut().filter(|by| is_unsigned(&by.expr, schema)) {
            by.expr = Expr::Cast(Cast::new(Box::new(by.expr.clone()), DataType::Int64));
            changed = true;
        }
    }
    if !is_near && by.iter().any(|by| is_float(&by.expr, schema)) {
        *by = in_order(by, schema)?;
        changed = true;
    }
    let name = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => function.name().to_owned(),
        WindowFunctionDefinition::WindowUDF(_) => {
            return Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed));
        }
    };
    let moves = match &call.params.window_frame.start_bound {
        WindowFrameBound::Preceding(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow | WindowFrameBound::Following(_) => true,
    };
    // DataFusion subtracts what leaves the frame, which leaves small differences, and roots of negative ones.
    if moves && [STATISTICS, OF_PAIRS].concat().contains(&name.as_str()) {
        let name = clickhouse_name(&name);
        let what = format!("{name} over a frame whose beginning moves is not implemented");
        return Err(Error::not_implemented(what).into());
    }
    check_numbers(&name, &call.params.args, schema)?;
    changed |= keep_whole(&name, &mut call.params.args, schema)?;
    match call.params.args.as_mut_slice() {
        [value] if ["max", "min"].contains(&name.as_str()) && is_float(value, schema) => {
            nan_last(&name, value)
        }
        [value] if ["max", "min"].contains(&name.as_str()) && is_of_uuids(value, schema) => {
            let what = format!("{name} of UUIDs over a window is not implemented");
            return Err(Error::not_implemented(what).into());
        }
        [value] if ["max", "min"].contains(&name.as_str()) && is_unordered(&value.get_type(schema)?) => {
            return Err(no_order(&name).into());
        }
        [value] if let Some(wide) = widened(&name, value, schema)? => cast_to(value, wide),
        _ => return Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed)),
    }
    Ok(Transformed::yes(Expr::WindowFunction(call)))
}

fn is_unsigned(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| data_type.is_unsigned_integer())
}

/// The type for summing decimals, with all digits of their width; a float for their mean.
fn widened(name: &str, value: &Expr, schema: &DFSchema) -> Result<Option<DataType>> {
    let (_, field) = value.to_field(schema)?;
    Ok(match (name, field.data_type()) {
        ("avg", data_type) if data_type.is_decimal() => Some(DataType::Float64),
        ("sum", DataType::Decimal128(_, scale)) => Some(DataType::Decimal128(38, *scale)),
        ("sum", DataType::Decimal256(_, scale)) if !is_wide(&field) => Some(DataType::Decimal256(76, *scale)),
        _ => None,
    })
}

fn cast_to(value: &mut Expr, data_type: DataType) {
    *value = Expr::Cast(Cast::new(Box::new(std::mem::take(value)), data_type));
}

/// Orders NaN so that `max` or `min` takes it only if there is nothing else.
fn nan_last(name: &str, value: &mut Expr) {
    let last = if name == "max" { nan_least() } else { nan_greatest() };
    *value = last.call(vec![std::mem::take(value)]);
}

/// Whether values are arrays of arrays or of tuples, or tuples that hold arrays: DataFusion compares none of these.
fn holds_nested(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => item.data_type().is_nested(),
        DataType::Struct(fields) => fields.iter().any(|field| has_list(field.data_type())),
        _ => false,
    }
}

/// Whether `max` and `min` of these values are refused.
fn is_unordered(data_type: &DataType) -> bool {
    has_null_within(data_type) || holds_nested(data_type)
}

/// Whether arrays or tuples may have NULL within, which `max` and `min` order differently from comparisons.
fn has_null_within(data_type: &DataType) -> bool {
    let within = |field: &Field| field.is_nullable() || has_null_within(field.data_type());
    match data_type {
        DataType::List(item) => within(item),
        DataType::Struct(fields) => fields.iter().any(|field| within(field)),
        _ => false,
    }
}

fn by_unordered(order: &[Sort], schema: &DFSchema) -> bool {
    order.iter().any(|by| by.expr.get_type(schema).is_ok_and(|data_type| is_unordered(&data_type)))
}

fn no_order(name: &str) -> Error {
    Error::not_implemented(format!(
        "{name} of arrays or tuples with NULL among them, of arrays of arrays or tuples, and of tuples with arrays is not implemented"
    ))
}

fn is_quantile(name: &str) -> bool {
    ANSWERS.iter().any(|answer| answer.name() == name)
}

/// Refuses statistics and quantiles of types for which ClickHouse's answer is of another type than DataFusion's.
fn check_numbers(name: &str, arguments: &[Expr], schema: &DFSchema) -> Result<()> {
    let Some(value) = arguments.first() else { return Ok(()) };
    if STATISTICS.contains(&name) && value.get_type(schema)? == DataType::Float32 {
        let name = clickhouse_name(name);
        let what =
            format!("Aggregate function {name} does not take Float32 here: toFloat64 makes a Float64 of it");
        return Err(Error::illegal_type(what).into());
    }
    if OF_PAIRS.contains(&name) {
        let fields = arguments.iter().map(|argument| argument.to_field(schema).map(|(_, field)| field));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let name = clickhouse_name(name);
        if fields.iter().any(|field| field.data_type().is_decimal()) {
            let types: Vec<String> = fields.iter().map(|field| type_name(field.as_ref())).collect();
            let what = format!("Illegal types {} of arguments of function {name}", types.join(" and "));
            return Err(Error::illegal_type(what).into());
        }
        if fields.iter().all(|field| field.data_type() == &DataType::Float32) {
            let what = format!(
                "Aggregate function {name} does not take Float32 alone here: toFloat64 makes a Float64 of it"
            );
            return Err(Error::illegal_type(what).into());
        }
    }
    // The argument of a quantile was converted to Float64.
    if is_quantile(name)
        && let Expr::ScalarFunction(number) = value
        && number.func.name() == "toFloat64"
        && let [given] = number.args.as_slice()
        && !is_plain(&given.get_type(schema)?)
    {
        let given = type_name(given.to_field(schema)?.1.as_ref());
        let what = format!("Quantiles of {given} are not known here: only those of numbers");
        return Err(Error::illegal_type(what).into());
    }
    Ok(())
}

/// Gives `quantileExactInclusive` integers of 64 bits as they are, for ClickHouse subtracts them exactly. Returns
/// whether it did.
fn keep_whole(name: &str, arguments: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let is_inclusive = ANSWERS.iter().any(|answer| answer.is_inclusive() && answer.name() == name);
    let Some(Expr::ScalarFunction(number)) = arguments.first_mut().filter(|_| is_inclusive) else {
        return Ok(false);
    };
    if number.func.name() != "toFloat64" {
        return Ok(false);
    }
    let [given] = number.args.as_mut_slice() else { return Ok(false) };
    if !matches!(given.get_type(schema)?, DataType::Int64 | DataType::UInt64) {
        return Ok(false);
    }
    let given = std::mem::take(given);
    arguments[0] = given;
    Ok(true)
}

/// An aggregate by ClickHouse's rules.
pub fn changed(mut call: AggregateFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = call.func.name().to_owned();
    let nullable = |expr: &Expr| expr.nullable(schema).unwrap_or(false);
    if call.params.args.first().is_some_and(nullable)
        && let Some(function) = over_nullable(&call.func)
    {
        call.func = function;
    }
    let params = &mut call.params;
    if OF_PAIRS.contains(&name.as_str()) {
        check_numbers(&name, &params.args, schema)?;
    }
    match (name.as_str(), params.args.as_mut_slice()) {
        ("max" | "min", [value]) if is_float(value, schema) => {
            nan_last(&name, value);
        }
        ("max" | "min", [value]) if is_unordered(&value.get_type(schema)?) => {
            return Err(no_order(&name).into());
        }
        ("first_value", [_]) if by_unordered(&params.order_by, schema) => {
            return Err(no_order("argMin or argMax").into());
        }
        ("max" | "min", [value]) if is_of_uuids(value, schema) => {
            let by = Sort { expr: order_of(value.clone()), asc: name == "min", nulls_first: false };
            (params.order_by, params.null_treatment) = (vec![by], Some(NullTreatment::IgnoreNulls));
            call.func = with_empty_value(first_value_udaf());
        }
        (name, [_, ..]) if STATISTICS.contains(&name) || is_quantile(name) => {
            check_numbers(name, &params.args, schema)?;
            keep_whole(name, &mut params.args, schema)?;
        }
        (name, [value]) if let Some(wide) = widened(name, value, schema)? => cast_to(value, wide),
        (pairs, [one, other]) if OF_PAIRS.contains(&pairs) && (nullable(one) || nullable(other)) => {
            for side in [one, other] {
                *side = ScalarUDF::from(ToNullable::default()).call(vec![std::mem::take(side)]);
            }
            call.func = over_nullable(&call.func).unwrap_or(call.func);
        }
        // argMin and argMax.
        ("first_value", [value]) if !params.order_by.is_empty() => {
            let by = params.order_by[0].clone();
            if nullable(&by.expr) && !nullable(value) && !value.get_type(schema)?.is_nested() {
                *value = ScalarUDF::from(ToNullable::by_other()).call(vec![std::mem::take(value)]);
                call.func = over_nullable(&call.func).unwrap_or(call.func);
            }
            if is_float(&by.expr, schema) {
                params.order_by.insert(0, Sort { expr: isnan(by.expr), asc: true, nulls_first: false });
            } else if is_of_uuids(&by.expr, schema) {
                params.order_by[0].expr = order_of(by.expr);
            }
        }
        _ => {}
    }
    Ok(Transformed::yes(Expr::AggregateFunction(call)))
}
