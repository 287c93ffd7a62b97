//! Carries a connection's messages, with time-outs: the library has none, and dropping a call that waits for an answer
//! would wait for its end.

use crate::error::{Code, DictError};
use crate::source::lost_connection::{io_cause, is_broken};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{self, Instant, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Error, Socket};

/// How long the server is waited for when it is told that the connection ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Classes of errors that concern a statement or a value: a feature that is not supported, cardinality, data, syntax
/// and access, limits of the program, PL/pgSQL.
const OF_REQUESTS: [&str; 6] = ["0A", "21", "22", "42", "54", "P0"];
/// Errors of these classes that concern all requests: no access, no such table, column or schema.
const OF_ALL: [SqlState; 4] = [
    SqlState::INSUFFICIENT_PRIVILEGE,
    SqlState::UNDEFINED_TABLE,
    SqlState::UNDEFINED_COLUMN,
    SqlState::INVALID_SCHEMA_NAME,
];

/// One connection.
pub(super) struct Session {
    pub client: Client,
    // Dropped after the client, whose last messages it carries.
    pub driver: Driver,
}

/// Carries the messages of a connection, while its client waits.
pub(super) struct Driver {
    runtime: Runtime,
    /// Ends with the connection, and says why.
    connection: JoinHandle<Result<(), Error>>,
    timeout: Duration,
    /// The deadline of the request that runs.
    deadline: Instant,
    /// The request that it was made for has not begun.
    is_new: bool,
    is_overdue: bool,
}

impl Session {
    /// Connects, within the time of the request that the connection is made for.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect<T>(config: &Config, tls: T, timeout: Duration) -> Result<Session, DictError>
    where
        T: MakeTlsConnect<Socket>,
        T::TlsConnect: Send,
        T::Stream: Send + 'static,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| DictError::new(Code::LimitExceeded, format!("no room for a connection: {e}")))?;
        let deadline = Instant::now() + timeout;
        let connected =
            runtime.block_on(async { time::timeout(timeout, config.connect(tls)).await }).map_err(|_| {
                let text = format!("no answer within {} ms", timeout.as_millis());
                DictError::new(Code::PostgresqlConnectionFailure, text)
            })?;
        let (client, connection) =
            connected.map_err(|e| DictError::new(Code::PostgresqlConnectionFailure, said(&e)))?;
        let connection = runtime.spawn(connection);
        let driver = Driver { runtime, connection, timeout, deadline, is_new: true, is_overdue: false };
        Ok(Session { client, driver })
    }
}

impl Driver {
    /// Begins a request, or a part of one that has a time of its own.
    pub fn begin(&mut self) {
        if !std::mem::take(&mut self.is_new) {
            self.deadline = Instant::now() + self.timeout;
        }
    }

    /// Waits for a part of the request.
    ///
    /// # Errors
    /// The server's, the connection's, or `TIMEOUT_EXCEEDED`.
    pub fn wait<T>(&mut self, work: impl Future<Output = Result<T, Error>>) -> Result<T, DictError> {
        let deadline = self.deadline;
        let Ok(outcome) = self.runtime.block_on(async { timeout_at(deadline, work).await }) else {
            self.is_overdue = true;
            let text = format!("PostgreSQL: no whole answer within {} ms", self.timeout.as_millis());
            return Err(DictError::new(Code::TimeoutExceeded, text));
        };
        outcome.map_err(|e| error(&self.end(e)))
    }

    /// The reason why the connection ended, if the error says that it did.
    fn end(&mut self, e: Error) -> Error {
        match e.is_closed() {
            true => match self.runtime.block_on(&mut self.connection) {
                Ok(Err(reason)) => reason,
                _ => e,
            },
            false => e,
        }
    }
}

impl Drop for Driver {
    /// The client is gone already: its last messages are sent, unless the server does not answer.
    fn drop(&mut self) {
        if !self.is_overdue && !self.connection.is_finished() {
            let connection = &mut self.connection;
            let _ = self.runtime.block_on(async { time::timeout(FAREWELL, connection).await });
        }
    }
}

/// An error of a server or a connection.
pub(super) fn error(e: &Error) -> DictError {
    let ends = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT];
    let is_broken = || e.is_closed() || io_cause(e).is_some_and(is_broken);
    let is_lost = e.code().map_or_else(is_broken, |code| ends.contains(code));
    let class = e.code().filter(|code| !OF_ALL.contains(code)).and_then(|code| code.code().get(..2));
    DictError::new(Code::PostgresqlConnectionFailure, format!("PostgreSQL: {}", said(e)))
        .of_request(class.is_some_and(|class| OF_REQUESTS.contains(&class)))
        .of_lost_connection(is_lost)
}

/// The server's message, or that of the connection.
fn said(e: &Error) -> String {
    match (e.as_db_error(), std::error::Error::source(e)) {
        (Some(server), _) => server.to_string(),
        (None, Some(cause)) => format!("{e}: {cause}"),
        (None, None) => e.to_string(),
    }
}
