//! Names the columns of a result as ClickHouse does.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor, WildcardAdditionalOptions,
};

use super::aliases::{is_of_table, table_names};
use super::joins::has_joins;
use super::literals::named_float;
use super::names::column_name;
use super::syntax::taken;

/// Names the unnamed columns of a SELECT.
pub fn name(items: &mut [SelectItem]) {
    for item in items {
        if let SelectItem::UnnamedExpr(expr) = item
            && !is_column(expr)
        {
            let alias = Ident::with_quote('"', column_name(expr));
            let expr = taken(expr);
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(ident) => named_float(ident).is_none(),
        expr => matches!(expr, Expr::CompoundIdentifier(_)),
    }
}

/// Names the columns of a query's result, in which names may repeat: DataFusion requires distinct ones, so a repeated
/// name gets a suffix that no format shows. Of a UNION, the names of the first SELECT are shown. Those `named` by WITH
/// are no columns.
pub fn name_outermost(query: &mut Query, named: &HashMap<String, Expr>) {
    name_all(&mut query.body, named);
}

/// Names the columns of a subquery of which all are shown by the `*` of a SELECT from nothing else.
pub fn name_within(select: &mut Select, named: &HashMap<String, Expr>) {
    let are_plain = select.projection.iter().all(|item| match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => is_plain(options),
        _ => true,
    });
    if let [from] = select.from.as_mut_slice()
        && from.joins.is_empty()
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
        && are_plain
        && !joins(&subquery.body)
    {
        name_all(&mut subquery.body, named);
    }
}

/// Whether a SELECT of a query joins tables: then columns of one name are told apart by these.
fn joins(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => has_joins(select),
        SetExpr::SetOperation { left, right, .. } => joins(left) || joins(right),
        SetExpr::Query(query) => joins(&query.body),
        _ => false,
    }
}

fn name_all(body: &mut SetExpr, named: &HashMap<String, Expr>) {
    match body {
        SetExpr::Select(select) => name_distinctly(select, named),
        SetExpr::SetOperation { left, right, .. } => {
            name_all(left, named);
            name_all(right, named);
        }
        SetExpr::Query(query) => name_all(&mut query.body, named),
        _ => {}
    }
}

/// Columns of several tables differ by these.
fn name_distinctly(select: &mut Select, named: &HashMap<String, Expr>) {
    name(&mut select.projection);
    let (shown_by_star, tables) = (shown_by_star(select), table_names(select));
    let mut seen: HashMap<String, Vec<Option<String>>> = HashMap::new();
    for item in &mut select.projection {
        let (shown, table) = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => (ident.value.clone(), None),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) if !is_of_table(parts, &tables) => {
                // An element of a tuple: no column has its name.
                let from = usize::from(parts.first().is_some_and(|table| tables.contains(&table.value)));
                let path: Vec<&str> = parts[from..].iter().map(|part| part.value.as_str()).collect();
                (path.join("."), None)
            }
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                let Some((column, tables)) = parts.split_last() else { continue };
                (column.value.clone(), tables.last().map(|table| table.value.clone()))
            }
            SelectItem::ExprWithAlias { alias, .. } => (alias.value.clone(), None),
            _ => continue,
        };
        let is_of_star = matches!(item, SelectItem::UnnamedExpr(_))
            && !named.contains_key(&shown)
            && shown_by_star(&shown);
        let others = seen.entry(shown.clone()).or_default();
        let is_repeated = others.iter().any(|other| other.is_none() || table.is_none() || *other == table);
        others.push(table);
        if is_repeated || is_of_star {
            let alias = Ident::with_quote('"', format!("{shown}\u{1}{}", others.len()));
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
                continue;
            };
            let expr = taken(expr);
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

/// Whether a column is certainly among those of a `*` beside it: it is no alias, and there is one table only.
fn shown_by_star(select: &Select) -> impl Fn(&str) -> bool + use<> {
    let has_star = select
        .projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) if is_plain(options)));
    let is_alone = select.from.len() == 1 && !has_joins(select);
    let aliases: Vec<String> = select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
            _ => None,
        })
        .collect();
    // A table may have hidden columns, whose names begin so.
    let is_known = move |name: &str| !name.starts_with('_') && !aliases.iter().any(|alias| alias == name);
    move |name| has_star && is_alone && is_known(name)
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    let WildcardAdditionalOptions { opt_ilike, opt_exclude, opt_except, opt_replace, opt_rename, .. } =
        options;
    opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
}
