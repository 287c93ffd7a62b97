//! `_updated_at`, the time at which a dictionary's entry was got from its source. It is a column of a dictionary for
//! a statement that names it, and part of `*` if the setting `asterisk_include_materialized_columns` says so.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, Statement,
    TableAlias, TableFactor, Visit, VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};

use super::Scope;
use super::relations::{DICTIONARY_FUNCTION, full_name};

/// The column.
const UPDATED_AT: &str = "_updated_at";

/// Ends the name of a dictionary that is to be a table with that column.
pub const WITH_TIMES: &str = "\u{1}with times";

/// Whether a statement names the column.
pub fn are_wanted(statement: &Statement) -> bool {
    Visit::visit(statement, &mut Mentions { depth: 0, within: usize::MAX }).is_break()
}

/// Whether a SELECT does so, and not only a query in it.
fn is_named_in(select: &Select) -> bool {
    Visit::visit(select, &mut Mentions { depth: 0, within: 0 }).is_break()
}

/// The names that WITH gives to queries: without a database these are no dictionaries.
pub fn named_queries(statement: &Statement) -> Vec<String> {
    struct Names(Vec<String>);
    impl Visitor for Names {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let tables = query.with.iter().flat_map(|with| &with.cte_tables);
            self.0.extend(tables.map(|table| table.alias.name.value.clone()));
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(Vec::new());
    // Nothing breaks it.
    let _ = Visit::visit(statement, &mut names);
    names.0
}

fn is_named_query(name: &ObjectName, queries: &[String]) -> bool {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return false };
    queries.contains(&ident.value)
}

/// Makes a plain table one with the column, if it is a dictionary; its columns are called as before.
pub fn show(factor: &mut TableFactor, queries: &[String]) {
    let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
    if is_named_query(name, queries) {
        return;
    }
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
    if !reads_tables || !is_named_in(select) {
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

/// Names the column behind each `*` of a SELECT that reads one dictionary and nothing else.
pub fn name_behind_wildcards(statement: &mut Statement, scope: &dyn Scope) {
    let queries = named_queries(statement);
    // Nothing breaks it.
    let _ = VisitMut::visit(statement, &mut Namer { scope, queries });
}

struct Namer<'a> {
    scope: &'a dyn Scope,
    queries: Vec<String>,
}

impl Namer<'_> {
    fn is_dictionary(&self, factor: &TableFactor) -> bool {
        let TableFactor::Table { name, args, .. } = factor else { return false };
        if args.is_some() {
            return name.to_string() == DICTIONARY_FUNCTION;
        }
        if is_named_query(name, &self.queries) {
            return false;
        }
        let name = full_name(factor, self.scope.database());
        let parts = name.as_deref().and_then(|name| name.split_once('.'));
        parts.is_some_and(|(database, name)| self.scope.is_dictionary(database, name))
    }
}

impl VisitorMut for Namer<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let alone = match select.from.as_slice() {
            [from] => from.joins.is_empty() && self.is_dictionary(&from.relation),
            _ => false,
        };
        let mut mentions = Mentions { depth: 0, within: 0 };
        let is_named = select.projection.iter().any(|item| Visit::visit(item, &mut mentions).is_break());
        if alone && !is_named {
            let named = |item: SelectItem| match item {
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                    vec![item, SelectItem::UnnamedExpr(Expr::Identifier(Ident::new(UPDATED_AT)))]
                }
                item => vec![item],
            };
            select.projection = std::mem::take(&mut select.projection).into_iter().flat_map(named).collect();
        }
        ControlFlow::Continue(())
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
