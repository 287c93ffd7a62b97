//! Elements of tuples: `t.1`, `dictGet(...).name`, `(1, 2).2` become calls of `tupleElement`.
//! [`crate::statement::preprocess`] puts positions in single quotes; after a column's name comes a position or an
//! element's name.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Ident, Value, VisitMut, VisitorMut};

use super::syntax::{argument_mut, arguments_mut, call, name_of, string, taken};

/// Turns all elements of a statement or expression into calls.
pub fn make_calls(tree: &mut impl VisitMut) {
    struct Elements;
    impl VisitorMut for Elements {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            make_call(expr);
            ControlFlow::Continue(())
        }
    }
    let _ = tree.visit(&mut Elements);
}

fn is_place(ident: &Ident) -> bool {
    ident.quote_style == Some('\'')
}

fn make_call(expr: &mut Expr) {
    let (mut column, elements, root) = match expr {
        Expr::CompoundIdentifier(parts) if parts.iter().any(is_place) => (parts.clone(), vec![], None),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let name = |access: &AccessExpr| match access {
                AccessExpr::Dot(Expr::Identifier(ident)) => Some(ident.clone()),
                AccessExpr::Dot(_) | AccessExpr::Subscript(_) => None,
            };
            let Some(elements) = access_chain.iter().map(name).collect::<Option<Vec<_>>>() else { return };
            match root.as_mut() {
                Expr::Identifier(ident) => ([vec![ident.clone()], elements].concat(), vec![], None),
                Expr::CompoundIdentifier(parts) => ([parts.clone(), elements].concat(), vec![], None),
                root => (vec![], elements, Some(taken(root))),
            }
        }
        _ => return,
    };
    // Names before the first position are those of a column, its table and database.
    let of_column = column.iter().position(is_place).unwrap_or(column.len());
    let elements = [column.split_off(of_column), elements].concat();
    let whole = match (root, column.len()) {
        (Some(root), _) => root,
        (None, 1) => Expr::Identifier(column.remove(0)),
        (None, _) => Expr::CompoundIdentifier(column),
    };
    *expr = elements.into_iter().fold(whole, |whole, element| {
        let element = match is_place(&element) {
            true => Expr::value(Value::Number(element.value, false)),
            false => string(&element.value),
        };
        call("tupleElement", vec![whole, element])
    });
}

/// A position is passed as text, which is a literal when the query is planned; numbers would get a type.
pub fn quote_place(expr: &mut Expr) {
    if let Expr::Function(function) = expr
        && name_of(function) == Some("tupleElement")
        && let Some(place) = arguments_mut(function).and_then(|all| all.get_mut(1)).and_then(argument_mut)
        && let Expr::Value(value) = place
        && let Value::Number(digits, false) = &value.value
    {
        *place = string(digits);
    }
}
