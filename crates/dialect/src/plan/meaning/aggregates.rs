//! Aggregates of floats, of which NaN is neither the greatest nor the least, and of what may be NULL.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::functions::math::expr_fn::isnan;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, Sort, WindowFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, WindowFunctionDefinition};

use super::comparisons::is_float;
use crate::error::Error;
use crate::functions::quantile::ANSWERS;
use crate::functions::{NanFirst, ToNullable, is_plain};
use crate::rewrite::clickhouse_name;
use crate::types::type_name;

/// The statistics of two columns, which are NULL where one of the two may be.
const OF_PAIRS: &[&str] = &["corr", "covar_pop", "covar_samp"];

/// Aggregates of one column that are a Float32 of Float32 in ClickHouse.
const STATISTICS: &[&str] = &["stddev", "stddev_pop", "var", "var_pop"];

/// The same over a window.
pub fn changed_window(mut call: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => function.name().to_owned(),
        WindowFunctionDefinition::WindowUDF(_) => return Ok(Transformed::no(Expr::WindowFunction(call))),
    };
    match call.params.args.as_mut_slice() {
        [value] if ["max", "min"].contains(&name.as_str()) && is_float(value, schema) => {
            nan_last(&name, value)
        }
        _ => return Ok(Transformed::no(Expr::WindowFunction(call))),
    }
    Ok(Transformed::yes(Expr::WindowFunction(call)))
}

/// Lets NaN be what `max` or `min` takes where there is nothing else.
fn nan_last(name: &str, value: &mut Expr) {
    let last = if name == "max" { NanFirst::least() } else { NanFirst::greatest() };
    *value = ScalarUDF::from(last).call(vec![std::mem::take(value)]);
}

/// An aggregate by ClickHouse's rules.
pub fn changed(mut call: AggregateFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = call.func.name().to_owned();
    let nullable = |expr: &Expr| expr.nullable(schema).unwrap_or(false);
    let params = &mut call.params;
    match (name.as_str(), params.args.as_mut_slice()) {
        ("max" | "min", [value]) if is_float(value, schema) => {
            nan_last(&name, value);
        }
        (statistic, [value]) if STATISTICS.contains(&statistic) => {
            if value.get_type(schema)? == DataType::Float32 {
                let what = format!(
                    "Aggregate function {} does not take Float32 here: toFloat64 makes a Float64 of it",
                    clickhouse_name(statistic)
                );
                return Err(Error::illegal_type(what).into());
            }
            return Ok(Transformed::no(Expr::AggregateFunction(call)));
        }
        (quantile, [value, ..]) if ANSWERS.iter().any(|answer| answer.name() == quantile) => {
            // What is looked at was made a Float64.
            if let Expr::ScalarFunction(number) = value
                && let [given] = number.args.as_slice()
                && !is_plain(&given.get_type(schema)?)
            {
                let given = type_name(given.to_field(schema)?.1.as_ref());
                return Err(Error::illegal_type(format!(
                    "Quantiles of {given} are not known here: only those of numbers"
                ))
                .into());
            }
            return Ok(Transformed::no(Expr::AggregateFunction(call)));
        }
        ("avg", [value]) if value.get_type(schema)?.is_decimal() => {
            *value = Expr::Cast(Cast::new(Box::new(std::mem::take(value)), DataType::Float64));
        }
        // ClickHouse sums decimals with all digits that their width has.
        ("sum", [value]) => {
            let wide = match value.get_type(schema)? {
                DataType::Decimal128(_, scale) => DataType::Decimal128(38, scale),
                DataType::Decimal256(_, scale) => DataType::Decimal256(76, scale),
                _ => return Ok(Transformed::no(Expr::AggregateFunction(call))),
            };
            *value = Expr::Cast(Cast::new(Box::new(std::mem::take(value)), wide));
        }
        (pairs, [one, other]) if OF_PAIRS.contains(&pairs) && (nullable(one) || nullable(other)) => {
            for side in [one, other] {
                *side = ScalarUDF::from(ToNullable::default()).call(vec![std::mem::take(side)]);
            }
        }
        // argMin and argMax.
        ("first_value", [value]) if !params.order_by.is_empty() => {
            let by = params.order_by[0].clone();
            if nullable(&by.expr) && !nullable(value) && !value.get_type(schema)?.is_nested() {
                *value = ScalarUDF::from(ToNullable::default()).call(vec![std::mem::take(value)]);
            }
            if is_float(&by.expr, schema) {
                params.order_by.insert(0, Sort { expr: isnan(by.expr), asc: true, nulls_first: false });
            }
        }
        _ => return Ok(Transformed::no(Expr::AggregateFunction(call))),
    }
    Ok(Transformed::yes(Expr::AggregateFunction(call)))
}
