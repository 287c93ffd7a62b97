//! A body that is worked on while it comes.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use granary_sql::Error;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt;

use super::unread::read_off;
use super::waiting::without_a_turn;
use crate::limits::KEY_BYTES_AHEAD;

/// What a piece counts for besides its bytes.
const PIECE: usize = 256;

/// The pieces that have come, `KEY_BYTES_AHEAD` of them at most. They go on coming while nobody takes them: a client
/// may send everything before it reads the first byte of our answer, and would wait for ever for one that waits for it.
pub struct Pieces {
    received: UnboundedReceiver<(Result<Bytes, axum::Error>, OwnedSemaphorePermit)>,
    /// What a piece that was taken makes room for, it makes when the next one is.
    taken: Option<OwnedSemaphorePermit>,
}

impl Pieces {
    pub fn of(body: Body) -> Self {
        let room = Arc::new(Semaphore::new(KEY_BYTES_AHEAD as usize));
        let (send, received) = unbounded_channel();
        tokio::spawn(async move {
            let mut pieces = body.into_data_stream();
            while let Some(piece) = pieces.next().await {
                let bytes = piece.as_ref().map_or(0, Bytes::len) + PIECE;
                // One that is larger than all the room waits for all of it.
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(KEY_BYTES_AHEAD);
                let Ok(permit) = Arc::clone(&room).acquire_many_owned(bytes).await else { return };
                if send.send((piece, permit)).is_err() {
                    break;
                }
            }
            // Nobody wants the rest.
            read_off(&mut pieces, KEY_BYTES_AHEAD as usize).await;
        });
        Self { received, taken: None }
    }

    /// The next piece, for which it waits; `None` behind the last.
    ///
    /// # Errors
    /// The client has gone away, or sends what is no body.
    pub fn next(&mut self) -> Result<Option<Bytes>, Error> {
        self.taken = None;
        let received = self.received.try_recv().ok().or_else(|| {
            let mut received = None;
            without_a_turn(&mut || received = self.received.blocking_recv());
            received
        });
        match received {
            None => Ok(None),
            Some((Ok(bytes), permit)) => {
                self.taken = Some(permit);
                Ok(Some(bytes))
            }
            Some((Err(error), _)) => {
                Err(Error::cannot_parse_text(format!("The body cannot be read: {error}")))
            }
        }
    }
}
