//! Windows: those derived from named ones, and frames, where the distance of a bound is a count, not a value.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, NamedWindowDefinition, NamedWindowExpr, Query, Select, VisitMut, VisitorMut,
    WindowFrameBound, WindowSpec, WindowType,
};

use super::{flow, literals};
use crate::error::{Error, Result};

/// Completes the windows of a SELECT that are derived from its named ones, as in `OVER (w ORDER BY x)`. DataFusion
/// ignores the name.
///
/// # Errors
/// There is no such window, or it cannot be derived from.
pub fn derive(select: &mut Select) -> Result<()> {
    select.named_window = named(select)?;
    let known = select.named_window.clone();
    derive_in(&mut select.projection, &known)?;
    derive_in(&mut select.qualify, &known)?;
    derive_in(&mut select.sort_by, &known)
}

/// Completes the windows of expressions beside a SELECT, those of ORDER BY, from the named ones of it.
///
/// # Errors
/// The errors of [`derive`].
pub fn derive_beside(select: &Select, part: &mut impl VisitMut) -> Result<()> {
    derive_in(part, &named(select)?)
}

/// The named windows, each completed from those before it.
fn named(select: &Select) -> Result<Vec<NamedWindowDefinition>> {
    let mut known: Vec<NamedWindowDefinition> = Vec::new();
    for NamedWindowDefinition(name, window) in &select.named_window {
        let mut window = window.clone();
        if let NamedWindowExpr::WindowSpec(window) = &mut window {
            complete(window, &known)?;
        }
        known.push(NamedWindowDefinition(name.clone(), window));
    }
    Ok(known)
}

fn derive_in(part: &mut impl VisitMut, known: &[NamedWindowDefinition]) -> Result<()> {
    match part.visit(&mut Deriving { known, depth: 0 }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Completes windows outside of subqueries, which have named windows of their own.
struct Deriving<'a> {
    known: &'a [NamedWindowDefinition],
    depth: usize,
}

impl VisitorMut for Deriving<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.depth == 0
            && let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(window)) = &mut function.over
        {
            return flow(complete(window, self.known));
        }
        ControlFlow::Continue(())
    }
}

/// Gives a window what the one that it names has.
fn complete(window: &mut WindowSpec, known: &[NamedWindowDefinition]) -> Result<()> {
    let Some(name) = window.window_name.take() else { return Ok(()) };
    let is_meant = |definition: &&NamedWindowDefinition| definition.0.value == name.value;
    let parent = known.iter().find(is_meant).map(|NamedWindowDefinition(_, parent)| parent);
    let Some(NamedWindowExpr::WindowSpec(parent)) = parent else {
        return Err(Error::bad_arguments(format!("Window '{}' is not defined", name.value)));
    };
    let refused = if parent.window_frame.is_some() {
        Some("has a frame")
    } else if !window.partition_by.is_empty() {
        Some("cannot be given another PARTITION BY")
    } else if !window.order_by.is_empty() && !parent.order_by.is_empty() {
        Some("cannot be given another ORDER BY")
    } else {
        None
    };
    if let Some(why) = refused {
        let what = format!("No window can be derived from '{}' here: it {why}", name.value);
        return Err(Error::bad_arguments(what));
    }
    window.partition_by.clone_from(&parent.partition_by);
    if window.order_by.is_empty() {
        window.order_by.clone_from(&parent.order_by);
    }
    Ok(())
}

/// Turns the distances of a function's window frame into plain numbers.
///
/// # Errors
/// The window is derived from a named one where that is not known.
pub fn count_of(function: &mut Function) -> Result<()> {
    if let Some(WindowType::WindowSpec(window)) = &mut function.over {
        if let Some(name) = &window.window_name {
            let what = format!("A window that is derived from '{}' is not known here", name.value);
            return Err(Error::not_implemented(what));
        }
        count(window);
    }
    Ok(())
}

/// Turns the distances of a window's frame into plain numbers.
pub fn count(window: &mut WindowSpec) {
    let Some(frame) = &mut window.window_frame else { return };
    for bound in [Some(&mut frame.start_bound), frame.end_bound.as_mut()].into_iter().flatten() {
        if let WindowFrameBound::Preceding(Some(distance)) | WindowFrameBound::Following(Some(distance)) =
            bound
        {
            literals::undo(distance);
        }
    }
}
