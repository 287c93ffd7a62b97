//! The scale of the study.

use std::time::Duration;

/// How the source is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its process ends and its connections break; later it is started again.
    Stopped,
    /// It accepts requests and answers none; later it resumes.
    Paused,
}

/// When the source fails and when it returns, as parts of the whole time.
pub const FAULTS: [(Fault, f64, f64); 4] = [
    (Fault::Stopped, 0.10, 0.15),
    (Fault::Paused, 0.30, 0.33),
    (Fault::Stopped, 0.50, 0.60),
    (Fault::Paused, 0.75, 0.78),
];

/// Counts.
pub struct OutageStudySize {
    /// Whether the figures are meaningless.
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

impl OutageStudySize {
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

    /// Enough for every kind of fault.
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
