//! `LIMIT` and `OFFSET`: constants that count rows.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Value, visit_expressions};

use super::literals;
use crate::error::{Error, Result};

/// Turns the counts back into plain numbers: their literals were rewritten like values.
///
/// # Errors
/// NOT_IMPLEMENTED for `LIMIT .. BY` and for expressions that would need a query, INVALID_LIMIT_EXPRESSION for one that
/// is no number.
pub fn make(clause: &mut LimitClause) -> Result<()> {
    let counts: Vec<&mut Expr> = match clause {
        LimitClause::LimitOffset { limit_by, .. } if !limit_by.is_empty() => {
            return Err(Error::not_implemented(
                "LIMIT .. BY is not implemented: number the rows by row_number() OVER (PARTITION BY ..) in a subquery",
            ));
        }
        LimitClause::LimitOffset { limit, offset, .. } => {
            limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)).collect()
        }
        LimitClause::OffsetCommaLimit { offset, limit } => vec![offset, limit],
    };
    for count in counts {
        literals::undo(count);
        check(count)?;
    }
    Ok(())
}

fn check(count: &Expr) -> Result<()> {
    if let Expr::Nested(count) = count {
        return check(count);
    }
    if let Expr::Value(value) = count
        && matches!(value.value, Value::Null | Value::SingleQuotedString(_))
    {
        return Err(Error::invalid_limit_expression(format!(
            "The expression of LIMIT and OFFSET must be constant with numeric type. Actual: {value}"
        )));
    }
    let is_query = |expr: &Expr| match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    match visit_expressions(count, is_query) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::not_implemented(
            "LIMIT and OFFSET with a subquery are not implemented: write the number",
        )),
    }
}
