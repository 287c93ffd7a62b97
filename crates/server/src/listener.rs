//! Connections as HTTP gets them: counted, encrypted if that is wanted, and never waited for one after the other.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;

use crate::limits::{ACCEPT_PAUSE, HANDSHAKE_SECONDS};

/// Hands out connections that are ready for HTTP.
pub struct Connections {
    ready: mpsc::Receiver<(Connection, SocketAddr)>,
    address: SocketAddr,
}

/// A connection; it counts until it is dropped.
pub struct Connection {
    stream: Box<dyn Stream>,
    _counted: OwnedSemaphorePermit,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Connections {
    /// Accepts connections, `permits` at once; beyond them, clients wait in the system's queue.
    pub fn of(listener: TcpListener, tls: Option<TlsAcceptor>, permits: Arc<Semaphore>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (send, ready) = mpsc::channel(1);
        tokio::spawn(accept(listener, tls, permits, send));
        Ok(Self { ready, address })
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    permits: Arc<Semaphore>,
    ready: mpsc::Sender<(Connection, SocketAddr)>,
) {
    loop {
        let Ok(counted) = Arc::clone(&permits).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ready.closed() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                // A slow handshake holds up nobody else.
                tokio::spawn(prepare(stream, peer, tls.clone(), counted, ready.clone()));
            }
            Err(error) => {
                // No file descriptors, or the client has gone again.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn prepare(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    counted: OwnedSemaphorePermit,
    ready: mpsc::Sender<(Connection, SocketAddr)>,
) {
    // A short answer must not wait for the client to acknowledge the head before it.
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(tls) => {
            let patience = Duration::from_secs(HANDSHAKE_SECONDS);
            match tokio::time::timeout(patience, tls.accept(stream)).await {
                Ok(Ok(stream)) => Box::new(stream),
                Ok(Err(error)) => return tracing::debug!(%peer, %error, "no TLS"),
                Err(_) => return tracing::debug!(%peer, "no TLS in time"),
            }
        }
    };
    // Nobody takes it once the server stops.
    let _ = ready.send((Connection { stream, _counted: counted }, peer)).await;
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // The accepting task never ends before this does.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
