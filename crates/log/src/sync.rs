//! Locks and threads: the standard library's, or those of a model checker that tries interleavings
//! (`--features shuttle`, for tests).

#[cfg(not(feature = "shuttle"))]
pub use std::{sync, thread};

#[cfg(feature = "shuttle")]
pub use shuttle::{sync, thread};
