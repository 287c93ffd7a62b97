//! Traces: streams of recorded requests, and streams drawn from published statistics.
//!
//! [`Trace::open`] detects the format of a file and returns a [`Trace`]: its requests in order, and a [`Label`] that
//! says how much of them is real. Nothing is read ahead; memory does not grow with the file.

mod error;
pub(crate) mod fuzzing;
pub mod generate;
mod lines;
mod open;
mod packed;
mod read;
mod records;
mod request;
pub(crate) mod sizes;

pub use error::TraceError;
pub use open::{Format, Source};
pub use request::{Label, Operation, Request, Trace};
