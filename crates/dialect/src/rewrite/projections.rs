//! The columns of a result are named as ClickHouse names them.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr};

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

/// Names the columns of the final result, in which names may repeat: a column of another table has that one's name before
/// its own. DataFusion wants all names to differ, so what is repeated all the same gets a suffix that no format shows.
pub fn name_outermost(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    name(&mut select.projection);
    let is_joined = select.from.len() > 1 || select.from.iter().any(|from| !from.joins.is_empty());
    let mut seen: HashMap<String, usize> = HashMap::new();
    // Whose column of a name came first.
    let mut tables: HashMap<String, String> = HashMap::new();
    for item in &mut select.projection {
        if is_joined
            && let SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) = item
            && let [.., table, column] = parts.as_slice()
            && tables.entry(column.value.clone()).or_insert_with(|| table.value.clone()) != &table.value
        {
            let alias = Ident::with_quote('"', format!("{}.{}", table.value, column.value));
            *item = SelectItem::ExprWithAlias { expr: Expr::CompoundIdentifier(parts.clone()), alias };
        }
        let shown = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => ident.value.clone(),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                parts.last().map(|part| part.value.clone()).unwrap_or_default()
            }
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            _ => continue,
        };
        let times = seen.entry(shown.clone()).or_default();
        *times += 1;
        if *times > 1 {
            let alias = Ident::with_quote('"', format!("{shown}\u{1}{times}"));
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
                continue;
            };
            let expr = taken(expr);
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}
