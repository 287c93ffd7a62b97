//! `x BETWEEN 1 AND y = 2` is `x BETWEEN 1 AND (y = 2)` in ClickHouse, where comparisons, IN and LIKE bind more
//! tightly; the parser gives them equal precedence, from left to right.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, VisitMut, VisitorMut};

use super::syntax::taken;

/// Moves what follows a BETWEEN into its upper bound, everywhere in a statement or expression.
pub fn regroup(tree: &mut impl VisitMut) {
    struct Bounds;
    impl VisitorMut for Bounds {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            give_to_bound(expr);
            ControlFlow::Continue(())
        }
    }
    let _ = tree.visit(&mut Bounds);
}

/// A BETWEEN in parentheses stays as it is.
fn give_to_bound(expr: &mut Expr) {
    let Some(first) = first_side(expr).filter(|side| matches!(side, Expr::Between { .. })) else { return };
    let mut between = taken(first);
    if let Expr::Between { high, .. } = &mut between {
        *first = taken(high);
        **high = taken(expr);
    }
    *expr = between;
}

/// Returns the left operand of a comparison, of IN or of LIKE.
fn first_side(expr: &mut Expr) -> Option<&mut Expr> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    match expr {
        Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, .. } => Some(left),
        Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::RLike { expr, .. } => Some(expr),
        _ => None,
    }
}
