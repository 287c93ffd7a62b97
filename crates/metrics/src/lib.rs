//! Latencies that are counted as they happen and read while counting goes on.

#![forbid(unsafe_code)]

mod latency;

pub use latency::{LATENCY_BUCKETS, Latency, Stopwatch};
