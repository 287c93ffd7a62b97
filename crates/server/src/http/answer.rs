//! Answers that are written while they are sent: a writer on a thread that may wait, its chunks in a body.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use axum::body::{Body, Bytes};
use granary_sql::Error;
use granary_sql::format::Format;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};

use super::blocks::Compressor;
use super::exception::Exception;
use super::waiting::{Turn, without_a_turn};
use crate::limits::{ANSWER_BYTES_HELD_MAX, CHUNK_BYTES, CHUNKS_AHEAD};

type Chunk = Result<Bytes, Error>;

/// Where an answer is written. The client that went away is a broken pipe.
pub struct Writer {
    gathered: Vec<u8>,
    chunks: mpsc::Sender<Chunk>,
}

impl Writer {
    fn send(&mut self) -> io::Result<()> {
        let chunk = Bytes::from(std::mem::take(&mut self.gathered));
        let mut left = match self.chunks.try_send(Ok(chunk)) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(TrySendError::Full(chunk)) => Some(chunk),
        };
        let mut is_sent = false;
        without_a_turn(&mut || {
            is_sent = left.take().is_some_and(|chunk| self.chunks.blocking_send(chunk).is_ok());
        });
        if is_sent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= CHUNK_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() { Ok(()) } else { self.send() }
    }
}

/// Whether the body is in ClickHouse's compressed blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Blocks,
}

/// When the body is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// While it is written. An error behind its beginning ends it with a text, as in ClickHouse.
    AsWritten,
    /// While it is written. An error behind its beginning breaks the connection: a program that read the text for
    /// rows would find a key in it.
    OrCutOff,
    /// When its end is known: then an error is the whole answer, whenever it came.
    Whole,
}

/// Runs `write` on a thread that may wait, and gives the body that it writes. An error before the first
/// chunk is the whole answer; what a later one does, `delivery` says.
pub async fn written(
    compression: Compression,
    delivery: Delivery,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error> + Send + 'static,
) -> Result<Body, Exception> {
    let (chunks, received) = mpsc::channel(CHUNKS_AHEAD);
    let turn = Turn::take().await;
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut writer = Writer { gathered: Vec::new(), chunks };
        // A panic is an error like any other: silence would be an empty answer, or a short one.
        let written = catch_unwind(AssertUnwindSafe(|| match compression {
            Compression::None => write(&mut writer),
            Compression::Blocks => {
                let mut compressor = Compressor::new(&mut writer);
                write(&mut compressor).and_then(|()| Ok(compressor.flush()?))
            }
        }));
        let result =
            written.unwrap_or_else(|_| Err(Error::logical_error("The query panicked; the log says where")));
        match result.and_then(|()| Ok(writer.flush()?)) {
            // Whoever asked has gone away, or everything is sent.
            Err(error) if !error.is_broken_pipe() => {
                let _ = writer.chunks.blocking_send(Err(error));
            }
            _ => {}
        }
    });
    let mut received = ReceiverStream::new(received);
    if delivery == Delivery::Whole {
        let mut body = Vec::new();
        while let Some(chunk) = received.next().await {
            body.extend_from_slice(&chunk?);
            if body.len() > ANSWER_BYTES_HELD_MAX {
                let message = format!(
                    "With wait_end_of_query an answer may have {ANSWER_BYTES_HELD_MAX} bytes; this one has more"
                );
                return Err(Error::too_many_rows(message).into());
            }
        }
        return Ok(Body::from(body));
    }
    match received.next().await {
        None => Ok(Body::empty()),
        Some(Err(error)) => Err(Exception(error)),
        Some(Ok(first)) => {
            let chunks = tokio_stream::once(Ok(first)).chain(received);
            Ok(Body::from_stream(bytes_of(chunks, delivery)))
        }
    }
}

fn bytes_of(chunks: impl Stream<Item = Chunk>, delivery: Delivery) -> impl Stream<Item = io::Result<Bytes>> {
    chunks.map(move |chunk| {
        chunk.or_else(|error| match delivery {
            Delivery::OrCutOff => Err(io::Error::other(error)),
            Delivery::AsWritten | Delivery::Whole => Ok(Bytes::from(format!("\n{error}\n"))),
        })
    })
}

/// The media type that ClickHouse gives a format.
pub fn content_type(format: Format) -> &'static str {
    match format {
        Format::TabSeparated
        | Format::TabSeparatedRaw
        | Format::TabSeparatedWithNames
        | Format::TabSeparatedWithNamesAndTypes => "text/tab-separated-values; charset=UTF-8",
        Format::Csv => "text/csv; charset=UTF-8; header=absent",
        Format::CsvWithNames => "text/csv; charset=UTF-8; header=present",
        Format::Json | Format::JsonCompact => "application/json; charset=UTF-8",
        Format::JsonEachRow
        | Format::JsonCompactEachRow
        | Format::JsonCompactEachRowWithNames
        | Format::JsonCompactEachRowWithNamesAndTypes => "application/x-ndjson; charset=UTF-8",
        Format::Pretty | Format::PrettyCompact | Format::Vertical | Format::Values | Format::Null => {
            "text/plain; charset=UTF-8"
        }
        Format::RowBinary
        | Format::RowBinaryWithNames
        | Format::RowBinaryWithNamesAndTypes
        | Format::Native
        | Format::Parquet
        | Format::Arrow
        | Format::ArrowStream => "application/octet-stream",
    }
}
