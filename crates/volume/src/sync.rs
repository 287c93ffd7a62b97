//! Atomics: the standard library's, or those of a model checker that tries interleavings
//! (`--features shuttle`, for tests).

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic;

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::atomic;
