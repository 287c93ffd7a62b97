//! The state and the configuration that DataFusion plans with.

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;

use super::below_joins::BelowJoins;
use super::in_order::{WantedSorts, WholeSorts};
use super::marks::MarkedRows;
use super::nan_last::NanLast;
use super::outer_join::OuterJoinDefaults;
use super::settings::QuerySettings;
use crate::functions;
use crate::limits::BATCH_ROWS;

/// A rule of the crate that uses the dialect.
type Rule = Arc<dyn AnalyzerRule + Send + Sync>;

type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Configures a state to plan by the dialect. The `lazy` rules, for functions evaluated only where needed, run after
/// that of outer joins, whose defaults they may use.
pub fn planning(builder: SessionStateBuilder, lazy: Vec<Rule>) -> SessionStateBuilder {
    let builder = builder
        .with_expr_planners(functions::planners())
        .with_scalar_functions(functions::scalars())
        .with_aggregate_functions(functions::aggregates())
        .with_window_functions(functions::windows())
        .with_type_planner(Arc::new(functions::ClickHouseTypes))
        .with_analyzer_rule(Arc::new(OuterJoinDefaults));
    lazy.into_iter()
        .fold(builder, SessionStateBuilder::with_analyzer_rule)
        .with_analyzer_rule(Arc::new(MarkedRows))
        .with_analyzer_rule(Arc::new(NanLast))
        .with_physical_optimizer_rules(physical_rules())
}

/// DataFusion's rules for physical plans, and the dialect's.
fn physical_rules() -> Vec<PhysicalRule> {
    let mut rules: Vec<PhysicalRule> = Vec::new();
    for rule in PhysicalOptimizer::new().rules {
        if rule.name().starts_with("FilterPushdown") {
            rules.push(Arc::new(WholeSorts));
            rules.push(Arc::new(BelowJoins(rule)));
        } else {
            rules.push(rule);
        }
    }
    // The first rule records the requirements of the whole answer.
    rules.insert(1, Arc::new(WantedSorts));
    rules
}

/// DataFusion's configuration for queries of the dialect.
pub fn configuration() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_target_partitions(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false);
    let options = config.options_mut();
    // ClickHouse's names are case-sensitive, its strings are bytes after an offset, its NULLs sort last.
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.default_null_ordering = "nulls_last".to_owned();
    // Sorts of subqueries are kept.
    options.sql_parser.enable_subquery_sort_elimination = false;
    // It would call dictGet once for each element taken out of its tuple.
    options.optimizer.enable_leaf_expression_pushdown = false;
    options.execution.parquet.schema_force_view_types = false;
    // Few rows do not justify several threads.
    options.execution.use_row_number_estimates_to_optimize_partitioning = true;
    options.extensions.insert(QuerySettings::default());
    config
}
