//! `JOIN` with a cache dictionary finds its rows by key, as `dictGet` does: keys that the cache lacks are asked of the
//! source, while the dictionary read as a table would be its resident rows (or, with DIRECT, all rows of the source).
//! ClickHouse calls it the direct join.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF,
    lit,
};
use granary_dialect::plan::{Unmatched, filled, has_node};
use granary_dict::{Dictionary, LayoutKind};

use crate::catalogue::DictionaryTable;
use crate::functions::{ColumnOfRow, RowLookup};
use crate::tables::provider::Provider;

/// The column of looked-up rows, between two nodes that the rewrite makes.
const ROW: &str = "row of a dictionary";

/// Rewrites such joins (INNER, LEFT, and what ANY, SEMI and ANTI become) where ON or USING compare the dictionary's
/// whole key. Runs before type coercion.
pub fn dictionary_joins(plan: LogicalPlan, missing: Unmatched) -> Result<LogicalPlan> {
    // Most joins are of other tables and need no list of used names.
    if !has_node(&plan, |node| Ok(Direct::of_node(node)?.is_some()))? {
        return Ok(plan);
    }
    let used = names_used(&plan)?;
    plan.transform_up_with_subqueries(|node| {
        Ok(match Direct::of_node(&node)? {
            Some(direct) => Transformed::yes(direct.plan(&used, missing)?),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// Names of columns that any expression of a plan has.
fn names_used(plan: &LogicalPlan) -> Result<HashSet<String>> {
    let mut names: HashSet<String> =
        plan.schema().fields().iter().map(|field| field.name().clone()).collect();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                // A column that a subquery takes from the outer query is used, too.
                if let Expr::Column(column) | Expr::OuterReferenceColumn(_, column) = expr {
                    names.insert(column.name.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(names)
}

/// A direct join.
struct Direct<'a> {
    join: &'a Join,
    dictionary: Arc<Dictionary>,
    /// Place in the dictionary's row, by column of the right side.
    places: Vec<usize>,
    /// The values compared with the key's columns.
    keys: Vec<Expr>,
    /// The join's other conditions.
    rest: Vec<Expr>,
}

impl<'a> Direct<'a> {
    fn of_node(node: &'a LogicalPlan) -> Result<Option<Self>> {
        if let LogicalPlan::Join(join) = node { Self::of(join) } else { Ok(None) }
    }

    fn of(join: &'a Join) -> Result<Option<Self>> {
        // EXCEPT and INTERSECT are joins of the rows of two tables, too, but there NULL equals NULL.
        let is_one = join.null_equality == NullEquality::NullEqualsNothing
            && matches!(
                join.join_type,
                JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti
            );
        let Some((dictionary, places)) = table(&join.right).filter(|_| is_one) else { return Ok(None) };
        let mut keys = vec![None; dictionary.definition().lookup_columns().len()];
        let mut rest = Vec::new();
        let on = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
        let filter = join.filter.iter().cloned().flat_map(split_conjunction_owned);
        for condition in on.chain(filter) {
            match compared(&condition, join, &places) {
                Some((place, other)) if keys.get(place).is_some_and(Option::is_none) => {
                    keys[place] = Some(other);
                }
                _ => rest.push(condition),
            }
        }
        let keys: Option<Vec<Expr>> = keys.into_iter().collect();
        let can_filter = join.join_type == JoinType::Inner || rest.is_empty();
        Ok(keys.filter(|_| can_filter).map(|keys| Direct { join, dictionary, places, keys, rest }))
    }

    fn plan(self, used: &HashSet<String>, missing: Unmatched) -> Result<LogicalPlan> {
        let (join, right) = (self.join, self.join.right.schema());
        let left: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
        // Unused columns are not looked up.
        let wanted: Vec<usize> =
            (0..self.places.len()).filter(|&i| used.contains(right.field(i).name())).collect();
        let places = wanted.iter().map(|&i| self.places[i]).collect();
        let fields = wanted.iter().map(|&i| Arc::clone(&right.fields()[i])).collect();
        let lookup = ScalarUDF::from(RowLookup::new(self.dictionary, places, fields)).call(self.keys);
        let row = Column::new_unqualified(ROW);
        let with_row = left.iter().cloned().chain([lookup.alias(ROW)]);
        let rows = LogicalPlanBuilder::from(join.left.as_ref().clone()).project(with_row)?;
        let row = || Expr::Column(row.clone());
        let rows = match join.join_type {
            JoinType::Left => rows,
            JoinType::LeftAnti => rows.filter(row().is_null())?,
            _ => rows.filter(row().is_not_null())?,
        };
        if matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) {
            return rows.project(left)?.build();
        }
        let may_lack = join.join_type == JoinType::Left;
        let mut columns = left;
        for (i, (relation, field)) in right.iter().enumerate() {
            let value = match wanted.iter().position(|&wanted| wanted == i) {
                Some(place) => {
                    let nullable = may_lack || field.is_nullable();
                    let field = Arc::new(field.as_ref().clone().with_nullable(nullable));
                    ScalarUDF::from(ColumnOfRow::new(place, field)).call(vec![row()])
                }
                None => lit(ScalarValue::try_from(field.data_type())?),
            };
            let metadata = Some(FieldMetadata::new_from_field(field));
            columns.push(value.alias_qualified_with_metadata(relation.cloned(), field.name(), metadata));
        }
        let joined = rows.project(columns)?;
        let joined = match conjunction(self.rest) {
            Some(rest) => joined.filter(rest)?.build()?,
            None => joined.build()?,
        };
        match filled(LogicalPlan::Join(join.clone()), missing)?.data {
            LogicalPlan::Projection(defaults) => {
                LogicalPlanBuilder::from(joined).project(defaults.expr)?.build()
            }
            _ => Ok(joined),
        }
    }
}

/// The key column that a condition compares, and the expression of the left side it is compared with.
fn compared(condition: &Expr, join: &Join, places: &[usize]) -> Option<(usize, Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return None };
    let of = |key: &Expr, other: &Expr| {
        let Expr::Column(column) = key else { return None };
        let (ours, theirs) = (join.left.schema(), join.right.schema());
        let at = theirs.maybe_index_of_column(column)?;
        let refers = other.column_refs().into_iter().all(|column| ours.has_column(column));
        let suits = refers && is_same_kind(&other.get_type(ours).ok()?, theirs.field(at).data_type());
        suits.then(|| (places[at], other.clone()))
    };
    of(right, left).or_else(|| of(left, right))
}

/// Whether a value of one type can equal a key of the other.
fn is_same_kind(value: &DataType, key: &DataType) -> bool {
    value == key || value.is_integer() && key.is_integer() || value.is_string() && key.is_string()
}

/// The dictionary (a cache, or DIRECT) that a side of a join reads, and each column's place in its row.
fn table(plan: &LogicalPlan) -> Option<(Arc<Dictionary>, Vec<usize>)> {
    match plan {
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
            let provider = source_as_provider(&scan.source).ok()?;
            let (dictionary, places) =
                provider.downcast_ref::<Provider<DictionaryTable>>()?.0.found_by_key()?;
            let cached = match dictionary.definition().layout.kind {
                LayoutKind::Direct | LayoutKind::Ssd(_) | LayoutKind::Memory { .. } => true,
                LayoutKind::FullLoad(_) => false,
            };
            let places = match &scan.projection {
                Some(columns) => columns.iter().map(|&column| places[column]).collect(),
                None => places.to_vec(),
            };
            cached.then(|| (Arc::clone(dictionary), places))
        }
        LogicalPlan::SubqueryAlias(alias) => table(&alias.input),
        LogicalPlan::Projection(projection) => {
            let (dictionary, places) = table(&projection.input)?;
            let chosen = chosen(&projection.expr, projection.input.schema(), &places)?;
            Some((dictionary, chosen))
        }
        // Each key has one row anyway.
        LogicalPlan::Distinct(Distinct::On(on)) if on.sort_expr.is_none() => {
            let (dictionary, places) = table(&on.input)?;
            let keys = chosen(&on.on_expr, on.input.schema(), &places)?;
            let all = (0..dictionary.definition().lookup_columns().len()).all(|key| keys.contains(&key));
            let chosen = chosen(&on.select_expr, on.input.schema(), &places)?;
            all.then_some((dictionary, chosen))
        }
        _ => None,
    }
}

/// The places of the columns that a list selects; `None` if it has other expressions.
fn chosen(list: &[Expr], schema: &DFSchema, places: &[usize]) -> Option<Vec<usize>> {
    let place = |expr: &Expr| match expr {
        Expr::Column(column) => Some(places[schema.maybe_index_of_column(column)?]),
        _ => None,
    };
    list.iter().map(place).collect()
}
