//! Sockets and threads: one thread accepts, and each connection has its own.

mod acceptor;
mod connection;
mod listener;
mod poll_budget;
mod stop;
mod wire;

use crate::export::Exports;
use crate::limits::{
    CONNECTIONS_DEFAULT, HANDSHAKE_SECONDS_DEFAULT, LARGE_BUFFER_BYTES_MAX, STALL_SECONDS_DEFAULT,
};
use crate::protocol::{Budget, Ending, TlsPolicy};
use acceptor::Acceptor;
use connection::{Connection, Context, End};
use granary_sockets::{LogThrottle, UnixSocket};
use listener::Listener;
pub use listener::is_activated;
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
pub use stop::Stop;
use wire::Wire;

/// The options of a server.
#[derive(Clone)]
pub struct Options {
    /// The served exports.
    pub exports: Arc<dyn Exports>,
    /// The TCP addresses to listen on; port 0 lets the system choose.
    pub addresses: Vec<SocketAddr>,
    /// The Unix sockets to listen on.
    pub sockets: Vec<UnixSocket>,
    /// Whether to use the sockets that systemd opened for this process, if any.
    pub is_activated: bool,
    /// The TLS configuration; with it, clients may use TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// Whether clients must use TLS; needs `tls`.
    pub requires_tls: bool,
    /// Most connections at a time; others are closed at once.
    pub connections_max: usize,
    /// The time that a client has for its handshake, including TLS.
    pub handshake_timeout: Duration,
    /// The time without progress after which a client is disconnected that takes no replies, or that stopped in the
    /// middle of a request.
    pub stall_timeout: Duration,
}

impl Options {
    /// Options of a server without listening sockets yet.
    pub fn new(exports: Arc<dyn Exports>) -> Self {
        Self {
            exports,
            addresses: Vec::new(),
            sockets: Vec::new(),
            is_activated: false,
            tls: None,
            requires_tls: false,
            connections_max: CONNECTIONS_DEFAULT,
            handshake_timeout: Duration::from_secs(HANDSHAKE_SECONDS_DEFAULT),
            stall_timeout: Duration::from_secs(STALL_SECONDS_DEFAULT),
        }
    }

    fn listeners(&self) -> Result<Vec<Listener>, ServerError> {
        let mut listeners = Vec::new();
        for address in &self.addresses {
            listeners.push(Listener::tcp(*address).map_err(|error| ServerError::Listen(*address, error))?);
        }
        for socket in &self.sockets {
            let refused = |source| ServerError::Socket { path: socket.path.clone(), source };
            listeners.push(Listener::unix(socket).map_err(refused)?);
        }
        if self.is_activated {
            listeners.extend(Listener::activated()?);
        }
        Ok(listeners)
    }

    fn context(&self, stop: Stop) -> Result<Context, ServerError> {
        let policy = match (&self.tls, self.requires_tls) {
            (None, true) => return Err(ServerError::NoCertificate),
            (None, false) => TlsPolicy::Off,
            (Some(_), true) => TlsPolicy::Required,
            (Some(_), false) => TlsPolicy::Optional,
        };
        let budget = Arc::new(Budget::new(LARGE_BUFFER_BYTES_MAX));
        Ok(Context {
            exports: Arc::clone(&self.exports),
            tls: self.tls.clone(),
            policy,
            budget,
            stop,
            handshake_timeout: self.handshake_timeout,
            stall_timeout: self.stall_timeout,
        })
    }
}

/// The reason why a server did not start, or why the client of [`serve`] has gone.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen for NBD on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The Unix socket cannot be listened on.
    #[error("cannot listen for NBD on {path}: {source}")]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A descriptor from systemd is no listening stream socket.
    #[error("a file descriptor of LISTEN_FDS is no listening stream socket: {0}")]
    Activation(io::Error),
    /// The options name no address and no socket.
    #[error("there is no address and no socket to listen on")]
    Nowhere,
    /// The bound on connections is 0.
    #[error("0 connections can serve nobody: give at least 1")]
    NoConnections,
    /// TLS is required, but not configured.
    #[error("TLS cannot be required without a certificate and its key: give both")]
    NoCertificate,
    /// The system has no threads or file descriptors left.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
    /// The client asked for an export that it cannot have, stalled, or does not speak the protocol.
    #[error("the client was disconnected: {0}")]
    Disconnected(&'static str),
    /// The client's socket failed.
    #[error("the client's connection failed: {0}")]
    Connection(io::Error),
}

/// Counters of connections, and their log lines.
#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    disconnected: AtomicU64,
    refusals: LogThrottle,
    disconnections: LogThrottle,
}

/// Figures of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Connections at present.
    pub connections: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed at once because there were too many.
    pub refused: u64,
    /// Clients that were disconnected because they stalled, or do not speak the protocol.
    pub disconnected: u64,
}

/// A running server. Dropping it stops it.
pub struct Server {
    addresses: Vec<SocketAddr>,
    uris: Vec<String>,
    stop: Stop,
    acceptor: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    /// An address or socket cannot be listened on, or there is none.
    pub fn start(options: Options) -> Result<Self, ServerError> {
        if options.connections_max == 0 {
            return Err(ServerError::NoConnections);
        }
        let stop = Stop::new()?;
        let context = options.context(stop.clone())?;
        let listeners = options.listeners()?;
        if listeners.is_empty() {
            return Err(ServerError::Nowhere);
        }
        let addresses = listeners.iter().filter_map(Listener::address).collect();
        let requires_tls = options.tls.is_some() && options.requires_tls;
        let names = names_in_uris(&*options.exports);
        let uris_of = |listener: &Listener| -> Vec<String> {
            names.iter().filter_map(|name| listener.uri(requires_tls, name)).collect()
        };
        let uris = listeners.iter().flat_map(uris_of).collect();
        let counters = Arc::new(Counters::default());
        let acceptor = Acceptor {
            listeners,
            context,
            connections_max: options.connections_max,
            counters: Arc::clone(&counters),
            threads: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("granary-nbd".into()).spawn(move || acceptor.run())?;
        Ok(Self { addresses, uris, stop, acceptor: Some(thread), counters })
    }

    /// The TCP addresses that it listens on, in the order of its options.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The URIs of all exports for clients. That of the default export has no name.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Its figures at present.
    pub fn figures(&self) -> Figures {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { connections, accepted, refused, disconnected, .. } = &*self.counters;
        Figures {
            connections: of(connections),
            accepted: of(accepted),
            refused: of(refused),
            disconnected: of(disconnected),
        }
    }

    /// Stops: no connection is accepted any more, begun commands are completed, and later ones get ESHUTDOWN.
    pub fn stop(mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.stop.give();
        if let Some(acceptor) = self.acceptor.take() {
            // A panic of the thread was printed by it; there is nothing to add.
            let _ = acceptor.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.join();
    }
}

/// The names of all exports, that of the default export empty. Where there are none, clients are told where to ask.
fn names_in_uris(exports: &dyn Exports) -> Vec<String> {
    let default_name = exports.open("").map(|export| export.name());
    let in_uri = |name: String| if Some(&name) == default_name.as_ref() { String::new() } else { name };
    let names: Vec<String> = exports.names().into_iter().map(|(name, _)| in_uri(name)).collect();
    if names.is_empty() { vec![String::new()] } else { names }
}

/// Serves one client on the calling thread: a connected socket, or with `output` two pipes. The listening addresses in
/// the options are ignored. Returns when the client has gone, or after `stop` was given.
///
/// # Errors
/// A client that does not speak the protocol, or stalls; a socket that fails.
pub fn serve(
    options: &Options,
    input: OwnedFd,
    output: Option<OwnedFd>,
    stop: &Stop,
) -> Result<(), ServerError> {
    let context = options.context(stop.clone())?;
    match Connection::new(Wire::new(input, output)?, context).run() {
        End::Protocol(Ending::Goodbye) | End::Stopped => Ok(()),
        End::Protocol(Ending::Refused) => {
            Err(ServerError::Disconnected("it asked for an export that it cannot have"))
        }
        End::Protocol(Ending::Violation(reason)) | End::Slow(reason) => {
            Err(ServerError::Disconnected(reason))
        }
        End::Broken(error) => Err(ServerError::Connection(error)),
    }
}
