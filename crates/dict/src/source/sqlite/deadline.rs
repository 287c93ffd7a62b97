//! How long a request may take: SQLite works on the thread that asks, and looks at the clock now and then.

use crate::error::{Code, DictError};
use rusqlite::{Connection, ErrorCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Instructions of SQLite's machine between two looks at the clock: some tenths of a millisecond.
const LOOK_EVERY: i32 = 10_000;

/// The deadline of the request that a connection runs.
pub(super) struct Deadline {
    opened: Instant,
    timeout: Duration,
    /// Milliseconds since the connection was opened.
    ends: Arc<AtomicU64>,
}

impl Deadline {
    pub fn of(connection: &mut Connection, timeout: Duration) -> rusqlite::Result<Deadline> {
        let (opened, ends) = (Instant::now(), Arc::<AtomicU64>::default());
        let deadline = Deadline { opened, timeout, ends: Arc::clone(&ends) };
        deadline.begin();
        let is_over = move || milliseconds(opened.elapsed()) > ends.load(Ordering::Relaxed);
        connection.progress_handler(LOOK_EVERY, Some(is_over))?;
        Ok(deadline)
    }

    /// Begins a request, which has `timeout`.
    pub fn begin(&self) {
        self.ends.store(milliseconds(self.opened.elapsed() + self.timeout), Ordering::Relaxed);
    }

    /// SQLite's error, or that it took too long.
    pub fn error(&self, e: rusqlite::Error) -> DictError {
        match e.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => {
                let text = format!("SQLite: no whole answer within {} ms", self.timeout.as_millis());
                DictError::new(Code::TimeoutExceeded, text)
            }
            _ => error(e),
        }
    }
}

/// SQLite's error.
pub(super) fn error(e: rusqlite::Error) -> DictError {
    let is_of_statement = e.sqlite_error_code().is_none_or(|code| {
        matches!(
            code,
            ErrorCode::Unknown | ErrorCode::TooBig | ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange
        )
    });
    DictError::new(Code::SqliteEngineError, format!("SQLite: {e}")).of_request(is_of_statement)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
