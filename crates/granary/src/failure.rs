//! Errors that stop a demo, a study, or a command on volumes.

use std::process::ExitCode;

/// The first thing that went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Sql(#[from] granary_sql::Error),
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Peer(#[from] granary_lab::PeerError),
    #[error(transparent)]
    Cache(#[from] granary_lab::OpenError),
    #[error(transparent)]
    Trace(#[from] granary_lab::trace::TraceError),
    #[error(transparent)]
    Plot(#[from] granary_lab::PlotError),
    #[error(transparent)]
    Compression(#[from] granary_lab::compression::StudyError),
    #[error(transparent)]
    Store(#[from] granary_lab::store::StoreError),
    #[error("{0}{hint}", hint = crate::volume::hint(.0))]
    Volume(#[from] granary_volume::Error),
    #[error(transparent)]
    Nbd(#[from] granary_nbd::ServerError),
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    #[error("{0}")]
    Argument(String),
    #[error("it answered {0:?}, which is not what was asked for")]
    Answer(String),
}

/// The result of commands.
pub type Result<T> = std::result::Result<T, Failure>;

/// Adds the file's path to an error.
pub fn at(path: &std::path::Path) -> impl Fn(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::File(path.clone(), error)
}

/// Shows a failure and gives the exit status.
pub fn exit(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain!("{failure}");
            ExitCode::FAILURE
        }
    }
}
