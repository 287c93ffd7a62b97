//! A body that is processed while it arrives.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use axum::body::{Body, Bytes};
use granary_sql::Error;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt;

use super::App;
use super::body::{check_room, unread};
use super::unread::read_off;
use super::waiting::run_without_permit;
use crate::limits::{KEY_BYTES_AHEAD, KEY_BYTES_AT_FIRST, LONG_BODIES_MAX, PIECE_BYTES_MAX};

/// Bytes counted for a piece beside its content: a body may come in pieces of a few bytes.
const PIECE: usize = 256;

/// Threads that may wait for the rest of a body.
static LONG_BODIES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LONG_BODIES_MAX)));

/// A piece, and its permit of bytes.
type Received = (Result<Bytes, Error>, OwnedSemaphorePermit);

/// The pieces that have arrived, at most `KEY_BYTES_AHEAD`. They are received while none is taken: a client may send
/// everything before it reads the first byte of our answer, and both sides would wait for ever if we stopped reading.
pub struct Pieces {
    /// The pieces that came before the first was taken.
    begun: VecDeque<Received>,
    received: UnboundedReceiver<Received>,
    /// The permit of the piece taken last; released when the next one is taken.
    taken: Option<OwnedSemaphorePermit>,
    /// The permit to wait for more on a thread; `None`: all have arrived.
    _long: Option<OwnedSemaphorePermit>,
}

impl Pieces {
    /// Begins to read a body. Returns when enough has arrived for a lookup, which is all of most bodies: until then no
    /// thread waits for the client.
    pub async fn of(app: &Arc<App>, body: Body) -> Self {
        let mut received = Self::receive(Arc::clone(app), body);
        let (mut begun, mut bytes) = (VecDeque::new(), 0);
        let mut long = None;
        while let Some(piece) = received.recv().await {
            // As the room counts them: it has space for the next piece for as long as these are too few.
            bytes += piece.1.num_permits();
            begun.push_back(piece);
            if bytes >= KEY_BYTES_AT_FIRST {
                long = Arc::clone(&LONG_BODIES).acquire_owned().await.ok();
                break;
            }
        }
        Self { begun, received, taken: None, _long: long }
    }

    fn receive(app: Arc<App>, body: Body) -> UnboundedReceiver<Received> {
        let room = Arc::new(Semaphore::new(KEY_BYTES_AHEAD as usize));
        let (send, received) = unbounded_channel();
        tokio::spawn(async move {
            let mut pieces = body.into_data_stream();
            while let Some(piece) = pieces.next().await {
                let held = KEY_BYTES_AHEAD as usize - room.available_permits();
                let piece = piece.map_err(unread).and_then(|piece| {
                    check_room(&app, held, piece.len())?;
                    Ok(piece)
                });
                let is_last = piece.is_err();
                let bytes = piece.as_ref().map_or(0, Bytes::len) + PIECE;
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(PIECE_BYTES_MAX);
                let Ok(permit) = Arc::clone(&room).acquire_many_owned(bytes).await else { return };
                if send.send((piece, permit)).is_err() || is_last {
                    break;
                }
            }
            drop(send);
            // The rest is not wanted.
            read_off(&mut pieces, KEY_BYTES_AHEAD as usize).await;
        });
        received
    }

    /// Waits for the next piece; `None` after the last.
    ///
    /// # Errors
    /// The client has disconnected or stalls, or sends a malformed body; MEMORY_LIMIT_EXCEEDED.
    pub fn next(&mut self) -> Result<Option<Bytes>, Error> {
        self.taken = None;
        let received = self.begun.pop_front().or_else(|| self.received.try_recv().ok()).or_else(|| {
            let mut received = None;
            run_without_permit(&mut || received = self.received.blocking_recv());
            received
        });
        let Some((piece, permit)) = received else { return Ok(None) };
        self.taken = Some(permit);
        piece.map(Some)
    }
}
