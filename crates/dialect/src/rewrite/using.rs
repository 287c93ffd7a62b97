//! `USING (k)` of an outer join: `k` has the value of the side that has a row, and `a.k` that of one side, which may
//! lack it. DataFusion has one column for both.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderBy, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Visit, VisitMut, Visitor, VisitorMut,
};

use super::joins;
use crate::error::{Error, Result};

/// Refuses a SELECT that qualifies such a column by a side that may lack the row.
///
/// # Errors
/// NOT_IMPLEMENTED.
pub fn check(select: &Select) -> Result<()> {
    let mut named = UsingColumns::of(select);
    if named.sides.is_empty() {
        return Ok(());
    }
    for item in &select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
            && let Some(table) = last(name)
            && let Some((_, column)) = named.sides.iter().find(|(side, _)| *side == table)
        {
            return Err(refused(&table, column));
        }
    }
    named.check(select)
}

/// Qualifies USING columns in WHERE, where DataFusion would find both sides': by a side that always has a row. After a
/// FULL JOIN there is none.
pub fn name_sides(select: &mut Select) {
    let [from] = select.from.as_slice() else { return };
    let Some(mut side) = joins::name_of(&from.relation) else { return };
    let mut columns = Vec::new();
    for (place, join) in from.joins.iter().enumerate() {
        use JoinOperator::{Inner, Join, Left, LeftOuter, Right, RightOuter};
        let JoinConstraint::Using(named) = (match &join.join_operator {
            Join(constraint) | Inner(constraint) | Left(constraint) | LeftOuter(constraint) => constraint,
            Right(constraint) | RightOuter(constraint) if from.joins.len() == 1 => {
                let Some(right) = joins::name_of(&join.relation) else { return };
                side = right;
                constraint
            }
            _ => return,
        }) else {
            continue;
        };
        // A later join's USING does not tell which of the tables before it a column belongs to.
        let named = named.iter().filter_map(last).filter(|column| place == 0 || columns.contains(column));
        columns = [Vec::from_iter(named), columns].concat();
    }
    if !columns.is_empty() {
        let conditions = [&mut select.prewhere, &mut select.selection];
        let mut sides = Sides { side, columns, parameters: Vec::new(), queries: 0 };
        for condition in conditions.into_iter().flatten() {
            let _ = VisitMut::visit(condition, &mut sides);
        }
    }
}

/// Qualifies the columns by a side.
struct Sides {
    side: Ident,
    columns: Vec<String>,
    /// Parameters of the enclosing lambdas.
    parameters: Vec<String>,
    queries: usize,
}

impl VisitorMut for Sides {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Lambda(lambda) = expr {
            self.parameters.extend(lambda.params.iter().map(|parameter| parameter.name.value.clone()));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Lambda(lambda) = expr {
            self.parameters.truncate(self.parameters.len() - lambda.params.iter().count());
        }
        if let Expr::Identifier(column) = expr
            && self.queries == 0
            && self.columns.contains(&column.value)
            && !self.parameters.contains(&column.value)
        {
            *expr = Expr::CompoundIdentifier(vec![self.side.clone(), column.clone()]);
        }
        ControlFlow::Continue(())
    }
}

/// Like [`check`], for an ORDER BY of the SELECT.
///
/// # Errors
/// NOT_IMPLEMENTED.
pub fn check_order(select: &Select, order_by: &OrderBy) -> Result<()> {
    UsingColumns::of(select).check(order_by)
}

fn refused(table: &str, column: &str) -> Error {
    Error::not_implemented(format!(
        "`{table}.{column}` is not known behind an outer join with USING ({column}): write `{column}` for the value of \
         whichever side has a row, or ON with = for that of one side"
    ))
}

fn last(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone())
}

/// Columns that must not be qualified by these sides.
struct UsingColumns {
    /// (table, column) pairs.
    sides: Vec<(String, String)>,
    queries: usize,
}

impl UsingColumns {
    fn of(select: &Select) -> Self {
        let mut named = Self { sides: Vec::new(), queries: 0 };
        for from in &select.from {
            let mut before = Vec::from_iter(joins::name_of(&from.relation).map(|name| name.value));
            for join in &from.joins {
                let own = joins::name_of(&join.relation).map(|name| name.value);
                named.add(join, &before, own.as_deref());
                before.extend(own);
            }
        }
        named
    }

    fn check(&mut self, part: &impl Visit) -> Result<()> {
        match part.visit(self) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    fn add(&mut self, join: &Join, before: &[String], own: Option<&str>) {
        use JoinOperator::{Anti, FullOuter, Left, LeftAnti, LeftOuter, Right, RightAnti, RightOuter};
        let (left, right, constraint) = match &join.join_operator {
            Left(constraint) | LeftOuter(constraint) | Anti(constraint) | LeftAnti(constraint) => {
                (false, true, constraint)
            }
            Right(constraint) | RightOuter(constraint) | RightAnti(constraint) => (true, false, constraint),
            FullOuter(constraint) => (true, true, constraint),
            _ => return,
        };
        let JoinConstraint::Using(columns) = constraint else { return };
        let tables = before.iter().map(String::as_str).filter(|_| left).chain(own.filter(|_| right));
        for table in tables {
            self.sides.extend(columns.iter().filter_map(last).map(|column| (table.to_owned(), column)));
        }
    }
}

impl Visitor for UsingColumns {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        if self.queries == 0
            && let Expr::CompoundIdentifier(parts) = expr
            && let [.., table, column] = parts.as_slice()
            && self.sides.iter().any(|(side, name)| *side == table.value && *name == column.value)
        {
            return ControlFlow::Break(refused(&table.value, &column.value));
        }
        ControlFlow::Continue(())
    }
}
