//! Called by the fuzz targets and, with a fixed seed, by the tests.

pub use crate::trace::fuzzing::{statistics, traces};
