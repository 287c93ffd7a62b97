//! Rows without a partner in an outer join: ClickHouse fills the partner's columns with the defaults of their types, 0
//! or an empty string, where SQL has NULL. Nullable columns have NULL in both. With join_use_nulls all have NULL,
//! except arrays and maps, which cannot be NULL, and the one column that `*` shows for a USING name.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, JoinConstraint, JoinType, Result, TableReference};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, Projection, ScalarUDF, Union, lit};
use datafusion::optimizer::AnalyzerRule;

use super::type_names::with_type_names;
use super::{QuerySettings, has_node, map_named_expressions, schema_below};
use crate::functions::{ToNullable, default_value, over_non_null};

/// Puts the defaults above each outer join of a query. Runs before DataFusion makes joins of its own (from subqueries),
/// which need their NULLs.
#[derive(Debug)]
pub struct OuterJoinDefaults;

impl AnalyzerRule for OuterJoinDefaults {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let missing = Unmatched::of(config);
        match has_node(&plan, |node| Ok(matches!(node, LogicalPlan::Join(_))))? {
            true => with_defaults(plan, missing),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "outer_join_defaults"
    }
}

/// Puts the defaults above each outer join of a plan.
pub fn with_defaults(plan: LogicalPlan, missing: Unmatched) -> Result<LogicalPlan> {
    // The inputs may have new columns: those of an inner join's missing side have defaults.
    plan.transform_up_with_subqueries(|node| {
        filled(reunited(node.recompute_schema()?)?, missing)?
            .transform_data(with_type_names)?
            .transform_data(with_defaults_of_nothing)
    })
    .data()
}

/// A UNION's column is Nullable only if one of its inputs still is. DataFusion's recomputing keeps the schema it had.
fn reunited(node: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Union(union) = node else { return Ok(node) };
    let is_nullable = |plan: &LogicalPlan, at: usize| {
        plan.schema().fields().get(at).is_none_or(|field| field.is_nullable())
    };
    let is_known = (0..union.schema.fields().len()).any(|at| {
        union.schema.field(at).is_nullable() && !union.inputs.iter().any(|input| is_nullable(input, at))
    });
    Ok(LogicalPlan::Union(match is_known {
        true => Union::try_new_with_loose_types(union.inputs)?,
        false => union,
    }))
}

/// Aggregates over columns that are not Nullable any more, as defaults were filled in, get their own defaults.
fn with_defaults_of_nothing(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !matches!(node, LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(node));
    }
    let schema = schema_below(&node);
    let node = map_named_expressions(node, |mut expr| {
        let Expr::AggregateFunction(call) = &mut expr else { return Ok(Transformed::no(expr)) };
        let params = &mut call.params;
        let is_by_null = params.order_by.iter().any(|by| may_be_null(&by.expr, &schema));
        let is_known =
            |value: &Expr| !may_be_null(ToNullable::without_other(value).unwrap_or(value), &schema);
        match params.args.as_mut_slice() {
            [] => return Ok(Transformed::no(expr)),
            values if !is_by_null && values.iter().all(is_known) => {
                for value in values {
                    if let Some(known) = ToNullable::without_other(value).cloned() {
                        *value = known;
                    }
                }
                call.func = over_non_null(&call.func).unwrap_or_else(|| Arc::clone(&call.func));
            }
            // For argMin(value, by): the value for no rows, which is NULL if all of `by` is.
            [value, ..] if is_by_null && !may_be_null(value, &schema) => match value
                .get_type(&schema)?
                .is_nested()
            {
                true => call.func = over_non_null(&call.func).unwrap_or_else(|| Arc::clone(&call.func)),
                false => *value = ScalarUDF::from(ToNullable::by_other()).call(vec![std::mem::take(value)]),
            },
            _ => return Ok(Transformed::no(expr)),
        }
        Ok(Transformed::yes(expr))
    })?;
    node.map_data(LogicalPlan::recompute_schema)
}

fn may_be_null(value: &Expr, schema: &DFSchema) -> bool {
    value.nullable(schema).unwrap_or(true)
}

/// The values of a missing row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unmatched {
    /// The defaults of the columns' types.
    Default,
    /// NULLs, for `join_use_nulls`.
    Null,
}

impl Unmatched {
    /// The value that the query's settings ask for.
    pub fn of(config: &ConfigOptions) -> Self {
        let settings = config.extensions.get::<QuerySettings>();
        match settings.is_some_and(|settings| settings.join_use_nulls) {
            true => Self::Null,
            false => Self::Default,
        }
    }
}

/// Which sides of a join may lack a row (left, right).
fn missing_sides(join_type: JoinType) -> (bool, bool) {
    match join_type {
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (true, true),
        _ => (false, false),
    }
}

/// Whether a plan is an outer join.
pub fn is_outer(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if missing_sides(join.join_type) != (false, false))
}

/// Puts the defaults above a plan if it is an outer join.
pub fn filled(plan: LogicalPlan, missing: Unmatched) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
    let (left, right) = missing_sides(join.join_type);
    let is_using = join.join_constraint == JoinConstraint::Using;
    let sides = [(&join.left, left), (&join.right, right)];
    let has_list = |(side, may_lack): &(&Arc<LogicalPlan>, bool)| {
        *may_lack && side.schema().fields().iter().any(is_list)
    };
    let is_changed = missing == Unmatched::Default || is_using || sides.iter().any(has_list);
    if !left && !right || !is_changed {
        return Ok(Transformed::no(plan));
    }
    let columns = sides
        .into_iter()
        .flat_map(|(side, may_lack)| match missing {
            Unmatched::Default => default_columns(join, side.schema(), may_lack),
            Unmatched::Null => with_keys(join, side.schema(), may_lack),
        })
        .collect();
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan.clone()))?)))
}

/// The columns of a side. Of the two columns of a USING name, DataFusion shows for `*` that of the table whose name
/// comes first: it gets the value of the side that has a row.
fn with_keys(join: &Join, schema: &DFSchema, may_lack: bool) -> Vec<Expr> {
    let filled = |(relation, field): (Option<&TableReference>, &FieldRef)| {
        let column = Column::new(relation.cloned(), field.name());
        match partner(join, &column) {
            None if may_lack && is_list(field) => or_default(column, relation, field),
            Some(Expr::Column(partner)) if may_lack && column < partner => {
                let metadata = FieldMetadata::new_from_field(field);
                coalesce(vec![Expr::Column(column), Expr::Column(partner)]).alias_qualified_with_metadata(
                    relation.cloned(),
                    field.name(),
                    Some(metadata),
                )
            }
            _ => Expr::Column(column),
        }
    };
    schema.iter().map(filled).collect()
}

/// Whether a column is of a type that cannot be NULL.
fn is_list(field: &FieldRef) -> bool {
    matches!(field.data_type(), DataType::List(_) | DataType::Map(..))
}

fn or_default(column: Column, relation: Option<&TableReference>, field: &FieldRef) -> Expr {
    let Ok(default) = default_value(field.data_type()) else { return Expr::Column(column) };
    let metadata = FieldMetadata::new_from_field(field);
    coalesce(vec![Expr::Column(column), lit(default)]).alias_qualified_with_metadata(
        relation.cloned(),
        field.name(),
        Some(metadata),
    )
}

fn default_columns(join: &Join, schema: &DFSchema, missing: bool) -> Vec<Expr> {
    let filled = |(relation, field): (Option<&TableReference>, &FieldRef)| {
        let column = Column::new(relation.cloned(), field.name());
        let partner = partner(join, &column);
        if !missing || field.is_nullable() && partner.is_none() {
            return Expr::Column(column);
        }
        let is_nullable = |partner: &Expr| {
            let of_side = |side: &LogicalPlan| partner.nullable(side.schema().as_ref());
            of_side(&join.left).or_else(|_| of_side(&join.right)).unwrap_or(true)
        };
        let can_be_null = field.is_nullable() || partner.as_ref().is_some_and(is_nullable);
        let mut values = vec![Expr::Column(column.clone())];
        values.extend(partner);
        if !can_be_null {
            // A type without a default keeps its NULL.
            let Ok(default) = default_value(field.data_type()) else { return Expr::Column(column) };
            values.push(lit(default));
        }
        let metadata = FieldMetadata::new_from_field(field);
        coalesce(values).alias_qualified_with_metadata(relation.cloned(), field.name(), Some(metadata))
    };
    schema.iter().map(filled).collect()
}

/// The other side's column of the same USING name: the side that has a row provides the value.
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
