//! An alias of the SELECT list is visible in the whole SELECT: in the list's other columns, in WHERE, GROUP BY and
//! HAVING. There it is replaced by its expression, before a column of the same name; within its own expression the name
//! means the column. A column of `* REPLACE(expression AS name)` is an alias, too.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, Query, Select, SelectItem, TableFactor, VisitMut, VisitorMut,
};

use super::literals::named_float;
use super::names::column_name;
use super::syntax::{call, string};
use crate::error::{Error, Result};
use crate::limits::{ALIAS_EXPANSIONS_MAX, ALIASES_DEEP_MAX};
use crate::text::shown_name;

/// Replaces aliases by their expressions. Those `named` by WITH are visible, too.
///
/// # Errors
/// TOO_BIG_AST and TOO_DEEP_AST for aliases that expand or nest too far.
pub fn resolve(select: &mut Select, named: &HashMap<String, Expr>) -> Result<()> {
    let tables = table_names(select);
    let mut aliases = named.clone();
    aliases.extend(select.projection.iter().filter_map(|item| alias(item, &tables)));
    let replaced: HashMap<String, Expr> = select.projection.iter().flat_map(replaced).collect();
    let replaced_names = replaced.keys().cloned().collect();
    aliases.extend(replaced);
    if aliases.is_empty() {
        return Ok(());
    }
    let mut resolver = Resolver { aliases, tables, ..Resolver::default() };
    for item in &mut select.projection {
        match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = shown_name(&alias.value);
                // A column that was shown before, and was given a name of its own for that: `upper(s) AS s, s`.
                let is_repeated =
                    name != alias.value && matches!(expr, Expr::Identifier(ident) if ident.value == name);
                if is_repeated {
                    resolver.visit(expr)?;
                } else {
                    resolver.within.push(name.to_owned());
                    resolver.visit(expr)?;
                    resolver.within.pop();
                }
            }
            // The column itself, or the alias of another: `SELECT number AS n, n`.
            SelectItem::UnnamedExpr(expr) => {
                let name = match expr {
                    Expr::Identifier(ident) => Some(ident.clone()),
                    _ => None,
                };
                let before = resolver.expansions;
                resolver.visit(expr)?;
                if let Some(alias) = name.filter(|_| resolver.expansions > before) {
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
            _ => {}
        }
    }
    resolver.foreign = replaced_names;
    if let GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
        expressions.iter_mut().try_for_each(|expr| resolver.visit(expr))?;
    }
    let conditions = [&mut select.prewhere, &mut select.selection, &mut select.having];
    conditions.into_iter().flatten().try_for_each(|expr| resolver.visit(expr))
}

/// Refuses a name for two different expressions. Columns that were named here are named by their expressions.
///
/// # Errors
/// MULTIPLE_EXPRESSIONS_FOR_ALIAS.
pub fn check_unique(select: &Select, named: &HashMap<String, Expr>) -> Result<()> {
    let mut known: HashMap<&str, &Expr> = named.iter().map(|(name, expr)| (name.as_str(), expr)).collect();
    for item in &select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        let name = shown_name(&alias.value);
        let is_column = matches!(expr, Expr::Identifier(_)) && name == alias.value;
        if !is_column && name == column_name(expr) {
            continue;
        }
        if let Some(other) = known.insert(name, expr)
            && !are_one(bare(other), bare(expr))
        {
            return Err(Error::two_expressions_for_alias(name, expr, other));
        }
    }
    Ok(())
}

/// Whether two expressions are the same; `count()` and `COUNT(*)` are.
fn are_one(one: &Expr, other: &Expr) -> bool {
    let are_calls = matches!((one, other), (Expr::Function(_), Expr::Function(_)));
    one == other || are_calls && column_name(one).eq_ignore_ascii_case(&column_name(other))
}

/// The expression without parentheses around it.
fn bare(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The names that may qualify the columns of a SELECT.
pub fn table_names(select: &Select) -> Vec<String> {
    let relations = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    relations.filter_map(table_name).collect()
}

/// Whether this is a column of one of these tables, as `table.column`, and no element of a tuple.
pub fn is_of_table(parts: &[Ident], tables: &[String]) -> bool {
    matches!(parts, [.., table, _] if tables.contains(&table.value))
}

/// The name that qualifies a table's columns.
fn table_name(factor: &TableFactor) -> Option<String> {
    let (alias, name) = match factor {
        TableFactor::Table { name, alias, .. } => (alias, name.0.last().and_then(|part| part.as_ident())),
        TableFactor::Derived { alias, .. } => (alias, None),
        _ => return None,
    };
    alias.as_ref().map(|alias| &alias.name).or(name).map(|name| name.value.clone())
}

/// The alias of an item, unless it is trivial: `number AS number`, or the name that an unnamed column was given. That
/// of an element of a tuple, `t.a AS a`, is not.
fn alias(item: &SelectItem, tables: &[String]) -> Option<(String, Expr)> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            let name = shown_name(&alias.value);
            let is_element = matches!(expr, Expr::CompoundIdentifier(parts) if !is_of_table(parts, tables));
            (is_element || column_name(expr) != name).then(|| (name.to_owned(), expr.clone()))
        }
        _ => None,
    }
}

/// The columns that a wildcard replaces by other expressions.
fn replaced(item: &SelectItem) -> impl Iterator<Item = (String, Expr)> {
    let options = match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => Some(options),
        _ => None,
    };
    let elements = options.and_then(|options| options.opt_replace.as_ref()).into_iter();
    let elements = elements.flat_map(|replace| &replace.items);
    elements
        .filter(|element| column_name(&element.expr) != element.column_name.value)
        .map(|element| (element.column_name.value.clone(), element.expr.clone()))
}

#[derive(Default)]
struct Resolver {
    aliases: HashMap<String, Expr>,
    tables: Vec<String>,
    /// Names that an alias must not use: outside of the list, ClickHouse reads the columns themselves.
    foreign: HashSet<String>,
    /// Number of aliases around the visited expression.
    depth: usize,
    /// Aliases whose expressions are being visited, and parameters of the enclosing lambdas.
    within: Vec<String>,
    /// Depth of subqueries, which have their own names.
    queries: usize,
    expansions: usize,
}

impl Resolver {
    fn visit(&mut self, expr: &mut Expr) -> Result<()> {
        match VisitMut::visit(expr, self) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }
}

impl VisitorMut for Resolver {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Lambda(lambda) = expr {
            self.within.extend(lambda.params.iter().map(|parameter| parameter.name.value.clone()));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Lambda(lambda) = expr {
            self.within.truncate(self.within.len() - lambda.params.iter().count());
        }
        // `t.name`, an element of a tuple with the alias t.
        if let Expr::CompoundIdentifier(parts) = &*expr
            && let Some((tuple, elements)) = parts.split_first()
            && self.aliases.contains_key(&tuple.value)
            && !self.tables.contains(&tuple.value)
        {
            let mut whole = Expr::Identifier(tuple.clone());
            let before = self.expansions;
            self.post_visit_expr(&mut whole)?;
            if self.expansions > before {
                let element =
                    |whole, element: &Ident| call("tupleElement", vec![whole, string(&element.value)]);
                *expr = elements.iter().fold(whole, element);
            }
            return ControlFlow::Continue(());
        }
        let Expr::Identifier(ident) = &*expr else { return ControlFlow::Continue(()) };
        if self.queries > 0 || self.within.contains(&ident.value) || named_float(ident).is_some() {
            return ControlFlow::Continue(());
        }
        let Some(expression) = self.aliases.get(&ident.value) else { return ControlFlow::Continue(()) };
        if self.depth > 0 && self.foreign.contains(&ident.value) {
            let name = &ident.value;
            let message = format!(
                "An alias of {name}, which REPLACE shows another expression in the place of, is known to the list of columns alone: make it in a subquery"
            );
            return ControlFlow::Break(Error::not_implemented(message));
        }
        self.expansions += 1;
        if self.expansions > ALIAS_EXPANSIONS_MAX {
            let message = format!("Aliases were replaced {ALIAS_EXPANSIONS_MAX} times: they are too long");
            return ControlFlow::Break(Error::too_big_ast(message));
        }
        if self.depth == ALIASES_DEEP_MAX {
            let message = format!("Aliases are more than {ALIASES_DEEP_MAX} deep within each other");
            return ControlFlow::Break(Error::too_deep_ast(message));
        }
        let mut expression = expression.clone();
        self.within.push(ident.value.clone());
        self.depth += 1;
        let expanded = self.visit(&mut expression);
        self.depth -= 1;
        self.within.pop();
        *expr = Expr::Nested(Box::new(expression));
        match expanded {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
