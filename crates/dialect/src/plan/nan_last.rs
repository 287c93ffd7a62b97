//! NaN sorts after all numbers in either direction, next to NULL, as in ClickHouse. Arrow sorts it as the largest
//! number or, with the sign bit set as in `0 / 0`, as the smallest. UUIDs have their own order.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, Result};
use datafusion::functions::math::expr_fn::isnan;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::{ExprSchemable, LogicalPlan, Sort};
use datafusion::optimizer::AnalyzerRule;

use super::has_node;
use crate::functions::uuid_order::{is_uuid, order_of};

/// Sorts by whether a value is NaN before sorting by the value.
#[derive(Debug)]
pub struct NanLast;

impl AnalyzerRule for NanLast {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_node(&plan, |node| Ok(matches!(node, LogicalPlan::Sort(_))))? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Sort(sort) => with_nan_last(sort),
            other => Ok(Transformed::no(other)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "nan_last"
    }
}

fn with_nan_last(mut sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let exprs = in_order(&sort.expr, sort.input.schema())?;
    let changed = exprs != sort.expr;
    sort.expr = exprs;
    Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
}

/// The sort expressions, with those for the places of NaN and for the order of UUIDs.
pub fn in_order(order: &[SortExpr], schema: &DFSchema) -> Result<Vec<SortExpr>> {
    let mut exprs = Vec::with_capacity(order.len());
    for by in order {
        let (_, field) = by.expr.to_field(schema)?;
        if is_uuid(&field) {
            exprs.push(SortExpr { expr: order_of(by.expr.clone()), ..by.clone() });
            continue;
        }
        if matches!(field.data_type(), DataType::Float32 | DataType::Float64) {
            let is_nan = isnan(by.expr.clone());
            // NULL is neither, and stays where it is wanted.
            exprs.push(SortExpr { expr: is_nan, asc: !by.nulls_first, nulls_first: by.nulls_first });
        }
        exprs.push(by.clone());
    }
    Ok(exprs)
}
