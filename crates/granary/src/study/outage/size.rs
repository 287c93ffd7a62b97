//! How much of everything the study does.

use std::time::Duration;

/// How long the source is away, and in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its process ends and its connections break; then it is started again.
    Stopped,
    /// It takes requests and answers none; then it goes on.
    Paused,
}

/// When the source fails, and when it comes back, as parts of the whole time.
pub const FAULTS: [(Fault, f64, f64); 4] = [
    (Fault::Stopped, 0.10, 0.15),
    (Fault::Paused, 0.30, 0.33),
    (Fault::Stopped, 0.50, 0.60),
    (Fault::Paused, 0.75, 0.78),
];

/// Counts.
pub struct Size {
    /// Whether the figures mean nothing.
    pub is_quick: bool,
    pub time: Duration,
    /// Connections, half of which speak SQL.
    pub connections: usize,
    /// Rows of the table.
    pub rows: u64,
    /// Keys that are cached before the source fails.
    pub warm: u64,
    /// Keys of the dictionaries whose entries live for seconds.
    pub short: u64,
}

impl Size {
    pub fn full(seconds: u64, connections: usize) -> Self {
        Self {
            is_quick: false,
            time: Duration::from_secs(seconds),
            connections,
            rows: 1_000_000,
            warm: 200_000,
            short: 20_000,
        }
    }

    /// Enough to see every kind of fault.
    pub fn quick(connections: usize) -> Self {
        Self {
            is_quick: true,
            time: Duration::from_secs(24),
            connections,
            rows: 50_000,
            warm: 10_000,
            short: 2_000,
        }
    }
}
