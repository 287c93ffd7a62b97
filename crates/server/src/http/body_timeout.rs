//! How long a client may let the server wait for a body: an allowance that waiting uses up, and that received bytes
//! refill at a minimum rate. Bytes that come one by one do not hold a connection for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::limits::{BODY_BYTES_PER_SECOND_MIN, BODY_TIMEOUT_SECONDS};

const TIMEOUT: Duration = Duration::from_secs(BODY_TIMEOUT_SECONDS);

/// A request whose body fails when it takes too long.
pub async fn limited(request: Request) -> Request {
    request.map(|body| Body::new(TimedBody { body, left: ReadTimeout(TIMEOUT), waiting: None }))
}

/// How much longer the server waits for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadTimeout(Duration);

impl ReadTimeout {
    /// The allowance after waiting for `waited` and receiving `bytes`.
    fn after(self, waited: Duration, bytes: usize) -> ReadTimeout {
        let earned = Duration::from_secs_f64(bytes as f64 / BODY_BYTES_PER_SECOND_MIN);
        ReadTimeout((self.0.saturating_sub(waited) + earned).min(TIMEOUT))
    }
}

struct TimedBody {
    body: Body,
    left: ReadTimeout,
    /// Since when the next piece is awaited, and the timer that ends the wait.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let patient = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut patient.body).poll_frame(context) {
            let waited = patient.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            let bytes = match &frame {
                Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
                _ => 0,
            };
            patient.left = patient.left.after(waited, bytes);
            return Poll::Ready(frame);
        }
        let left = patient.left.0;
        let (_, end) = patient.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        ready!(end.as_mut().poll(context));
        let late = io::Error::new(io::ErrorKind::TimedOut, "it does not come");
        Poll::Ready(Some(Err(axum::Error::new(late))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_earns_no_time() {
        let pause = Duration::from_secs(20);
        let (mut left, mut pieces) = (ReadTimeout(TIMEOUT), 0);
        // The next piece is awaited that long.
        while left.0 > pause {
            left = left.after(pause, 2);
            pieces += 1;
        }
        assert!(pieces <= 3, "{pieces}");
        // At the minimum rate a body may take any time, and no allowance is saved up.
        for _ in 0..1000 {
            left = left.after(Duration::from_secs(10), 64 << 10);
        }
        assert_eq!(left, ReadTimeout(TIMEOUT));
    }
}
