//! UNION, INTERSECT and EXCEPT. Clauses after them (ORDER BY, LIMIT) belong to the last SELECT in ClickHouse, and to
//! the whole in SQL.

use datafusion::sql::sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier, Table};

use crate::error::{Error, Result};

/// Moves the clauses after the last SELECT into it.
///
/// # Errors
/// EXPECTED_ALL_OR_DISTINCT after a UNION; SYNTAX_ERROR if that SELECT is in parentheses: the clauses belong to nothing
/// then.
pub fn make(query: &mut Query) -> Result<()> {
    quantify(&mut query.body)?;
    let has_tail = query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some();
    if !has_tail || !matches!(query.body.as_ref(), SetExpr::SetOperation { .. } | SetExpr::Query(_)) {
        return Ok(());
    }
    let (order_by, limit_clause, fetch) =
        (query.order_by.take(), query.limit_clause.take(), query.fetch.take());
    let mut last = query.body.as_mut();
    while let SetExpr::SetOperation { right, .. } = last {
        last = right.as_mut();
    }
    if matches!(last, SetExpr::Query(_)) {
        return Err(Error::syntax_error(
            "Syntax error: ORDER BY and LIMIT are of the SELECT before them, or the last one of a UNION, and that is in \
             parentheses: put them into these, or all that is before them into a subquery",
        ));
    }
    let nothing = SetExpr::Table(Box::new(Table { table_name: None, schema_name: None }));
    let body = Box::new(std::mem::replace(last, nothing));
    *last = SetExpr::Query(Box::new(Query {
        with: None,
        body,
        order_by,
        limit_clause,
        fetch,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }));
    Ok(())
}

/// INTERSECT and EXCEPT keep repeated rows unless they say DISTINCT; a UNION must say which it is.
fn quantify(set: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = set else { return Ok(()) };
    match (&*op, &*set_quantifier) {
        (SetOperator::Union, SetQuantifier::None) => {
            return Err(Error::expected_all_or_distinct(
                "Expected ALL or DISTINCT after UNION. Write `UNION ALL` to keep duplicate rows or `UNION DISTINCT` to \
                 remove them",
            ));
        }
        (_, SetQuantifier::None) => *set_quantifier = SetQuantifier::All,
        _ => {}
    }
    quantify(left)?;
    quantify(right)
}
