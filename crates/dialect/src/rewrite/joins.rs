//! Joins with at most one partner (ANY, SEMI) or with none (ANTI), built from DataFusion's. Unlike DataFusion's own
//! they have the columns of both sides.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Select, SetExpr,
    Statement, TableAlias, TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::{Error, Result};

/// Which rows of a side take part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SideRows {
    All,
    /// One row of each key.
    OneOfEach,
    None,
    /// Rows without a partner.
    Unmatched,
}

/// The rows of each side, and the join that is made of them.
struct JoinShape {
    left: SideRows,
    right: SideRows,
    operator: fn(JoinConstraint) -> JoinOperator,
}

/// Rewrites the joins of a SELECT to DataFusion's. GLOBAL stands for ANY, which the parser cannot represent
/// (`statement::preprocess` writes it so).
pub fn make(select: &mut Select) -> Result<()> {
    select.from.iter_mut().try_for_each(tables)
}

fn tables(from: &mut TableWithJoins) -> Result<()> {
    for place in 0..from.joins.len() {
        let (earlier, later) = from.joins.split_at_mut(place);
        let join = &mut later[0];
        let is_any = std::mem::take(&mut join.global);
        if let JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin =
            join.join_operator
        {
            return Err(Error::not_implemented(
                "ARRAY JOIN is not implemented: write arrayJoin(array) AS item among the columns of SELECT",
            ));
        }
        let Some((made, constraint)) = made(&join.join_operator, is_any) else { continue };
        if made.left != SideRows::All && !earlier.is_empty() {
            return Err(Error::not_implemented(
                "ANY, SEMI and ANTI of a left side that is joined itself: put it into a subquery",
            ));
        }
        let (left, right) = (from.relation.clone(), join.relation.clone());
        from.relation = chosen(made.left, &left, &right, &constraint)?;
        join.relation = chosen(made.right, &right, &left, &constraint)?;
        join.join_operator = (made.operator)(constraint);
    }
    Ok(())
}

fn made(operator: &JoinOperator, is_any: bool) -> Option<(JoinShape, JoinConstraint)> {
    use JoinOperator::{
        Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, Right, RightAnti, RightOuter, RightSemi,
    };
    use SideRows::{All, OneOfEach, Unmatched};
    let (left, right, made, constraint): (_, _, fn(JoinConstraint) -> JoinOperator, _) = match operator {
        Left(constraint) | LeftOuter(constraint) if is_any => (All, OneOfEach, Left, constraint),
        Right(constraint) | RightOuter(constraint) if is_any => (OneOfEach, All, Right, constraint),
        Join(constraint) | Inner(constraint) if is_any => (OneOfEach, OneOfEach, Inner, constraint),
        LeftSemi(constraint) => (All, OneOfEach, Inner, constraint),
        RightSemi(constraint) => (OneOfEach, All, Inner, constraint),
        LeftAnti(constraint) => (Unmatched, SideRows::None, Left, constraint),
        RightAnti(constraint) => (SideRows::None, Unmatched, Right, constraint),
        _ => return None,
    };
    Some((JoinShape { left, right, operator: made }, constraint.clone()))
}

/// A side of a join as a query for its wanted rows, under its own name.
fn chosen(
    rows: SideRows,
    side: &TableFactor,
    other: &TableFactor,
    constraint: &JoinConstraint,
) -> Result<TableFactor> {
    match rows {
        SideRows::All => Ok(side.clone()),
        SideRows::None => subquery("SELECT * FROM x WHERE false", side, Vec::new()),
        SideRows::OneOfEach => subquery("SELECT DISTINCT ON (x) * FROM x", side, keys(side, constraint)?),
        SideRows::Unmatched => {
            let join_operator = JoinOperator::LeftAnti(constraint.clone());
            let join = Join { relation: other.clone(), global: false, join_operator };
            let table_with_joins = TableWithJoins { relation: side.clone(), joins: vec![join] };
            Ok(TableFactor::NestedJoin { table_with_joins: Box::new(table_with_joins), alias: None })
        }
    }
}

/// A query over a side; `keys` are those of DISTINCT ON, if it has one.
fn subquery(template: &str, side: &TableFactor, keys: Vec<Expr>) -> Result<TableFactor> {
    let parsed = Parser::parse_sql(&GenericDialect {}, template);
    let parsed = parsed.map_err(|error| Error::logical_error(error.to_string()))?.pop();
    let (Some(Statement::Query(mut query)), Some(name)) = (parsed, name_of(side)) else {
        return Err(Error::not_implemented("ANY, SEMI and ANTI need a name for each side of the join"));
    };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from[0].relation = side.clone();
        if !keys.is_empty() {
            select.distinct = Some(Distinct::On(keys));
        }
    }
    let alias = TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    Ok(TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None })
}

/// The name of a side.
pub fn name_of(side: &TableFactor) -> Option<Ident> {
    match side {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.clone())
        }
        TableFactor::Table { name, .. } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

/// Whether a SELECT is from several tables.
pub fn has_joins(select: &Select) -> bool {
    select.from.len() > 1 || select.from.iter().any(|from| !from.joins.is_empty())
}

/// The columns of a side that a join compares.
fn keys(side: &TableFactor, constraint: &JoinConstraint) -> Result<Vec<Expr>> {
    let mut names = HashSet::new();
    let mut keys = compared_columns(side, constraint)?;
    // DISTINCT ON of one column twice would show the others in each other's places.
    keys.retain(|key| match key {
        Expr::Identifier(column) => names.insert(column.value.clone()),
        Expr::CompoundIdentifier(parts) => {
            parts.last().is_none_or(|column| names.insert(column.value.clone()))
        }
        _ => true,
    });
    Ok(keys)
}

/// The columns of a side as a join compares them, some perhaps twice.
fn compared_columns(side: &TableFactor, constraint: &JoinConstraint) -> Result<Vec<Expr>> {
    let unclear = || {
        Error::not_implemented("ANY and SEMI need USING, or ON with = between columns that name their table")
    };
    match constraint {
        JoinConstraint::Using(names) => {
            let key = |name: &ObjectName| {
                name.0.last().and_then(|part| part.as_ident()).cloned().map(Expr::Identifier)
            };
            names.iter().map(|name| key(name).ok_or_else(unclear)).collect()
        }
        JoinConstraint::On(condition) => {
            let name = name_of(side).ok_or_else(unclear)?;
            let mut compared = Vec::new();
            if !equalities(condition, &mut compared) {
                return Err(unclear());
            }
            let is_ours = |expr: &&Expr| {
                matches!(expr, Expr::CompoundIdentifier(parts)
                if parts.len() > 1 && parts[parts.len() - 2].value == name.value)
            };
            let key = |(left, right): (&Expr, &Expr)| {
                [left, right].into_iter().find(is_ours).cloned().ok_or_else(unclear)
            };
            compared.into_iter().map(key).collect()
        }
        JoinConstraint::Natural | JoinConstraint::None => Err(unclear()),
    }
}

/// Whether a condition is only `a = b AND ..`; collects the compared pairs.
fn equalities<'a>(condition: &'a Expr, compared: &mut Vec<(&'a Expr, &'a Expr)>) -> bool {
    match condition {
        Expr::Nested(inner) => equalities(inner, compared),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            equalities(left, compared) && equalities(right, compared)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            compared.push((left, right));
            true
        }
        _ => false,
    }
}
