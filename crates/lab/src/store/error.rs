//! Errors of the study.

/// A store that cannot be loaded or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A cache cannot be opened.
    #[error(transparent)]
    Open(#[from] granary_cache::OpenError),
    /// A malformed or incomplete JSON request or answer.
    #[error("a request or an answer of a measurement: {0}")]
    Json(#[from] serde_json::Error),
    /// A file or process failed.
    #[error("{0}: {1}")]
    Process(String, String),
    /// A process cannot be limited, though others were.
    #[error("no memory cgroup for a process: {0}")]
    Limit(std::io::Error),
    /// A store does not hold the values that were put.
    #[error("{0}")]
    Wrong(String),
    /// A plot cannot be drawn.
    #[error(transparent)]
    Plot(#[from] crate::PlotError),
}
