//! Rewrites ClickHouse's dialect into SQL that DataFusion can plan.
//!
//! The rewriting works on the syntax tree, before types are known: result columns get ClickHouse's names, integer
//! literals their smallest type, functions their registered spelling, files in FROM become tables. What depends on
//! types (arithmetic) is left to [`crate::functions`].

mod aggregates;
mod aliases;
mod allowed;
mod array_joins;
mod between;
mod calls;
mod conditions;
mod dictionaries;
mod expressions;
mod joins;
mod kept_aliases;
mod lambdas;
mod limit_clause;
mod literals;
mod names;
mod operators;
mod places;
mod projections;
mod relations;
mod scope;
mod session;
mod set_operations;
mod syntax;
mod syntax_calls;
mod times;
mod tuples;
mod using;
mod windows;
mod with;
mod written;

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, NamedWindowDefinition, NamedWindowExpr, OrderByKind, Query, Select, SetExpr,
    Statement, TableFactor, VisitMut, VisitorMut,
};

use crate::error::{Error, Result};
use crate::full_name::FullName;
use crate::functions;

pub(crate) use calls::clickhouse_name;
pub use dictionaries::ATTRIBUTE_SEPARATOR;
pub use kept_aliases::{KEPT, keep_aliases};
pub use literals::exact;
pub use relations::{FileTable, secret_name};
pub use scope::Scope;
pub use syntax::{CONSTANT_SUFFIX, call, string};
pub use times::{WITH_TIMES, name_behind_wildcards};
pub use written::{array_text, number, read_as};

/// Parts of a statement beside its query.
#[derive(Debug, Default)]
pub struct Extras {
    /// The name after FORMAT.
    pub format: Option<String>,
    /// SETTINGS, as text.
    pub settings: Vec<(String, String)>,
    /// Files read by the query, to be registered under these names before planning.
    pub files: Vec<FileTable>,
    /// Dictionaries read by the table function `dictionary`.
    pub dictionaries: Vec<FullName>,
    /// What the query reads, for the user's rights.
    pub named: Vec<Named>,
}

/// A thing that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A table or dictionary.
    Object(FullName),
    /// The dictionary of a call whose name is not constant: it may be any.
    AnyDictionary,
    /// A file that the function `file` reads.
    File,
}

/// Rewrites a statement in place. The expressions named by its WITH are aliases everywhere in it.
///
/// # Errors
/// UNKNOWN_FUNCTION, SYNTAX_ERROR and NOT_IMPLEMENTED for unsupported parts of a query, and errors of calls whose
/// arguments are wrong whatever their types.
pub fn rewrite(
    statement: &mut Statement,
    mut named: HashMap<String, Expr>,
    scope: &dyn Scope,
) -> Result<Extras> {
    allowed::check(statement)?;
    named.values().try_for_each(allowed::check)?;
    tuples::make_calls(statement);
    named.values_mut().for_each(tuples::make_calls);
    between::regroup(statement);
    named.values_mut().for_each(between::regroup);
    let times = times::are_wanted(statement).then(|| times::named_queries(statement));
    let mut rewriter = Rewriter { extras: Extras::default(), named, scope, places: Vec::new(), times };
    if let Some(query) = outer_query(statement) {
        projections::name_outermost(query, &rewriter.named);
        // Subqueries may reuse WITH's names for their own.
        if let SetExpr::Select(select) = query.body.as_ref() {
            aliases::check_unique(select, &rewriter.named)?;
        }
    }
    match statement.visit(&mut rewriter) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(rewriter.extras),
    }
}

fn outer_query(statement: &mut Statement) -> Option<&mut Query> {
    match statement {
        Statement::Query(query) => Some(query),
        Statement::Explain { statement, .. } => outer_query(statement),
        _ => None,
    }
}

struct Rewriter<'a> {
    extras: Extras,
    named: HashMap<String, Expr>,
    scope: &'a dyn Scope,
    /// For each of the SELECTs around, which expressions of its GROUP BY were written as places of columns.
    places: Vec<Vec<bool>>,
    /// The names of WITH, if the statement names `_updated_at`, the time of a dictionary's entries.
    times: Option<Vec<String>>,
}

fn flow(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Whether an expression is `()`.
fn is_nothing(expr: &Expr) -> bool {
    match expr {
        Expr::Tuple(items) => items.is_empty(),
        Expr::Function(function) => {
            syntax::name_of(function) == Some(functions::TUPLE) && syntax::arguments(function).is_empty()
        }
        _ => false,
    }
}

impl VisitorMut for Rewriter<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let Some(with) = &query.with
            && let Err(error) = with::check(with)
        {
            return ControlFlow::Break(error);
        }
        if let (SetExpr::Select(select), Some(order_by)) = (query.body.as_ref(), &mut query.order_by)
            && let Err(error) =
                using::check_order(select, order_by).and_then(|()| windows::derive_beside(select, order_by))
        {
            return ControlFlow::Break(error);
        }
        if let Err(error) = set_operations::make(query) {
            return ControlFlow::Break(error);
        }
        if let Some(format) = query.format_clause.take() {
            self.extras.format = Some(syntax::format_name(&format));
        }
        for setting in query.settings.take().unwrap_or_default() {
            self.extras.settings.push((setting.key.value, syntax::setting_value(&setting.value)));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        // Positions and limits are counts, not values: they stay plain numbers.
        let shown = match query.body.as_ref() {
            SetExpr::Select(select) => Some(select.projection.as_slice()),
            _ => None,
        };
        if let Some(order_by) = &mut query.order_by
            && let OrderByKind::Expressions(expressions) = &mut order_by.kind
        {
            for item in expressions {
                if let Err(error) = places::make(&mut item.expr, shown) {
                    return ControlFlow::Break(error);
                }
            }
        }
        if let Some(clause) = &mut query.limit_clause
            && let Err(error) = limit_clause::make(clause)
        {
            return ControlFlow::Break(error);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if self.times.is_some() {
            times::keep_out_of_wildcards(select);
        }
        let checked = using::check(select).and_then(|()| aliases::check_unique(select, &HashMap::new()));
        if let Err(error) = checked.and_then(|()| joins::make(select)) {
            return ControlFlow::Break(error);
        }
        projections::name(&mut select.projection);
        projections::name_within(select, &self.named);
        // Aliases are replaced by their expressions, and `1 AS k` is no place.
        self.places.push(match &select.group_by {
            GroupByExpr::Expressions(expressions, _) => expressions.iter().map(places::is_written).collect(),
            GroupByExpr::All(_) => Vec::new(),
        });
        if let GroupByExpr::Expressions(_, modifiers) | GroupByExpr::All(modifiers) = &select.group_by
            && let Some(modifier) = modifiers.first()
        {
            return flow(Err(Error::not_implemented(format!("GROUP BY {modifier} is not implemented"))));
        }
        let resolved = aliases::resolve(select, &self.named)
            .and_then(|()| windows::derive(select))
            .and_then(|()| array_joins::check(select));
        using::name_sides(select);
        if let Err(error) = resolved {
            return ControlFlow::Break(error);
        }
        if let Some(prewhere) = select.prewhere.take() {
            select.selection = Some(syntax::both(prewhere, select.selection.take()));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        for NamedWindowDefinition(_, window) in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = window {
                windows::count(window);
            }
        }
        select.selection.iter_mut().chain(select.having.iter_mut()).for_each(conditions::make);
        let written = self.places.pop().unwrap_or_default();
        if let GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
            for (by, is_place) in expressions.iter_mut().zip(written) {
                if is_place && let Err(error) = places::make(by, Some(&select.projection)) {
                    return ControlFlow::Break(error);
                }
            }
            // Grouped by nothing, all rows are one group.
            expressions.retain(|by| !is_nothing(by));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        relations::name_values(factor);
        let checked = relations::check(factor, self.scope.database());
        if let Err(error) = checked.and_then(|()| relations::rewrite(factor, self.scope, &mut self.extras)) {
            return ControlFlow::Break(error);
        }
        let name = relations::full_name(factor, self.scope.database());
        self.extras.named.extend(name.map(Named::Object));
        if let Some(queries) = &self.times {
            times::show(factor, queries);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        flow(expressions::before(expr, self.scope, &mut self.extras.named))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        flow(expressions::after(expr))
    }
}
