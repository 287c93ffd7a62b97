//! The client of a dictionary: its driver keeps a pool of connections and looks after the servers, in a runtime that
//! nothing else runs in.

use super::uri::Target;
use crate::config::Values;
use crate::error::{Code, DictError};
use crate::limits;
use crate::source::select::Updates;
use crate::source::tls::Trusted;
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{ClientOptions, Tls};
use mongodb::{Client, Collection};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The search for servers takes 1/SELECTION_PART of a request's time, so that its lookup has time to report it.
const SELECTION_PART: u32 = 4;
/// MaxTimeMSExpired.
const OVERDUE: i32 = 50;
/// The codes of errors that say nothing of what was asked: a host that is not reached (6, 7, 89, 9001), no access (13,
/// 18), a server that ends or is no primary (91, 189, 10107, 11600, 11602, 13435, 13436), a limit on time (50, 262).
const OUTAGES: [i32; 15] = [6, 7, 13, 18, 50, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436];

/// The driver is asynchronous inside: its connections wait for each other on one thread, whatever the number of
/// dictionaries, and every request on the thread of who makes it.
static RUNTIME: LazyLock<Result<Runtime, String>> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).thread_name("granary-mongodb").enable_all().build().map_err(|e| e.to_string())
});

/// The runtime.
///
/// # Errors
/// `LIMIT_EXCEEDED` if there is no thread for it.
pub(super) fn runtime() -> Result<&'static Runtime, DictError> {
    RUNTIME
        .as_ref()
        .map_err(|e| DictError::new(Code::LimitExceeded, format!("MongoDB: no thread for it: {e}")))
}

/// Where the servers are; connections share one client while there are any.
pub(super) struct MongodbServer {
    target: Target,
    pub collection: String,
    pub updates: Option<Updates>,
    /// File of the certificate authorities that TLS trusts, if one is named.
    authorities: Option<PathBuf>,
    pub timeout: Duration,
    /// Bytes of an answer that is read whole.
    pub answer_bytes_max: u64,
    client: Mutex<Weak<SharedClient>>,
}

/// A client in use.
pub(super) struct SharedClient {
    /// `None` only while it is dropped.
    client: Option<Client>,
    database: String,
}

impl MongodbServer {
    pub fn new(
        target: Target,
        values: &Values,
        authorities: Option<PathBuf>,
        timeout: Duration,
        answer_bytes_max: u64,
    ) -> MongodbServer {
        MongodbServer {
            target,
            collection: values.text("COLLECTION").to_string(),
            updates: Updates::of(values),
            authorities,
            timeout,
            answer_bytes_max,
            client: Mutex::default(),
        }
    }

    /// The client, made anew if none is in use.
    pub(super) fn connected(&self) -> Result<Arc<SharedClient>, DictError> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connected) = client.upgrade() {
            return Ok(connected);
        }
        let connected = Arc::new(self.connect()?);
        *client = Arc::downgrade(&connected);
        Ok(connected)
    }

    /// Later connections get another client: what this one knows of servers and certificates may be old.
    pub(super) fn forget(&self, connected: &Arc<SharedClient>) {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if std::ptr::eq(client.as_ptr(), Arc::as_ptr(connected)) {
            *client = Weak::new();
        }
    }

    fn connect(&self) -> Result<SharedClient, DictError> {
        let connection = self.target.connection.clone();
        let runtime = runtime()?;
        let _inside = runtime.enter();
        let mut options =
            runtime.block_on(async { ClientOptions::parse(connection).await }).map_err(|e| error(&e))?;
        options.app_name.get_or_insert_with(|| "granary".into());
        options.connect_timeout.get_or_insert(CONNECT_TIMEOUT.min(self.timeout));
        options.server_selection_timeout.get_or_insert(CONNECT_TIMEOUT.min(self.timeout / SELECTION_PART));
        // The threads that ask, and those that read all, bound how many are used at once.
        options.max_pool_size.get_or_insert(2 * limits::SOURCE_THREADS_MAX as u32);
        if let Some(Tls::Enabled(tls)) = &mut options.tls
            && tls.allow_invalid_certificates != Some(true)
        {
            let trusted = Trusted::read(self.authorities.as_deref())?;
            trusted.roots()?;
            tls.ca_file_path = Some(trusted.path);
        }
        let client = Client::with_options(options).map_err(|e| error(&e))?;
        Ok(SharedClient { client: Some(client), database: self.target.database.clone() })
    }

    /// Runs `work`, at most until `deadline`.
    pub(super) fn ask<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = Result<T, DictError>>,
    ) -> Result<T, DictError> {
        let overdue = || {
            let text = format!("MongoDB: no whole answer within {} ms", self.timeout.as_millis());
            DictError::new(Code::TimeoutExceeded, text)
        };
        runtime()?
            .block_on(async { tokio::time::timeout_at(deadline, work).await })
            .unwrap_or_else(|_| Err(overdue()))
    }
}

impl SharedClient {
    pub fn collection<T: Send + Sync>(&self, name: &str) -> Collection<T> {
        let client = self.client.as_ref().expect("it is there until it is dropped");
        client.database(&self.database).collection(name)
    }
}

impl Drop for SharedClient {
    /// The driver tells the servers of the end, for which it needs the runtime.
    fn drop(&mut self) {
        let _inside = runtime().map(Runtime::enter);
        self.client = None;
    }
}

/// An error of the driver.
pub(super) fn error(e: &Error) -> DictError {
    let (code, advice) = match &*e.kind {
        ErrorKind::Command(command) if command.code == OVERDUE => (Code::TimeoutExceeded, ""),
        ErrorKind::Authentication { .. } => {
            (Code::MongodbCannotAuthenticate, "; look at USER, PASSWORD and authSource")
        }
        ErrorKind::Io(_) | ErrorKind::ServerSelection { .. } | ErrorKind::ConnectionPoolCleared { .. } => {
            (Code::NetworkError, "")
        }
        _ => (Code::StdException, ""),
    };
    let is_of_request = matches!(&*e.kind, ErrorKind::Command(command) if !OUTAGES.contains(&command.code));
    DictError::new(code, format!("MongoDB: {}{advice}", e.kind)).of_request(is_of_request)
}
