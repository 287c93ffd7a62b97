//! `SELECT q.b AS b` over joined tables: a column that is named by its alias, where `SELECT q.b` may be named `q.b`.
//! DataFusion takes the alias for the column's own name.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, Visit,
    Visitor,
};

use super::aliases::{is_of_table, table_names};
use super::joins::has_joins;

/// What such aliases end with; no format shows it.
pub const KEPT: &str = "\u{1}as";

/// Marks such aliases of a statement's result.
pub fn keep_aliases(statement: &mut Statement) {
    let Statement::Query(query) = statement else { return };
    let Query { body, order_by, .. } = query.as_mut();
    let SetExpr::Select(select) = body.as_mut() else { return };
    let has_other_places = select.qualify.is_some() || matches!(select.distinct, Some(Distinct::On(_)));
    if !has_joins(select) || has_other_places {
        return;
    }
    let (tables, shown) = (table_names(select), shown(select));
    let mut sorted: Vec<&mut Expr> = match order_by.as_mut().map(|by| &mut by.kind) {
        Some(OrderByKind::Expressions(items)) => items.iter_mut().map(|item| &mut item.expr).collect(),
        _ => Vec::new(),
    };
    let Select { projection, group_by, having, .. } = select.as_mut();
    let mut named: Vec<&mut Expr> = having.iter_mut().collect();
    if let GroupByExpr::Expressions(expressions, _) = group_by {
        named.extend(expressions);
    }
    for item in projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        let is_own = matches!(expr, Expr::CompoundIdentifier(parts)
            if is_of_table(parts, &tables) && parts.last().is_some_and(|column| column.value == alias.value));
        // Where another column is shown by that name, this one is told from it by its table.
        let is_alone = shown
            .as_ref()
            .is_some_and(|shown| shown.iter().filter(|name| **name == alias.value).count() == 1);
        let is_in_expression =
            |by: &&mut Expr| !matches!(by, Expr::Identifier(_)) && mentions(by, &alias.value);
        if !is_own || !is_alone || named.iter().chain(&sorted).any(is_in_expression) {
            continue;
        }
        let kept = Ident::with_quote('"', format!("{}{KEPT}", alias.value));
        let is_alias = |by: &Expr| matches!(by, Expr::Identifier(name) if name.value == alias.value);
        named.iter_mut().filter(|by| is_alias(by)).for_each(|by| **by = expr.clone());
        sorted.iter_mut().filter(|by| is_alias(by)).for_each(|by| **by = Expr::Identifier(kept.clone()));
        *alias = kept;
    }
}

/// The names of the columns that a SELECT shows; `None`: a `*` shows others.
fn shown(select: &Select) -> Option<Vec<String>> {
    let name = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(column)) => Some(column.value.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => Some(parts.last()?.value.clone()),
        SelectItem::UnnamedExpr(_) => Some(String::new()),
        _ => None,
    };
    select.projection.iter().map(name).collect()
}

fn mentions(expr: &Expr, name: &str) -> bool {
    Visit::visit(expr, &mut AliasMentions { name }).is_break()
}

struct AliasMentions<'a> {
    name: &'a str,
}

impl Visitor for AliasMentions<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) if ident.value == self.name => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
