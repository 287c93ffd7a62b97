//! `_updated_at`, the time at which a dictionary's entry was read from its source. It is a column of a dictionary in
//! statements that name it, and part of `*` if the setting `asterisk_include_materialized_columns` is on.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, Statement,
    TableAlias, TableFactor, Visit, VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};

use super::Scope;
use super::relations::{DICTIONARY_FUNCTION, full_name};

/// The column.
const UPDATED_AT: &str = "_updated_at";

/// Suffix of a dictionary that is read as a table with that column.
pub const WITH_TIMES: &str = "\u{1}with times";

/// Whether a statement names the column.
pub fn are_wanted(statement: &Statement) -> bool {
    Visit::visit(statement, &mut UpdatedAtMentions { depth: 0, within: usize::MAX }).is_break()
}

/// Whether a SELECT itself names the column, not only a subquery.
fn is_named_in(select: &Select) -> bool {
    Visit::visit(select, &mut UpdatedAtMentions { depth: 0, within: 0 }).is_break()
}

/// The names of WITH's queries: unqualified, these are no dictionaries.
pub fn named_queries(statement: &Statement) -> Vec<String> {
    struct QueryNames(Vec<String>);
    impl Visitor for QueryNames {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let tables = query.with.iter().flat_map(|with| &with.cte_tables);
            self.0.extend(tables.map(|table| table.alias.name.value.clone()));
            ControlFlow::Continue(())
        }
    }
    let mut names = QueryNames(Vec::new());
    // The visitor never breaks.
    let _ = Visit::visit(statement, &mut names);
    names.0
}

fn is_named_query(name: &ObjectName, queries: &[String]) -> bool {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return false };
    queries.contains(&ident.value)
}

/// Adds the column to a plain table if it is a dictionary; its columns keep their qualifier.
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

/// If a SELECT over tables names the column itself, excludes it from `*`.
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

/// Adds the column after each `*` of a SELECT that reads one dictionary only.
pub fn name_behind_wildcards(statement: &mut Statement, scope: &dyn Scope) {
    let queries = named_queries(statement);
    // The visitor never breaks.
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
        full_name(factor, self.scope.database()).is_some_and(|name| self.scope.is_dictionary(&name))
    }
}

impl VisitorMut for Namer<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let alone = match select.from.as_slice() {
            [from] => from.joins.is_empty() && self.is_dictionary(&from.relation),
            _ => false,
        };
        let mut mentions = UpdatedAtMentions { depth: 0, within: 0 };
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

/// Breaks where the column is named, in queries at most `within` deep.
struct UpdatedAtMentions {
    depth: usize,
    within: usize,
}

impl Visitor for UpdatedAtMentions {
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
