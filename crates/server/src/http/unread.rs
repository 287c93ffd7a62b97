//! Bodies of refused requests. A client still sending one would see a broken connection and not the error that it is
//! answered; ClickHouse then retries for half a minute, and never tells why.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio_stream::StreamExt;

use crate::limits::UNREAD_BYTES_MAX;

/// Reads the unread body of a request that is answered with an error, up to a limit.
pub async fn read_unwanted(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let shared = Arc::new(Shared { body: Mutex::new(body), is_wanted: AtomicBool::new(false) });
    let lent = Body::new(SharedBody(Arc::clone(&shared)));
    let response = next.run(Request::from_parts(parts, lent)).await;
    let status = response.status();
    if (status.is_client_error() || status.is_server_error()) && !shared.is_wanted.load(Ordering::Relaxed) {
        let body = std::mem::take(&mut *shared.body.lock().unwrap_or_else(PoisonError::into_inner));
        read_off(&mut body.into_data_stream(), UNREAD_BYTES_MAX).await;
    }
    response
}

/// Reads the rest of a body, at most `left` bytes.
pub async fn read_off(pieces: &mut BodyDataStream, mut left: usize) {
    while let Some(Ok(piece)) = pieces.next().await
        && piece.len() <= left
    {
        left -= piece.len();
    }
}

struct Shared {
    body: Mutex<Body>,
    /// Whether the handler has begun to read the body.
    is_wanted: AtomicBool,
}

/// The body, as passed to the handler.
struct SharedBody(Arc<Shared>);

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.0.is_wanted.store(true, Ordering::Relaxed);
        let mut body = self.0.body.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.body.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.body.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}
