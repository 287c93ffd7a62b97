//! Connections: limited in number, encrypted if configured, served each by its own task, and closed if the client is
//! silent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use crate::limits::{ACCEPT_PAUSE, BODY_TIMEOUT_SECONDS, HANDSHAKE_SECONDS};

/// How connections to one address are served.
pub struct Service {
    pub router: Router,
    pub tls: Option<TlsAcceptor>,
    /// Connections at once, over all addresses; beyond them, one client of each address waits here, and others in the
    /// system's queue.
    pub permits: Arc<Semaphore>,
}

impl Service {
    /// Accepts connections until it is stopped, and returns when the requests under way are answered.
    pub async fn run(self, listener: TcpListener, mut stopped: watch::Receiver<bool>) {
        let graceful = GracefulShutdown::new();
        let given = stopped.clone();
        tokio::select! {
            () = self.accept(&listener, &graceful, &given) => {}
            // An error says that nobody can stop it any more: then it is stopped.
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        drop(listener);
        graceful.shutdown().await;
    }

    async fn accept(
        &self,
        listener: &TcpListener,
        graceful: &GracefulShutdown,
        stopped: &watch::Receiver<bool>,
    ) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Other addresses may use all permits while no client comes to this one.
                    let Ok(counted) = Arc::clone(&self.permits).acquire_owned().await else { return };
                    let (router, tls) = (self.router.clone(), self.tls.clone());
                    let (watcher, mut stopped) = (graceful.watcher(), stopped.clone());
                    tokio::spawn(async move {
                        let _counted = counted;
                        let stopped = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
                        serve(stream, peer, tls, router, watcher, stopped).await;
                    });
                }
                Err(error) => {
                    // File descriptors are exhausted, or the client has disconnected.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
    watcher: Watcher,
    stopped: impl Future<Output = ()>,
) {
    // A short answer must not wait for the client's acknowledgement of the head.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(Duration::from_secs(BODY_TIMEOUT_SECONDS)));
    let stream = Box::pin(stream);
    let Some(tls) = tls else { return answer(stream, router, watcher).await };
    let handshake = tokio::time::timeout(Duration::from_secs(HANDSHAKE_SECONDS), tls.accept(stream));
    let accepted = tokio::select! {
        accepted = handshake => accepted,
        // It has asked for nothing yet.
        () = stopped => return,
    };
    match accepted {
        Ok(Ok(stream)) => answer(stream, router, watcher).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
        Err(_) => tracing::debug!(%peer, "no TLS in time"),
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    watcher: Watcher,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(BODY_TIMEOUT_SECONDS))
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection was given up");
    }
}
