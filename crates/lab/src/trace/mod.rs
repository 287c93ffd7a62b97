//! Traces: streams of requests that were recorded, and streams drawn from published statistics.
//!
//! [`Trace::open`] finds out what a file is and gives a [`Trace`]: its requests, one after the other, and a
//! [`Label`] that says how much of them is real. Nothing is read ahead; memory does not grow with the file.

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
