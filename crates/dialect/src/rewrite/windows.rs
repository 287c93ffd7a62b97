//! Windows: how far a frame reaches is a count, not a value.

use datafusion::sql::sqlparser::ast::{Function, WindowFrameBound, WindowSpec, WindowType};

use super::literals;

/// Gives the frame of a function's window its plain numbers.
pub fn count_of(function: &mut Function) {
    if let Some(WindowType::WindowSpec(window)) = &mut function.over {
        count(window);
    }
}

/// Gives the frame of a window its plain numbers.
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
