//! Connections that servers end while nobody uses them (wait_timeout, idle_session_timeout, timeout): the next request
//! is told.

use std::error::Error;
use std::io::{self, ErrorKind};

/// Whether the other side has ended a connection.
pub(super) fn is_broken(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::BrokenPipe
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::UnexpectedEof
    )
}

/// What the system said, where that is the cause of a client's error.
pub(super) fn io_cause(e: &dyn Error) -> Option<&io::Error> {
    e.source()?.downcast_ref()
}
