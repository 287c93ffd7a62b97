//! Sockets and threads: one thread accepts, the others serve, each with its own epoll and its own ring.

mod acceptor;
mod channel;
mod connection;
mod watch;
mod worker;

use crate::engine::{Engine, Settings, Shared};
use crate::limits::CONNECTIONS_DEFAULT;
use crate::store::{self, Store};
use crate::users::Users;
use acceptor::Acceptor;
use mio::net::TcpListener;
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
pub use watch::Stats;
use worker::{Inbox, Worker};

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens; port 0 lets the system choose.
    pub address: SocketAddr,
    /// The items.
    pub store: store::Options,
    /// Threads that serve; `None`: one for each core.
    pub threads: Option<usize>,
    /// Most connections at a time; others are turned away.
    pub connections_max: usize,
    /// Seconds after which an idle connection is closed; 0: never.
    pub idle_seconds: u64,
    /// A file of `user:password`; with it, clients must say who they are.
    pub users: Option<PathBuf>,
    /// With it, clients must speak TLS.
    pub tls: Option<Arc<ServerConfig>>,
}

impl Options {
    /// With memcached's defaults.
    pub fn new(address: SocketAddr, store: store::Options) -> Self {
        let connections_max = CONNECTIONS_DEFAULT;
        Self { address, store, threads: None, connections_max, idle_seconds: 0, users: None, tls: None }
    }
}

/// Why a server did not start, or not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The items could not be opened.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The file of users cannot be used.
    #[error("{path}: {source}")]
    Users {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The system gives no threads.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

/// A server that runs. Dropping it stops it, too.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    wakers: Vec<Arc<mio::Waker>>,
    threads: Vec<JoinHandle<()>>,
    shared: Option<Arc<Shared>>,
}

impl Server {
    /// Opens the items and starts to serve.
    pub fn start(options: &Options) -> Result<Server, ServerError> {
        let users = match &options.users {
            None => None,
            Some(path) => {
                Some(Users::read(path).map_err(|source| ServerError::Users { path: path.clone(), source })?)
            }
        };
        let refused = |error| ServerError::Listen(options.address, error);
        let listener = TcpListener::bind(options.address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let threads =
            options.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get()));
        let settings = Settings {
            memory_bytes: options.store.memory_bytes,
            flash_bytes: options.store.flash_bytes,
            admission: options.store.admission.to_string(),
            connections_max: options.connections_max,
            port: address.port(),
            threads: threads.max(1),
            item_bytes_max: options.store.item_bytes_max,
            idle_seconds: options.idle_seconds,
        };
        let shared = Arc::new(Shared::new(Store::open(&options.store)?, users, settings));
        Self::serve(listener, address, shared, options.tls.clone())
    }

    fn serve(
        listener: TcpListener,
        address: SocketAddr,
        shared: Arc<Shared>,
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<Server, ServerError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = Server {
            address,
            stop,
            wakers: Vec::new(),
            threads: Vec::new(),
            shared: Some(Arc::clone(&shared)),
        };
        let mut inboxes = Vec::new();
        for thread in 0..shared.settings.threads {
            let inbox = Arc::new(Inbox::default());
            let (poll, waker) = worker::poll()?;
            inboxes.push((Arc::clone(&inbox), Arc::clone(&waker)));
            let (shared, stop) = (Arc::clone(&shared), Arc::clone(&server.stop));
            // A ring belongs to its thread, which makes it.
            let tls = tls.clone();
            let run = move || Worker::new(poll, Engine::new(shared, thread), inbox, stop, tls).run();
            server.spawn("granary-memcached", waker, run)?;
        }
        let (acceptor, waker) = Acceptor::new(listener, shared, inboxes, Arc::clone(&server.stop))?;
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
        self.threads.push(thread::Builder::new().name(name.into()).spawn(run)?);
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its figures, to be read as long as it runs.
    pub fn stats(&self) -> Stats {
        Stats(self.shared.as_ref().map(Arc::downgrade).unwrap_or_default())
    }

    /// Stops: what arrived is answered, connections are closed, and the items are warm at the next start.
    pub fn stop(mut self) -> io::Result<()> {
        self.join();
        match self.shared.take().map(Arc::try_unwrap) {
            Some(Ok(shared)) => shared.store.close(),
            _ => Ok(()),
        }
    }

    /// Stops as a kill would: nothing is closed. For tests.
    #[doc(hidden)]
    pub fn abandon(mut self) {
        self.join();
        if let Some(Ok(shared)) = self.shared.take().map(Arc::try_unwrap) {
            shared.store.abandon();
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
            // A panic of the thread was printed by it; there is nothing to add.
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
