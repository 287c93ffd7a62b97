//! Answers that are written while they are sent: a writer on a thread that may wait, its chunks in a body.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use granary_sql::Error;
use granary_sql::format::Format;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::App;
use super::answer_writer::{AnswerWriter, Chunk, GivenUp};
use super::exception::Exception;
use super::waiting::{Turn, Work};
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
    /// From so many bytes on while it is written, or at its end. An error before that is the whole answer; behind a later
    /// one the answer ends as `late` says.
    AsWritten { hold_bytes: usize, late: LateException },
    /// While it is written. An error behind its beginning breaks the connection: a program that read the text for
    /// rows would find a key in it.
    OrCutOff,
    /// When its end is known: then an error is the whole answer, whenever it came.
    Whole,
}

/// How an error is told in the middle of an answer, as in ClickHouse since 25.11: in a block that has the tag of the
/// answer's header, which rows do not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LateException {
    tag: [u8; TAG_LETTERS],
    /// Whether the body breaks off behind the block, so that nobody takes it for whole who does not know of blocks. Where
    /// it is packed on its way, the block would not arrive then.
    pub breaks_off: bool,
}

const TAG_LETTERS: usize = 16;

impl LateException {
    /// With a tag of its own.
    pub fn new(breaks_off: bool) -> Self {
        Self { tag: std::array::from_fn(|_| fastrand::lowercase() as u8), breaks_off }
    }

    /// The tag, as the header has it.
    pub fn tag(&self) -> &str {
        std::str::from_utf8(&self.tag).expect("letters")
    }

    /// The block.
    pub fn block(&self, error: &Error) -> String {
        let tag = self.tag();
        let mut text = error.to_string();
        text.truncate(text.floor_char_boundary(EXCEPTION_BYTES_MAX));
        text.push('\n');
        format!("\r\n__exception__\r\n{tag}\r\n{text}{} {tag}\r\n__exception__\r\n", text.len())
    }
}

/// Done when the client has gone away.
pub type Gone = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs `write` on a thread that may wait, and gives the body that it writes. What becomes of an error, `delivery` says.
/// `write` is given what is done when nobody wants the body any more.
pub async fn written(
    app: &Arc<App>,
    work: Work,
    compression: Compression,
    delivery: Delivery,
    write: impl FnOnce(&mut (dyn Write + Send), Gone) -> Result<(), Error> + Send + 'static,
) -> Result<Body, Exception> {
    let (chunks, received) = mpsc::channel(CHUNKS_AHEAD);
    let app = Arc::clone(app);
    let given_up = GivenUp::default();
    let is_given_up = given_up.clone();
    let turn = Turn::take(work).await;
    let write = move || {
        // Who has gone away while this waited for its turn wants nothing any more.
        if chunks.is_closed() {
            return;
        }
        let watched = chunks.clone();
        let gone = Box::pin(async move { watched.closed().await });
        let mut writer = AnswerWriter::new(app, compression, delivery, chunks, given_up);
        // A panic is an error like any other: silence would be an empty answer, or a short one.
        let written = catch_unwind(AssertUnwindSafe(|| write(writer.out(), gone)));
        writer.end(
            written.unwrap_or_else(|_| Err(Error::logical_error("The query panicked; the log says where"))),
        );
    };
    tokio::task::spawn_blocking(move || turn.run(write));
    let mut received = ReceiverStream::new(received);
    match received.next().await {
        None => Ok(Body::empty()),
        Some(Err(error)) => Err(Exception(error)),
        Some(Ok(first)) => {
            // What has ended otherwise is not whole, and must not look so.
            let end = tokio_stream::once(is_given_up).filter_map(|given_up| given_up.error().map(Err));
            let chunks = tokio_stream::once(Ok(first)).chain(received).chain(end);
            Ok(Body::from_stream(chunks.then(|chunk: Chunk| async {
                if chunk.is_err() {
                    // A connection that is broken off forgets what it was about to send.
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
