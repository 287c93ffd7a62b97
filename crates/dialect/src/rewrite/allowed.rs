//! Checks that a query uses only functions named in [`crate::functions::names`], and operators and syntax that
//! ClickHouse has. Runs on the query as written, before any rewriting.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, CastKind, Expr, Function, Query, TableFactor, UnaryOperator, Visit, Visitor,
};

use super::syntax::name_of;
use crate::error::{Error, Result};
use crate::functions::names::{self, Implementation};

/// Checks all expressions of a statement.
///
/// # Errors
/// UNKNOWN_FUNCTION, SYNTAX_ERROR.
pub fn check(statement: &impl Visit) -> Result<()> {
    match statement.visit(&mut Allowed) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Allowed;

impl Visitor for Allowed {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        match query.locks.first() {
            Some(lock) => ControlFlow::Break(unknown_syntax(&lock.to_string())),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::Derived { lateral: true, .. } | TableFactor::Function { lateral: true, .. } => {
                ControlFlow::Break(unknown_syntax("LATERAL"))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        match refusal(expr) {
            Some(error) => ControlFlow::Break(error),
            None => ControlFlow::Continue(()),
        }
    }
}

fn refusal(expr: &Expr) -> Option<Error> {
    let refused = match expr {
        Expr::Function(function) => return unknown(function),
        Expr::BinaryOp { op, .. } if !is_operator(op) => op.to_string(),
        Expr::UnaryOp { op, .. } if !matches!(op, UnaryOperator::Minus | UnaryOperator::Not) => {
            format!("unary {op}")
        }
        Expr::BinaryOp { .. } | Expr::UnaryOp { .. } => return None,
        Expr::SimilarTo { .. } => "SIMILAR TO".into(),
        Expr::RLike { .. } => "RLIKE".into(),
        Expr::Like { escape_char: Some(_), .. } | Expr::ILike { escape_char: Some(_), .. } => "ESCAPE".into(),
        Expr::Like { any: true, .. } | Expr::ILike { any: true, .. } => "LIKE ANY".into(),
        Expr::AtTimeZone { .. } => "AT TIME ZONE".into(),
        Expr::Overlay { .. } => "OVERLAY".into(),
        Expr::Collate { .. } => "COLLATE".into(),
        Expr::AnyOp { .. } | Expr::AllOp { .. } => "ANY and ALL".into(),
        Expr::IsUnknown(_) | Expr::IsNotUnknown(_) => "IS UNKNOWN".into(),
        Expr::IsTrue(_) | Expr::IsNotTrue(_) | Expr::IsFalse(_) | Expr::IsNotFalse(_) => "IS TRUE".into(),
        Expr::Cast { kind: CastKind::TryCast, .. } => return Some(names::unknown("TRY_CAST")),
        Expr::Cast { kind: CastKind::SafeCast, .. } => return Some(names::unknown("SAFE_CAST")),
        Expr::Cast { format: Some(_), .. } => "FORMAT within CAST".into(),
        Expr::Cast { array: true, .. } => "ARRAY behind the type of a CAST".into(),
        Expr::Array(Array { named: true, .. }) => {
            return Some(Error::syntax_error(
                "Syntax error: ARRAY before [ is not known: an array is [1, 2], and an element of a column of that name \
                 is \"array\"[1]",
            ));
        }
        Expr::IsNormalized { .. } => "IS NORMALIZED".into(),
        Expr::JsonAccess { .. } => "access to JSON".into(),
        Expr::Convert { .. } => "CONVERT".into(),
        Expr::InUnnest { .. } => "IN UNNEST".into(),
        Expr::Struct { .. } | Expr::Named { .. } => "STRUCT".into(),
        Expr::Dictionary(_) => "{}".into(),
        Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => "GROUPING SETS".into(),
        Expr::MatchAgainst { .. } => "MATCH AGAINST".into(),
        Expr::MemberOf(_) => "MEMBER OF".into(),
        _ => return None,
    };
    Some(unknown_syntax(&refused))
}

fn unknown_syntax(refused: &str) -> Error {
    Error::syntax_error(format!("Syntax error: {refused} is not known"))
}

fn unknown(function: &Function) -> Option<Error> {
    match name_of(function) {
        Some(name)
            if function.over.is_none()
                && names::find(name).is_some_and(|known| known.by == Implementation::Window) =>
        {
            Some(names::unknown(name))
        }
        Some(name) if names::find(name).or_else(|| names::find_conditional(name)).is_some() => None,
        Some(name) => Some(names::unknown(name)),
        None => Some(names::unknown(&function.name.to_string())),
    }
}

fn is_operator(op: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(
        op,
        Plus | Minus
            | Multiply
            | Divide
            | Modulo
            | MyIntegerDivide
            | StringConcat
            | Eq
            | NotEq
            | Lt
            | LtEq
            | Gt
            | GtEq
            | Spaceship
            | And
            | Or
    )
}
