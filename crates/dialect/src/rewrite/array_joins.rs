//! `arrayJoin`: DataFusion unnests several arrays side by side, where ClickHouse forms their cross product.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Query, Select, SelectItem, Visit, Visitor};

use super::syntax::name_of;
use crate::error::{Error, Result};

/// Refuses a SELECT with several arrayJoins, unless one unnests another's items.
///
/// # Errors
/// NOT_IMPLEMENTED.
pub fn check(select: &Select) -> Result<()> {
    let mut calls = Calls { found: Vec::new(), queries: 0 };
    // The visitor never breaks.
    for item in &select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let _ = Visit::visit(expr, &mut calls);
        }
    }
    if let GroupByExpr::Expressions(expressions, _) = &select.group_by {
        for expr in expressions {
            let _ = Visit::visit(expr, &mut calls);
        }
    }
    let mut found = calls.found;
    found.sort_unstable_by_key(String::len);
    match found.windows(2).all(|pair| pair[1].contains(&pair[0])) {
        true => Ok(()),
        false => Err(Error::not_implemented(
            "Several arrays in arrayJoin of one SELECT are not joined with each other here: put one arrayJoin into a \
             subquery, and the other around it",
        )),
    }
}

/// The calls of a SELECT, without those of its subqueries.
struct Calls {
    found: Vec<String>,
    queries: usize,
}

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && self.queries == 0
            && name_of(function) == Some("arrayJoin")
        {
            self.found.push(expr.to_string());
        }
        ControlFlow::Continue(())
    }
}
