//! `_updated_at`, the time at which a dictionary's entry was got from its source. It is a column of a dictionary for
//! a statement that names it, and no part of `*`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, Expr, Ident, ObjectNamePart, Query, Select, SelectItem, Statement, TableAlias,
    TableFactor, Visit, Visitor, WildcardAdditionalOptions,
};

/// The column.
const UPDATED_AT: &str = "_updated_at";

/// Ends the name of a dictionary that is to be a table with that column.
pub(crate) const WITH_TIMES: &str = "\u{1}with times";

/// Whether a statement names the column.
pub fn are_wanted(statement: &Statement) -> bool {
    statement.visit(&mut Mentions { depth: 0, within: usize::MAX }).is_break()
}

/// Makes a plain table one with the column, if it is a dictionary; its columns are called as before.
pub fn show(factor: &mut TableFactor) {
    let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
    let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut() else { return };
    if alias.is_none() {
        let name = Ident::with_quote('"', ident.value.clone());
        *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    }
    *ident = Ident::with_quote('"', format!("{}{WITH_TIMES}", ident.value));
}

/// `*` in a SELECT that reads tables is all columns but this one, if the SELECT itself names it.
pub fn keep_out_of_wildcards(select: &mut Select) {
    let reads_tables = select.from.iter().any(|from| matches!(from.relation, TableFactor::Table { .. }));
    if !reads_tables || select.visit(&mut Mentions { depth: 0, within: 0 }).is_continue() {
        return;
    }
    let except =
        || ExceptSelectItem { first_element: Ident::new(UPDATED_AT), additional_elements: Vec::new() };
    for item in &mut select.projection {
        if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
            *options = WildcardAdditionalOptions { opt_except: Some(except()), ..options.clone() };
        }
    }
}

/// Breaks where the column is named, in queries that are no deeper than `within`.
struct Mentions {
    depth: usize,
    within: usize,
}

impl Visitor for Mentions {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let named = match expr {
            Expr::Identifier(ident) => ident.value == UPDATED_AT,
            Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|ident| ident.value == UPDATED_AT),
            _ => false,
        };
        if named && self.depth <= self.within { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
