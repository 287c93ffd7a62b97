//! Names the columns of a result as ClickHouse does.

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

/// Names the columns of the final result, in which names may repeat: DataFusion requires distinct ones, so a repeated
/// name gets a suffix that no format shows. Columns of several tables differ by these.
pub fn name_outermost(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    name(&mut select.projection);
    let mut seen: HashMap<String, Vec<Option<String>>> = HashMap::new();
    for item in &mut select.projection {
        let (shown, table) = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => (ident.value.clone(), None),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                let Some((column, tables)) = parts.split_last() else { continue };
                (column.value.clone(), tables.last().map(|table| table.value.clone()))
            }
            SelectItem::ExprWithAlias { alias, .. } => (alias.value.clone(), None),
            _ => continue,
        };
        let others = seen.entry(shown.clone()).or_default();
        let is_repeated = others.iter().any(|other| other.is_none() || table.is_none() || *other == table);
        others.push(table);
        if is_repeated {
            let alias = Ident::with_quote('"', format!("{shown}\u{1}{}", others.len()));
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
                continue;
            };
            let expr = taken(expr);
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}
