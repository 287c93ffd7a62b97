//! The names of a result's columns. Of columns of joined tables with the same name, ClickHouse qualifies all but the
//! first by their tables.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Fields, Schema};
use datafusion::common::{JoinConstraint, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::rewrite::KEPT;

/// A plan's result columns, by name.
pub fn named(plan: &LogicalPlan) -> Schema {
    let schema = plan.schema();
    let metadata = schema.metadata().clone();
    let Some(join) = joined(plan) else {
        return Schema::new_with_metadata(schema.fields().clone(), metadata);
    };
    let mut tables: Vec<&TableReference> = Vec::new();
    for (table, _) in join.schema().iter() {
        tables.extend(table.filter(|table| !tables.contains(table)));
    }
    let mut shared = HashSet::new();
    add_shared(join, &mut shared);
    let is_ambiguous = |table: &TableReference, name: &str| {
        let mut of_others = join
            .schema()
            .iter()
            .filter(|(other, field)| other.is_some_and(|other| other != table) && field.name() == name);
        let is_first_of_two = tables.len() == 2 && tables[0] == table;
        !is_first_of_two && !shared.contains(name) && of_others.next().is_some()
    };
    let fields = schema.iter().map(|(table, field)| match table {
        _ if let Some((name, _)) = field.name().split_once(KEPT) => {
            Arc::new(field.as_ref().clone().with_name(name))
        }
        Some(table) if is_ambiguous(table, field.name()) => {
            Arc::new(field.as_ref().clone().with_name(format!("{}.{}", table.table(), field.name())))
        }
        _ => Arc::clone(field),
    });
    Schema::new_with_metadata(fields.collect::<Fields>(), metadata)
}

/// The join whose columns a plan returns.
fn joined(mut plan: &LogicalPlan) -> Option<&LogicalPlan> {
    loop {
        match plan {
            LogicalPlan::Join(_) => return Some(plan),
            // A subquery has one qualifier for all its columns.
            LogicalPlan::SubqueryAlias(_) => return None,
            _ => {}
        }
        let inputs = plan.inputs();
        let [input] = inputs.as_slice() else { return None };
        plan = input;
    }
}

/// Adds the names of USING columns.
fn add_shared(join: &LogicalPlan, shared: &mut HashSet<String>) {
    let LogicalPlan::Join(join) = join else { return };
    if join.join_constraint == JoinConstraint::Using {
        let names = join.on.iter().filter_map(|(left, _)| name_of(left));
        shared.extend(names.map(str::to_owned));
    }
    for side in [&join.left, &join.right] {
        joined(side).into_iter().for_each(|join| add_shared(join, shared));
    }
}

fn name_of(key: &Expr) -> Option<&str> {
    match key {
        Expr::Column(column) => Some(&column.name),
        Expr::Cast(cast) => name_of(&cast.expr),
        _ => None,
    }
}
