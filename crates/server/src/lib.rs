//! Granary's servers. HTTP: ClickHouse's interface for queries, and the dictionary-source endpoint that a
//! real ClickHouse reads its dictionaries from.

mod http;
pub mod limits;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use granary_sql::Session;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Dictionaries and where they are kept.
    pub session: granary_sql::Options,
    /// Where HTTP listens; port 0 lets the system choose.
    pub http: SocketAddr,
}

/// Why a server did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The catalogue could not be opened.
    #[error(transparent)]
    Sql(#[from] granary_sql::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The system gives no threads or signals.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
}

/// Serves until SIGTERM or SIGINT, then ends what is under way and closes the dictionaries: they are warm
/// at the next start. `ready` is told the address once it is listened on.
pub fn run(options: Options, ready: impl FnOnce(SocketAddr)) -> Result<(), ServerError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(limits::LOOKUP_THREADS)
        .build()?;
    let session = Arc::new(Session::open(options.session)?);
    let served = runtime.block_on(serve(Arc::clone(&session), options.http, ready));
    runtime.shutdown_timeout(Duration::from_secs(limits::STOP_SECONDS));
    session.close(Duration::from_secs(limits::STOP_SECONDS));
    served
}

async fn serve(
    session: Arc<Session>,
    address: SocketAddr,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServerError> {
    let listener = TcpListener::bind(address).await.map_err(|error| ServerError::Listen(address, error))?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    ready(listener.local_addr()?);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut patience = stopped.clone();
    // A short answer must not wait for the client to acknowledge the head before it.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let serving = axum::serve(listener, http::router(session)).with_graceful_shutdown(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // Nobody listens any more only if serving has ended by itself.
        let _ = stop.send(true);
    });
    let out_of_patience = async move {
        if patience.wait_for(|stopped| *stopped).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(limits::STOP_SECONDS)).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = std::future::IntoFuture::into_future(serving) => Ok(ended?),
        () = out_of_patience => Ok(()),
    }
}
