//! Connections that servers close while they are idle (wait_timeout, idle_session_timeout, timeout): the next request
//! gets an error.

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

/// The I/O error that caused a client's error, if one did.
pub(super) fn io_cause(e: &dyn Error) -> Option<&io::Error> {
    e.source()?.downcast_ref()
}
