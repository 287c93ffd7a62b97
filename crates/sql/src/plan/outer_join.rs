//! A row without a partner in an outer join: ClickHouse fills the partner's columns with the defaults of their
//! types, 0 or an empty string, where SQL has NULL. Columns that are Nullable have NULL in both.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, JoinConstraint, JoinType, Result, TableReference};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Projection, lit};
use datafusion::optimizer::AnalyzerRule;

use super::{QuerySettings, has_node};
use crate::functions::default_value;

/// Puts the defaults above each outer join that a query has. It runs before DataFusion makes joins of its own (of
/// subqueries), which need their NULLs.
#[derive(Debug)]
pub struct OuterJoinDefaults;

impl AnalyzerRule for OuterJoinDefaults {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if config.extensions.get::<QuerySettings>().is_some_and(|settings| settings.join_use_nulls) {
            return Ok(plan);
        }
        if !has_node(&plan, |node| Ok(matches!(node, LogicalPlan::Join(_))))? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(with_defaults).data()
    }

    fn name(&self) -> &str {
        "outer_join_defaults"
    }
}

/// Which sides of a join may lack a row.
fn missing_sides(join_type: JoinType) -> (bool, bool) {
    match join_type {
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (true, true),
        _ => (false, false),
    }
}

fn with_defaults(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
    let (left, right) = missing_sides(join.join_type);
    if !left && !right {
        return Ok(Transformed::no(plan));
    }
    let columns = [(&join.left, left), (&join.right, right)]
        .into_iter()
        .flat_map(|(side, missing)| columns(join, side.schema(), missing))
        .collect();
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan.clone()))?)))
}

fn columns(join: &Join, schema: &DFSchema, missing: bool) -> Vec<Expr> {
    let filled = |(relation, field): (Option<&TableReference>, &FieldRef)| {
        let column = Column::new(relation.cloned(), field.name());
        if !missing || field.is_nullable() {
            return Expr::Column(column);
        }
        // A type without a default keeps its NULL.
        let Ok(default) = default_value(field.data_type()) else { return Expr::Column(column) };
        let mut values = vec![Expr::Column(column.clone())];
        values.extend(partner(join, &column));
        values.push(lit(default));
        let metadata = FieldMetadata::new_from_field(field);
        coalesce(values).alias_qualified_with_metadata(relation.cloned(), field.name(), Some(metadata))
    };
    schema.iter().map(filled).collect()
}

/// The columns that USING names are one: whichever side has a row has the value.
fn partner(join: &Join, column: &Column) -> Option<Expr> {
    if join.join_constraint != JoinConstraint::Using {
        return None;
    }
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(found) if found == column);
    join.on.iter().find_map(|(left, right)| match (is_column(left), is_column(right)) {
        (true, _) => Some(right.clone()),
        (_, true) => Some(left.clone()),
        _ => None,
    })
}
