//! Selects DataFusion's rules for a plan. DataFusion tries all of them on every plan, and then again; for a short query
//! that takes longer than answering it. Most rules are for nodes that most plans lack.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};

use super::coercion::apply_clickhouse_types;
use super::comparisons::{check_comparisons, is_comparison};
use super::distinct_rows::grouped;
use super::in_order::sorts_within;
use super::in_subqueries::in_subqueries;
use super::join_keys::check_join_keys;
use super::lambda_variables::with_known_variables;
use super::multisets::numbered;
use super::outer_join::Unmatched;
use super::result_names::named;
use super::scalar_subqueries::nullable_subqueries;
use crate::functions::as_type::AS_TYPE;
use crate::functions::{TO_TIME_ZONE, constant_text};
use crate::limits::CONSTANT_BYTES_WANTED;

/// The kinds of nodes and expressions of a plan, as far as rules depend on them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Nodes {
    filter: bool,
    limit: bool,
    sort: bool,
    /// It has a GROUP BY.
    group: bool,
    /// It has an aggregate with DISTINCT.
    distinct: bool,
    /// It has a comparison.
    comparison: bool,
    /// It has a constant time in a zone.
    zone: bool,
    /// It has nodes that rules turn into others: joins, unions, subqueries, DISTINCT, and rare ones.
    other: bool,
}

/// An optimised plan.
pub struct Optimised {
    /// The plan.
    pub plan: LogicalPlan,
    /// Its columns as declared by the query: once an expression has become a constant, it does not tell whether its
    /// type is Nullable.
    pub declared: SchemaRef,
}

/// Analyses a plan, and optimises it by the rules that may change it. `joins` rewrites joins with tables whose rows are
/// found by key, before type coercion.
///
/// # Errors
/// Errors of giving the plan ClickHouse's meaning, now that its types are known.
pub fn optimise(
    state: &mut SessionState,
    plan: LogicalPlan,
    joins: impl FnOnce(LogicalPlan, Unmatched) -> Result<LogicalPlan>,
) -> Result<Optimised> {
    let optimised = analysed(state, plan, joins)?;
    let longest = longest_constant(&optimised.plan)?;
    // A projection writes a constant out for each row of a batch.
    let rows = (CONSTANT_BYTES_WANTED / longest.max(1)).max(1);
    if rows < state.config().batch_size() {
        state.config_mut().options_mut().execution.batch_size = ConfigNonZeroUsize::try_new(rows)?;
    }
    Ok(optimised)
}

/// The bytes of the longest constant.
fn longest_constant(plan: &LogicalPlan) -> Result<usize> {
    let mut longest = 0;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Literal(value, _) = expr {
                    longest = longest.max(value.size());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(longest)
}

/// Gives a plan its meaning, and optimises it by the rules for its nodes.
fn analysed(
    state: &mut SessionState,
    plan: LogicalPlan,
    joins: impl FnOnce(LogicalPlan, Unmatched) -> Result<LogicalPlan>,
) -> Result<Optimised> {
    let nodes = Nodes::of(&plan)?;
    if nodes.sort && sorts_within(&plan)? {
        state.config_mut().options_mut().execution.target_partitions = 1;
    }
    if nodes.other {
        check_join_keys(&plan)?;
    }
    if nodes.comparison || nodes.other {
        check_comparisons(&plan)?;
    }
    let plan = if nodes.other { nullable_subqueries(numbered(plan)?)? } else { plan };
    let missing = Unmatched::of(OptimizerConfig::options(state).as_ref());
    let plan = with_known_variables(apply_clickhouse_types(plan, missing)?)?;
    if nodes.other {
        let plan = joins(plan, missing)?;
        let plan = grouped(in_subqueries(plan)?)?;
        let plan = state.analyzer().execute_and_check(plan, &OptimizerConfig::options(state), |_, _| {})?;
        let plan = with_known_variables(plan)?;
        // Missing values of joins have been filled in by now.
        let plan = plan.transform_up(|node| Ok(Transformed::yes(node.recompute_schema()?))).data()?;
        let rules = state.optimizers().iter().filter(|rule| !nodes.spoilt_by(rule.name()));
        return Optimised::by(rules.map(Arc::clone).collect(), plan, state);
    }
    if !nodes.filter {
        // A second pass only matters to filters that are pushed down.
        state.config_mut().options_mut().optimizer.max_passes = 1;
    }
    let state = &*state;
    let plan = state.analyzer().execute_and_check(plan, &OptimizerConfig::options(state), |_, _| {})?;
    let plan = with_known_variables(plan)?;
    let rules = state.optimizers().iter().filter(|rule| nodes.concern(rule.name()));
    let rules = rules.filter(|rule| !nodes.spoilt_by(rule.name())).map(Arc::clone);
    Optimised::by(rules.collect(), plan, state)
}

impl Optimised {
    /// Optimises an analysed plan by these rules.
    fn by(
        rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
        plan: LogicalPlan,
        state: &SessionState,
    ) -> Result<Optimised> {
        let declared = Arc::new(named(&plan));
        let plan = Optimizer::with_rules(rules).optimize(plan, state, |_, _| {})?;
        Ok(Optimised { plan, declared })
    }
}

impl Nodes {
    fn of(plan: &LogicalPlan) -> Result<Nodes> {
        let mut nodes = Nodes::default();
        plan.apply(|node| {
            match node {
                LogicalPlan::Projection(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::EmptyRelation(_) => {}
                LogicalPlan::Aggregate(aggregate) => nodes.group |= !aggregate.group_expr.is_empty(),
                LogicalPlan::Sort(_) => nodes.sort = true,
                // A scan may have filters and a limit itself.
                LogicalPlan::TableScan(scan) => {
                    nodes.filter |= !scan.filters.is_empty();
                    nodes.limit |= scan.fetch.is_some();
                }
                LogicalPlan::Filter(_) => nodes.filter = true,
                LogicalPlan::Limit(_) => nodes.limit = true,
                _ => nodes.other = true,
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    nodes.other |= is_subquery(expr);
                    nodes.comparison |= is_comparison(expr);
                    nodes.zone |= is_constant_in_zone(expr);
                    nodes.distinct |= matches!(expr, Expr::AggregateFunction(call) if call.params.distinct);
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(nodes)
    }

    /// Whether a rule would break a plan of these nodes: DataFusion equates constants that are one moment in two zones,
    /// and expressions with them.
    fn spoilt_by(self, rule: &str) -> bool {
        self.zone && rule == "common_sub_expression_eliminate"
    }

    /// Whether a rule can change a plan of these nodes. An unknown rule is always tried.
    fn concern(self, rule: &str) -> bool {
        match rule {
            "rewrite_set_comparison"
            | "optimize_unions"
            | "unions_to_filter"
            | "replace_distinct_aggregate"
            | "eliminate_join"
            | "decorrelate_predicate_subquery"
            | "scalar_subquery_to_join"
            | "decorrelate_lateral_join"
            | "extract_equijoin_predicate"
            | "eliminate_cross_join"
            | "filter_null_join_keys"
            | "eliminate_outer_join" => self.other,
            "eliminate_filter" | "push_down_filter" => self.filter,
            "eliminate_limit" | "push_down_limit" => self.limit,
            "propagate_empty_relation" => self.filter || self.limit,
            "eliminate_duplicated_expr" => self.sort || self.group,
            "eliminate_group_by_constant" => self.group,
            "single_distinct_aggregation_to_group_by" => self.distinct,
            // Disabled: see `configuration`.
            "extract_leaf_expressions" | "push_down_leaf_projections" => false,
            _ => true,
        }
    }
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
}

/// Whether an expression is a constant in a zone.
fn is_constant_in_zone(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    let is_said = call.name() == TO_TIME_ZONE
        || call.name() == AS_TYPE
            && matches!(&call.args[..], [_, Expr::Literal(name, _)] if constant_text(Some(name)).is_some_and(|name| name.contains('\'')));
    is_said && call.args.first().is_some_and(|time| !time.any_column_refs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::configuration;
    use datafusion::execution::context::SessionContext;

    /// Every plan is the same as with all rules.
    #[tokio::test]
    async fn rules_that_are_left_out_change_nothing() {
        let config = configuration().with_default_catalog_and_schema("datafusion", "public");
        let context = SessionContext::new_with_config(config.with_create_default_catalog_and_schema(true));
        let queries = [
            "SELECT 1",
            "SELECT sum(a + 1 + 2) FROM (SELECT column1 AS a FROM (VALUES (1), (2)) AS t)",
            "SELECT column1 + column1 AS b, count(DISTINCT column2) FROM t WHERE column1 > 1 + 1 GROUP BY b",
            "SELECT column1 FROM t WHERE 1 = 0",
            "SELECT column1 FROM t WHERE true ORDER BY column1, column1 LIMIT 3",
            "SELECT * FROM (SELECT column1 AS a, column2 FROM t ORDER BY a) WHERE a = 2 LIMIT 0",
            "SELECT abs(column1) + abs(column1) FROM (SELECT * FROM t LIMIT 5) WHERE column2 > 1",
            "SELECT column1, max(column2) FROM t GROUP BY column1, 'x' HAVING max(column2) > 1 LIMIT 2",
            "SELECT DISTINCT column1 FROM t",
            "SELECT column1 FROM t WHERE column1 IN (SELECT column2 FROM t)",
            "SELECT a.column1 FROM t a JOIN t b ON a.column1 = b.column2 WHERE b.column1 = 1",
            "SELECT column1 FROM t UNION ALL SELECT column2 FROM t",
        ];
        let table = "CREATE TABLE t AS VALUES (1, 2), (2, 3), (3, 4)";
        context.sql(table).await.unwrap().collect().await.unwrap();
        for query in queries {
            let plan = context.state().create_logical_plan(query).await.unwrap();
            let all = context.state().optimize(&plan).unwrap();
            let some = optimise(&mut context.state(), plan, |plan, _| Ok(plan)).unwrap().plan;
            assert_eq!(some.display_indent_schema().to_string(), all.display_indent_schema().to_string());
        }
    }
}
