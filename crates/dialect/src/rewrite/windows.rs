//! Window frames: the distance of a bound is a count, not a value.

use datafusion::sql::sqlparser::ast::{Function, WindowFrameBound, WindowSpec, WindowType};

use super::literals;

/// Turns the distances of a function's window frame into plain numbers.
pub fn count_of(function: &mut Function) {
    if let Some(WindowType::WindowSpec(window)) = &mut function.over {
        count(window);
    }
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
