//! Writes an answer to its client: bytes are held back until there are enough for the answer to begin, since an error
//! before that replaces the answer; then they are sent in chunks.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use granary_sockets::LogThrottle;
use granary_sql::Error;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Permit, Sender};

use super::App;
use super::answer::{Compression, Delivery};
use super::blocks::Compressor;
use super::body::check_room;
use super::waiting::run_without_permit;
use crate::limits::{ANSWER_BYTES_HELD_MAX, ANSWERS_WAITING_MAX, CHUNK_BYTES, HURRIED_TIMEOUT};

/// A part of an answer, or the error that ends it.
pub type Chunk = Result<Bytes, Error>;

/// The writer of an answer, and how it ends.
pub struct AnswerWriter {
    delivery: Delivery,
    encoder: Encoder,
}

enum Encoder {
    Plain(Chunks),
    Blocks(Compressor<Chunks>),
}

impl AnswerWriter {
    pub fn new(
        app: Arc<App>,
        compression: Compression,
        delivery: Delivery,
        chunks: Sender<Chunk>,
        given_up: AbortFlag,
    ) -> Self {
        let chunks = Chunks {
            app,
            given_up,
            gathered: Vec::new(),
            held: Vec::new(),
            bytes_held: 0,
            stage: match delivery {
                Delivery::OrCutOff => Stage::Begun,
                Delivery::AsWritten { hold_bytes, .. } => Stage::Held { hold_bytes },
                Delivery::Whole => Stage::HeldToTheEnd,
            },
            refusal: None,
            chunks,
        };
        let encoder = match compression {
            Compression::None => Encoder::Plain(chunks),
            Compression::Blocks => Encoder::Blocks(Compressor::new(chunks)),
        };
        Self { delivery, encoder }
    }

    /// The writer for rows. If the client has disconnected, it fails with a broken pipe.
    pub fn out(&mut self) -> &mut (dyn Write + Send) {
        match &mut self.encoder {
            Encoder::Plain(chunks) => chunks,
            Encoder::Blocks(compressor) => compressor,
        }
    }

    fn chunks(&mut self) -> &mut Chunks {
        match &mut self.encoder {
            Encoder::Plain(chunks) => chunks,
            Encoder::Blocks(compressor) => compressor.get_mut(),
        }
    }

    /// Ends the answer: sends the rest and, after an error, what `delivery` says.
    pub fn end(mut self, result: Result<(), Error>) {
        let result = result.and_then(|()| Ok(self.finish()?));
        let Err(error) = result else { return };
        let error = self.chunks().refusal.take().unwrap_or(error);
        if error.is_broken_pipe() {
            return;
        }
        // If the client has disconnected, the error is lost.
        if matches!(self.chunks().stage, Stage::Begun)
            && let Delivery::AsWritten { late, .. } = self.delivery
        {
            let block = late.block(&error);
            let _ = self.out().write_all(block.as_bytes()).and_then(|()| self.finish());
            if !late.breaks_off {
                return;
            }
        }
        let _ = self.chunks().chunks.blocking_send(Err(error));
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out().flush()?;
        self.chunks().finish()
    }
}

/// Whether an answer was broken off because its client is slow: its chunks end then, without room among them for the
/// error.
#[derive(Clone, Default)]
pub struct AbortFlag(Arc<AtomicBool>);

impl AbortFlag {
    /// The error, if the answer was broken off.
    pub fn error(&self) -> Option<Error> {
        let text = "The client takes its answer slowly, and too many do: the answer is broken off";
        self.0.load(Ordering::Acquire).then(|| Error::logical_error(text))
    }
}

/// The number of answers that wait for their clients.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// An answer that waits for its client, and holds a thread. It counts in [`WAITING`] until it is dropped.
struct StalledAnswer;

impl StalledAnswer {
    fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self
    }

    fn are_too_many(&self) -> bool {
        WAITING.load(Ordering::Relaxed) > ANSWERS_WAITING_MAX
    }
}

impl Drop for StalledAnswer {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The log lines of answers that are broken off.
static BROKEN_OFF: LogThrottle = LogThrottle::new();

/// How often a waiting answer checks whether too many are waiting.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Gathers bytes, and sends them in chunks.
struct Chunks {
    app: Arc<App>,
    given_up: AbortFlag,
    /// Bytes of the next chunk.
    gathered: Vec<u8>,
    /// Chunks held back until the answer begins, and their bytes.
    held: Vec<Bytes>,
    bytes_held: usize,
    stage: Stage,
    /// Why the answer was refused in the middle: the I/O error does not tell.
    refusal: Option<Error>,
    chunks: Sender<Chunk>,
}

#[derive(Clone, Copy)]
enum Stage {
    /// The answer begins once it has `hold_bytes`.
    Held {
        hold_bytes: usize,
    },
    /// The answer begins once it is complete.
    HeldToTheEnd,
    Begun,
}

impl Chunks {
    /// Makes the gathered bytes a chunk.
    fn chunk(&mut self) -> io::Result<()> {
        let mut chunk = std::mem::take(&mut self.gathered);
        let hold_bytes = match self.stage {
            Stage::Begun => return self.send(chunk.into()),
            Stage::Held { hold_bytes } => hold_bytes,
            Stage::HeldToTheEnd => ANSWER_BYTES_HELD_MAX,
        };
        if self.chunks.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Allocated bytes must not exceed the counted ones.
        chunk.shrink_to_fit();
        let (before, more) = (self.bytes_held, chunk.len());
        self.held.push(chunk.into());
        self.bytes_held += more;
        if self.bytes_held < hold_bytes {
            return check_room(&self.app, before, more).map_err(|error| self.refuse(error));
        }
        match self.stage {
            Stage::HeldToTheEnd => Err(self.refuse(Error::too_many_rows(format!(
                "With wait_end_of_query, or in HTTP/1.0, an answer may have {ANSWER_BYTES_HELD_MAX} bytes; this one has more"
            )))),
            _ => self.begin(),
        }
    }

    fn refuse(&mut self, error: Error) -> io::Error {
        self.held.clear();
        self.refusal = Some(error);
        io::Error::other("the answer is refused")
    }

    fn begin(&mut self) -> io::Result<()> {
        self.stage = Stage::Begun;
        std::mem::take(&mut self.held).into_iter().try_for_each(|chunk| self.send(chunk))
    }

    fn send(&self, chunk: Bytes) -> io::Result<()> {
        let mut left = match self.chunks.try_send(Ok(chunk)) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(TrySendError::Full(chunk)) => Some(chunk),
        };
        let mut is_sent = false;
        run_without_permit(&mut || {
            let permit = Handle::current().block_on(self.room());
            is_sent = permit.zip(left.take()).map(|(permit, chunk)| permit.send(chunk)).is_some();
        });
        if is_sent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    /// Waits until the client takes a chunk; `None`: it disconnected, or waits too long while too many answers wait.
    async fn room(&self) -> Option<Permit<'_, Chunk>> {
        let waiting = StalledAnswer::begin();
        let began = Instant::now();
        loop {
            match tokio::time::timeout(LOOK_AGAIN, self.chunks.reserve()).await {
                Ok(permit) => return permit.ok(),
                Err(_) if began.elapsed() >= HURRIED_TIMEOUT && waiting.are_too_many() => {
                    if let Some(untold) = BROKEN_OFF.take() {
                        tracing::warn!(
                            untold,
                            "an answer is broken off: its client is slow, and too many are"
                        );
                    }
                    self.given_up.0.store(true, Ordering::Release);
                    return None;
                }
                Err(_) => {}
            }
        }
    }

    /// Sends all bytes written.
    fn finish(&mut self) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.chunk()?;
        }
        if matches!(self.stage, Stage::Begun) { Ok(()) } else { self.begin() }
    }
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= CHUNK_BYTES {
            self.chunk()?;
        }
        Ok(bytes.len())
    }

    /// Does nothing: bytes are sent when there are enough of them, or at the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
