//! The functions that are DataFusion's own, which calls of ClickHouse's are rewritten to. No others of DataFusion's are
//! registered.

use std::sync::Arc;

use datafusion::functions::core::planner::CoreFunctionPlanner;
use datafusion::functions_aggregate::planner::AggregateFunctionPlanner;
use datafusion::functions_window::planner::WindowFunctionPlanner;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

use super::subcolumns::Subcolumns;

const SCALARS: &[&str] = &["coalesce", "current_date", "get_field", "now", "nvl"];

const AGGREGATES: &[&str] = &[
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "first_value",
    "last_value",
    "max",
    "min",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

const WINDOWS: &[&str] = &["dense_rank", "rank", "row_number"];

/// The scalar functions.
pub fn scalars() -> Vec<Arc<ScalarUDF>> {
    let mut all = datafusion::functions::all_default_functions();
    all.retain(|function| SCALARS.contains(&function.name()));
    all
}

/// The aggregates.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let mut all = datafusion::functions_aggregate::all_default_aggregate_functions();
    all.retain(|function| AGGREGATES.contains(&function.name()));
    all
}

/// The window functions.
pub fn windows() -> Vec<Arc<WindowUDF>> {
    let mut all = datafusion::functions_window::all_default_window_functions();
    all.retain(|function| WINDOWS.contains(&function.name()));
    all
}

/// The planners of the syntax that these implement.
pub fn planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![
        Arc::new(Subcolumns),
        Arc::new(CoreFunctionPlanner::default()),
        Arc::new(AggregateFunctionPlanner),
        Arc::new(WindowFunctionPlanner),
    ]
}
