//! Sockets and threads: one thread accepts, the others serve, each with its own epoll and its own ring.

mod acceptor;
mod connection;
mod listener;
mod stream;
mod watch;
mod worker;

use crate::engine::{AllocatorSizes, Engine, Flush, ServerState, Settings};
use crate::limits::CONNECTIONS_DEFAULT;
use crate::store::{self, Store, StoreOptions};
use crate::users::Users;
use acceptor::Acceptor;
use granary_sockets::UnixSocket;
use listener::Listener;
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
pub use watch::Stats;
use worker::{Inbox, Worker};

/// The options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// TCP address to listen on, if any; with port 0 the system chooses the port.
    pub address: Option<SocketAddr>,
    /// Unix socket to listen on, for clients of the same machine.
    pub socket: Option<UnixSocket>,
    /// The items.
    pub store: StoreOptions,
    /// Threads that serve; `None`: one for each core.
    pub threads: Option<usize>,
    /// Most connections at a time; further ones are turned away.
    pub connections_max: usize,
    /// Whether clients may flush.
    pub flush: Flush,
    /// Seconds after which an idle connection is closed; 0: never.
    pub idle_seconds: u64,
    /// A file of lines `user:password`; with it, clients must log in.
    pub users: Option<PathBuf>,
    /// TLS configuration; with it, clients must speak TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// Returns the figures of the program's allocator, for `stats granary`.
    pub allocator: Option<fn() -> AllocatorSizes>,
}

impl Options {
    /// Options with memcached's defaults, and an address.
    pub fn new(address: SocketAddr, store: StoreOptions) -> Self {
        Self { address: Some(address), ..Self::nowhere(store) }
    }

    /// The same without an address or a socket, one of which has to be set.
    pub fn nowhere(store: StoreOptions) -> Self {
        Self {
            address: None,
            socket: None,
            store,
            threads: None,
            connections_max: CONNECTIONS_DEFAULT,
            flush: Flush::Allowed,
            idle_seconds: 0,
            users: None,
            tls: None,
            allocator: None,
        }
    }

    fn listeners(&self) -> Result<Vec<Listener>, ServerError> {
        let mut listeners = Vec::new();
        if let Some(address) = self.address {
            listeners.push(Listener::tcp(address).map_err(|error| ServerError::Listen(address, error))?);
        }
        if let Some(socket) = &self.socket {
            let refused = |source| ServerError::Socket { path: socket.path.clone(), source };
            listeners.push(Listener::unix(socket).map_err(refused)?);
        }
        Ok(listeners)
    }

    fn check(&self) -> Result<(), ServerError> {
        match self {
            Self { address: None, socket: None, .. } => Err(ServerError::Nowhere),
            Self { connections_max: 0, .. } => Err(ServerError::None("connections")),
            Self { threads: Some(0), .. } => Err(ServerError::None("threads")),
            _ => Ok(()),
        }
    }
}

/// The reasons why a server did not start or stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The items could not be opened.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The address cannot be listened on.
    #[error("cannot listen for memcached on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The Unix socket cannot be listened on.
    #[error("cannot listen for memcached on {path}: {source}")]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The options have no address and no socket.
    #[error("there is no address and no socket to listen on")]
    Nowhere,
    /// The options ask for 0 threads or connections.
    #[error("0 {0} can serve nobody: give at least 1")]
    None(&'static str),
    /// The file of users cannot be used.
    #[error("{path}: {source}")]
    Users {
        /// The path of the file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The system refused a thread or another resource.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

/// The longest wait of a stop for readers of the server's figures.
const STATS_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that an abort gives the log line that explains it.
const ABORT_DELAY: Duration = Duration::from_millis(100);

/// A thread that must not end before the server stops. If it did, by an error or a panic, its clients would wait for
/// ever, and new ones would be dealt to it. The process is aborted then, so that its supervisor restarts it.
struct EndsWithTheServer(Arc<AtomicBool>);

impl Drop for EndsWithTheServer {
    fn drop(&mut self) {
        if !self.0.load(Ordering::Acquire) {
            let thread = thread::current().name().unwrap_or_default().to_owned();
            tracing::error!(thread, "a thread of the memcached server has ended: the process is aborted");
            // A log that a thread of its own writes has it by then.
            thread::sleep(ABORT_DELAY);
            std::process::abort();
        }
    }
}

/// A running server. Dropping it stops it, too.
pub struct Server {
    address: Option<SocketAddr>,
    places: String,
    stop: Arc<AtomicBool>,
    wakers: Vec<Arc<mio::Waker>>,
    threads: Vec<JoinHandle<()>>,
    shared: Option<Arc<ServerState>>,
}

impl Server {
    /// Opens the items and starts to serve.
    pub fn start(options: &Options) -> Result<Server, ServerError> {
        options.check()?;
        let users = match &options.users {
            None => None,
            Some(path) => {
                Some(Users::read(path).map_err(|source| ServerError::Users { path: path.clone(), source })?)
            }
        };
        let listeners = options.listeners()?;
        let address = listeners.iter().find_map(Listener::address);
        let threads =
            options.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get()));
        let settings = Settings {
            memory_bytes: options.store.memory_bytes,
            flash_bytes: options.store.flash_bytes,
            admission: options.store.admission.to_string(),
            connections_max: options.connections_max,
            port: address.map_or(0, |address| address.port()),
            socket: options.socket.as_ref().map(|socket| (socket.path.clone(), socket.mode)),
            flush: options.flush,
            threads,
            item_bytes_max: options.store.item_bytes_max,
            idle_seconds: options.idle_seconds,
            syncs_changes: options.store.sync_changes,
            allocator: options.allocator,
        };
        let shared = Arc::new(ServerState::new(Store::open(&options.store)?, users, settings));
        Self::serve(listeners, address, shared, options.tls.clone())
    }

    fn serve(
        listeners: Vec<Listener>,
        address: Option<SocketAddr>,
        shared: Arc<ServerState>,
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<Server, ServerError> {
        let stop = Arc::new(AtomicBool::new(false));
        let place = |listener: &Listener| {
            listener.address().map_or_else(|| listener.name(), |address| address.to_string())
        };
        let places: Vec<String> = listeners.iter().map(place).collect();
        let mut server = Server {
            address,
            places: places.join(" and "),
            stop,
            wakers: Vec::new(),
            threads: Vec::new(),
            shared: Some(Arc::clone(&shared)),
        };
        let mut inboxes = Vec::new();
        for thread in 0..shared.settings.threads {
            let inbox = Arc::new(Inbox::default());
            let (poll, waker) = worker::new_poll()?;
            inboxes.push((Arc::clone(&inbox), Arc::clone(&waker)));
            let (shared, stop) = (Arc::clone(&shared), Arc::clone(&server.stop));
            // A ring belongs to the thread that creates it.
            let tls = tls.clone();
            let run = move || Worker::new(poll, Engine::new(shared, thread), inbox, stop, tls).run();
            server.spawn("granary-memcached", waker, run)?;
        }
        let (acceptor, waker) = Acceptor::new(listeners, shared, inboxes, Arc::clone(&server.stop))?;
        server.spawn("granary-accept", waker, move || acceptor.run())?;
        Ok(server)
    }

    fn spawn(
        &mut self,
        name: &str,
        waker: Arc<mio::Waker>,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.wakers.push(waker);
        let stop = Arc::clone(&self.stop);
        let serve = move || {
            let _ends = EndsWithTheServer(stop);
            run();
        };
        self.threads.push(thread::Builder::new().name(name.into()).spawn(serve)?);
        Ok(())
    }

    /// The TCP address that the server listens on.
    ///
    /// # Panics
    /// If the options had no address.
    pub fn address(&self) -> SocketAddr {
        self.address.expect("the options had an address")
    }

    /// The address and the socket that the server listens on, as text.
    pub fn places(&self) -> &str {
        &self.places
    }

    /// A handle to read the server's figures as long as it runs.
    pub fn stats(&self) -> Stats {
        Stats(self.shared.as_ref().map(Arc::downgrade).unwrap_or_default())
    }

    /// Stops the server: requests that have arrived are answered, connections are closed, and the items are kept for
    /// the next start.
    ///
    /// # Errors
    /// The error of the operating system if the items could not all be kept.
    pub fn stop(mut self) -> io::Result<()> {
        self.join();
        let Some(mut shared) = self.shared.take() else { return Ok(()) };
        let deadline = Instant::now() + STATS_TIMEOUT;
        loop {
            shared = match Arc::try_unwrap(shared) {
                Ok(shared) => return shared.store.close(),
                Err(shared) if Instant::now() < deadline => shared,
                Err(_) => return Err(io::Error::other("its figures are still being read")),
            };
            // A reader of the figures is done in a moment.
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops like a kill: nothing is closed. For tests.
    #[doc(hidden)]
    pub fn abandon(mut self) {
        self.join();
        if let Some(Ok(shared)) = self.shared.take().map(Arc::try_unwrap) {
            store::testing::abandon(shared.store);
        }
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::Release);
        for waker in &self.wakers {
            if let Err(error) = waker.wake() {
                tracing::error!(%error, "a thread cannot be woken");
            }
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed the panic itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.join();
        if let Some(Ok(shared)) = self.shared.take().map(Arc::try_unwrap)
            && let Err(error) = shared.store.close()
        {
            tracing::error!(%error, "the items could not be closed");
        }
    }
}
