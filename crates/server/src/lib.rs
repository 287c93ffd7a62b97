//! Granary's servers over HTTP: ClickHouse's interface for queries, and the dictionary source that a real ClickHouse
//! reads its dictionaries from.

#![forbid(unsafe_code)]

mod access;
mod dictionary_files;
mod figures;
mod http;
pub mod limits;
mod listener;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use granary_sql::{Session, Settings};
use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use access::Users;
pub use access::{Password, User, hash_password, is_password_hash};
use dictionary_files::DictionaryFiles;
pub use figures::{Figure, Kind, LatencyFigure, Memcached, SideServers, VolumeFigures, Volumes};
use granary_sockets::TlsError;
use http::{App, Scheme};
use listener::Service;
pub use tls::Tls;

/// Options of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Dictionaries and where they are kept.
    pub session: granary_sql::Options,
    /// Where HTTP listens; port 0 lets the system choose. `None`: nowhere.
    pub http: Option<SocketAddr>,
    /// Where HTTPS listens, and its certificate.
    pub https: Option<(SocketAddr, Tls)>,
    /// The users who may log in; `None`: everybody may, for loopback only.
    pub users: Option<Vec<User>>,
    /// ClickHouse's XML files of dictionaries, as patterns with `*`.
    pub dictionaries: Vec<String>,
    /// The settings that every session begins with.
    pub settings: Settings,
    /// Maximum number of connections served at once.
    pub connections: usize,
    /// The process's other servers, for the dashboard and `/metrics`.
    pub side_servers: SideServers,
}

/// The port of ClickHouse's HTTP interface, and so the default one.
const CLICKHOUSE_PORT: u16 = 8123;

fn listen_hint(address: &SocketAddr, error: &std::io::Error) -> &'static str {
    match (error.kind(), address.port()) {
        (std::io::ErrorKind::AddrInUse, CLICKHOUSE_PORT) => {
            " (perhaps by a ClickHouse on this machine, whose port this is, too: choose another by --http)"
        }
        _ => "",
    }
}

/// Why a server did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The catalogue could not be opened.
    #[error(transparent)]
    Sql(#[from] granary_sql::Error),
    /// The address cannot be listened on.
    #[error("cannot listen for {0} on {1}: {2}{hint}", hint = listen_hint(.1, .2))]
    Listen(&'static str, SocketAddr, std::io::Error),
    /// Other machines could connect, too.
    #[error(
        "{0} can be reached from other machines, but there are no users: anybody could read and change everything. \
         Listen on 127.0.0.1, or give users passwords in the configuration"
    )]
    Unprotected(SocketAddr),
    /// An error of the certificate or its key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refuses threads or signals.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
}

/// A server with its sockets bound, and nothing else yet: a start changes the disk only after everything that can
/// refuse it.
pub struct Server {
    runtime: Runtime,
    /// Runs tasks that queries spawn: some run long without yielding, and connections are served meanwhile.
    queries: Runtime,
    signals: Signals,
    http: Option<TcpListener>,
    https: Option<(TcpListener, TlsAcceptor)>,
}

impl Server {
    /// Binds the addresses.
    ///
    /// # Errors
    /// An address cannot be bound, or other machines could reach it though there are no users; an invalid certificate
    /// or setting.
    pub fn bind(options: &Options) -> Result<Server, ServerError> {
        Session::check_first_settings(options.settings.clone())?;
        if options.users.is_none() {
            let addresses =
                options.http.into_iter().chain(options.https.as_ref().map(|(address, _)| *address));
            if let Some(open) = addresses.into_iter().find(|address| !address.ip().is_loopback()) {
                return Err(ServerError::Unprotected(open));
            }
        }
        let [runtime, queries] = [runtime()?, runtime()?];
        let signals = Signals::catch(&runtime)?;
        let http = options.http.map(|address| runtime.block_on(listen("HTTP", address))).transpose()?;
        let https = match &options.https {
            Some((address, tls)) => Some((runtime.block_on(listen("HTTPS", *address))?, tls.acceptor()?)),
            None => None,
        };
        Ok(Server { runtime, queries, signals, http, https })
    }

    /// Serves until SIGTERM or SIGINT, then ends the requests under way and closes the dictionaries: they are warm at
    /// the next start. `ready` is called with the addresses of HTTP and HTTPS once they are served.
    ///
    /// # Errors
    /// The catalogue cannot be opened.
    pub fn run(
        self,
        options: Options,
        ready: impl FnOnce(Option<SocketAddr>, Option<SocketAddr>),
    ) -> Result<(), ServerError> {
        let Server { runtime, queries, signals, http, https } = self;
        let waiting = Some(http::run_without_permit as fn(&mut dyn FnMut()));
        let session = Arc::new(Session::open(granary_sql::Options { waiting, ..options.session.clone() })?);
        session.set(options.settings.clone())?;
        let handle = queries.handle().clone();
        let listeners = (http, https);
        let served =
            runtime.block_on(serve(Arc::clone(&session), handle, options, signals, listeners, ready));
        runtime.shutdown_timeout(Duration::from_secs(limits::STOP_SECONDS));
        queries.shutdown_background();
        session.close(Duration::from_secs(limits::STOP_SECONDS));
        served
    }
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(limits::LOOKUP_THREADS)
        .thread_stack_size(granary_sql::STACK_BYTES)
        .build()
}

async fn serve(
    session: Arc<Session>,
    queries: Handle,
    options: Options,
    mut signals: Signals,
    (http, https): (Option<TcpListener>, Option<(TcpListener, TlsAcceptor)>),
    ready: impl FnOnce(Option<SocketAddr>, Option<SocketAddr>),
) -> Result<(), ServerError> {
    let mut configured = DictionaryFiles::new(Arc::clone(&session), options.dictionaries);
    configured.read();
    let watching = tokio::spawn(configured.watch());
    let https_address = https.as_ref().map(|(listener, _)| listener.local_addr()).transpose()?;
    ready(http.as_ref().map(TcpListener::local_addr).transpose()?, https_address);

    let app = App::new(session, queries, Users::new(options.users), options.side_servers);
    let sampling = tokio::spawn(app.background());
    let router = http::router(app);
    let permits = Arc::new(Semaphore::new(options.connections.min(Semaphore::MAX_PERMITS)));
    let (stop, stopped) = watch::channel(false);
    let mut serving = JoinSet::new();
    let http = http.map(|listener| (listener, None));
    let listeners = http.into_iter().chain(https.map(|(listener, tls)| (listener, Some(tls))));
    for (listener, tls) in listeners {
        let scheme = Scheme(if tls.is_some() { "https" } else { "http" });
        let router = router.clone().layer(Extension(scheme));
        let service = Service { router, tls, permits: Arc::clone(&permits) };
        serving.spawn(service.run(listener, stopped.clone()));
    }
    let signal = signals.stop().await;
    tracing::info!("Granary stops, for {signal} has come: requests have {} seconds", limits::STOP_SECONDS);
    watching.abort();
    sampling.abort();
    // There is no receiver only if serving has ended by itself.
    let _ = stop.send(true);
    let ended = async { while serving.join_next().await.is_some() {} };
    if tokio::time::timeout(Duration::from_secs(limits::STOP_SECONDS), ended).await.is_err() {
        tracing::warn!("requests that were not answered in time are cut off");
    }
    Ok(())
}

/// The signals that end the server. They are caught before anything is opened or served: one that arrives meanwhile
/// stops it as soon as it has started.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// SIGHUP is caught and ignored, as ClickHouse does not end either: changed files of dictionaries are read again
    /// without it.
    _hangup: Signal,
}

impl Signals {
    fn catch(runtime: &Runtime) -> std::io::Result<Self> {
        let _entered = runtime.enter();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal that stops the server, and returns its name.
    async fn stop(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

async fn listen(protocol: &'static str, address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).await.map_err(|error| ServerError::Listen(protocol, address, error))
}
