//! Answers that are sent while they are written: a writer on a thread that may wait, and a body of its chunks.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Version;
use granary_sql::Error;
use granary_sql::format::Format;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::App;
use super::answer_writer::{AbortFlag, AnswerWriter, Chunk};
use super::exception::Exception;
use super::waiting::{Work, WorkPermit};
use crate::limits::{BREAK_OFF_PAUSE, CHUNKS_AHEAD, EXCEPTION_BYTES_MAX};

/// Whether the body is in ClickHouse's compressed blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Blocks,
}

/// When the body is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// While it is written, once there are `hold_bytes`, or at its end. An error before that replaces the answer; a
    /// later one ends it as `late` says.
    AsWritten { hold_bytes: usize, late: LateException },
    /// While it is written. A later error breaks the connection: a program that took the error's text for rows would
    /// find a key in it.
    OrCutOff,
    /// Once it is complete: an error replaces the answer, whenever it came.
    Whole,
}

impl Delivery {
    /// That of rows which stand for themselves, by the version of the request: in HTTP/1.0 an answer ends where its
    /// connection does, so that one which is cut off would look complete.
    pub fn of_rows(version: Version) -> Self {
        if version == Version::HTTP_10 { Self::Whole } else { Self::OrCutOff }
    }
}

/// How an error in the middle of an answer is sent, as in ClickHouse since 25.11: in a block marked with the tag from
/// the answer's header, which rows cannot know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LateException {
    tag: [u8; TAG_LETTERS],
    /// Whether the body breaks off after the block, so that clients that do not know such blocks do not take it for
    /// complete. A compressed body does not: the block would not arrive.
    pub breaks_off: bool,
}

const TAG_LETTERS: usize = 16;

impl LateException {
    /// With a random tag.
    pub fn new(breaks_off: bool) -> Self {
        Self { tag: std::array::from_fn(|_| fastrand::lowercase() as u8), breaks_off }
    }

    /// The tag, as in the header.
    pub fn tag(&self) -> &str {
        std::str::from_utf8(&self.tag).expect("letters")
    }

    /// The block with the error's text.
    pub fn block(&self, error: &Error) -> String {
        let tag = self.tag();
        let mut text = error.to_string();
        text.truncate(text.floor_char_boundary(EXCEPTION_BYTES_MAX));
        text.push('\n');
        format!("\r\n__exception__\r\n{tag}\r\n{text}{} {tag}\r\n__exception__\r\n", text.len())
    }
}

/// Completes when the client has disconnected.
pub type Gone = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs `write` on a thread that may wait, and returns the body that it writes. `delivery` says how errors are sent.
/// `write` is passed a future that completes when the body is not wanted any more.
pub async fn written(
    app: &Arc<App>,
    work: Work,
    compression: Compression,
    delivery: Delivery,
    write: impl FnOnce(&mut (dyn Write + Send), Gone) -> Result<(), Error> + Send + 'static,
) -> Result<Body, Exception> {
    let (chunks, received) = mpsc::channel(CHUNKS_AHEAD);
    let app = Arc::clone(app);
    let given_up = AbortFlag::default();
    let is_given_up = given_up.clone();
    let permit = WorkPermit::take(work).await;
    let write = move || {
        // The client may have disconnected while this waited for its turn.
        if chunks.is_closed() {
            return;
        }
        let watched = chunks.clone();
        let gone = Box::pin(async move { watched.closed().await });
        let mut writer = AnswerWriter::new(app, compression, delivery, chunks, given_up);
        // A panic is an error like any other: silence would look like an empty or a short answer.
        let written = catch_unwind(AssertUnwindSafe(|| write(writer.out(), gone)));
        writer.end(
            written.unwrap_or_else(|_| Err(Error::logical_error("The query panicked; the log says where"))),
        );
    };
    tokio::task::spawn_blocking(move || permit.run(write));
    let mut received = ReceiverStream::new(received);
    match received.next().await {
        None => Ok(Body::empty()),
        Some(Err(error)) => Err(Exception(error)),
        Some(Ok(first)) => {
            // A body that ended early is incomplete, and must not look complete.
            let end = tokio_stream::once(is_given_up).filter_map(|given_up| given_up.error().map(Err));
            let chunks = tokio_stream::once(Ok(first)).chain(received).chain(end);
            Ok(Body::from_stream(chunks.then(|chunk: Chunk| async {
                if chunk.is_err() {
                    // A connection that is broken off drops its unsent bytes.
                    tokio::time::sleep(BREAK_OFF_PAUSE).await;
                }
                chunk.map_err(io::Error::other)
            })))
        }
    }
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
