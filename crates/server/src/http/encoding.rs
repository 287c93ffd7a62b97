//! How a body is packed: by gzip, or LZ4, in which clickhouse-connect sends rows. It is unpacked when somebody reads it, who
//! knows by then from whom it is. Several members, or frames, in a row are one body: logs that are appended to and files of
//! bgzip are such. And whether an answer is packed: always by gzip, by a layer.

use std::io::{self, Read};
use std::sync::Arc;

use async_compression::tokio::bufread::GzipDecoder;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use granary_sql::Error;
use lz4_flex::frame::FrameDecoder;
use tokio_stream::StreamExt;
use tokio_util::io::{ReaderStream, StreamReader};

use super::App;
use super::body::read_whole;
use super::exception::Exception;
use super::waiting::{Work, may_wait};
use crate::limits::{BODY_BYTES_MAX, BODY_STEP_BYTES, CHUNK_BYTES};

/// Unpacks the body of a request as its header says, and refuses what nobody here can unpack.
pub async fn unpack(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let body = match parts.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => body,
        Some(b"gzip") => gunzipped(body),
        Some(b"lz4") => unpacked_once_read(app, body),
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            let message = format!("Unknown Content-Encoding '{other}'; use gzip or lz4, or send it plain");
            return Exception(Error::not_implemented(message)).into_response();
        }
    };
    if parts.headers.remove(CONTENT_ENCODING).is_some() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    next.run(Request::from_parts(parts, body)).await
}

/// All members of a body of gzip, unpacked while they come.
fn gunzipped(body: Body) -> Body {
    let packed = body.into_data_stream().map(|piece| piece.map_err(io::Error::other));
    let mut members = GzipDecoder::new(StreamReader::new(packed));
    members.multiple_members(true);
    Body::from_stream(ReaderStream::with_capacity(members, CHUNK_BYTES))
}

/// All frames of a body of LZ4, unpacked when the last has come.
fn unpacked_once_read(app: Arc<App>, body: Body) -> Body {
    Body::from_stream(futures::stream::once(async move {
        let packed = read_whole(&app, body).await?;
        may_wait(Work::Lookup, move || unpacked(&app, &packed)).await.map(Bytes::from)
    }))
}

/// Leaves of what the client accepts what its answer is: `gzip`, or nothing said. So whoever makes the answer and whoever
/// packs it are of one mind.
pub async fn settle(mut request: Request) -> Request {
    let is_packed = prefers_gzip(request.headers());
    request.headers_mut().remove(ACCEPT_ENCODING);
    if is_packed {
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    request
}

/// Whether an answer is packed, of a request that is settled.
pub fn is_packed(headers: &HeaderMap) -> bool {
    headers.contains_key(ACCEPT_ENCODING)
}

/// Whether gzip is accepted, and rather than what is not packed, if that is said.
fn prefers_gzip(headers: &HeaderMap) -> bool {
    let said = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let (mut gzip, mut plain) = (0.0, 0.0);
    for coding in said.flat_map(|value| value.split(',')) {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let quality = quality.trim().to_ascii_lowercase();
        let Some(Ok(quality)) = quality.strip_prefix("q=").map(str::parse::<f32>) else { continue };
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => gzip = quality,
            "identity" => plain = quality,
            _ => {}
        }
    }
    gzip > plain
}

/// What frames of LZ4 hold, one after the other.
fn unpacked(app: &App, packed: &[u8]) -> Result<Vec<u8>, Error> {
    let wrong = |what: &dyn std::fmt::Display| Error::cannot_decompress(format!("Cannot decompress: {what}"));
    let mut plain = Vec::new();
    if packed.is_empty() {
        return Ok(plain);
    }
    let mut frames = FrameDecoder::new(Packed { left: packed, is_short: false });
    loop {
        app.session.check_memory(BODY_STEP_BYTES)?;
        let step = frames.by_ref().take(BODY_STEP_BYTES as u64).read_to_end(&mut plain);
        let read = step.map_err(|error| wrong(&error))?;
        if plain.len() > BODY_BYTES_MAX {
            return Err(wrong(&format!("the body holds more than {BODY_BYTES_MAX} bytes")));
        }
        if read < BODY_STEP_BYTES {
            // The end of a frame, or of what there is of one.
            match frames.get_ref() {
                Packed { is_short: true, .. } => return Err(wrong(&"the body ends within a frame")),
                Packed { left: [], .. } => return Ok(plain),
                Packed { .. } => {}
            }
        }
    }
}

/// Bytes that know whether more of them were asked for than there are: a frame that breaks off between two blocks ends for
/// its decoder as one that is whole, but its decoder has looked for its end.
struct Packed<'a> {
    left: &'a [u8],
    is_short: bool,
}

impl Read for Packed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_short |= self.left.is_empty();
        self.left.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_packed_for_who_prefers_that() {
        for (said, is_packed) in [
            (&["gzip"][..], true),
            (&["deflate, GZIP;q=0.5"], true),
            (&["br", "x-gzip"], true),
            (&["identity;q=0.5, gzip;q=1.0"], true),
            (&["gzip;q=0"], false),
            (&["gzip; q=0.000"], false),
            (&["identity, gzip;q=0.5"], false),
            (&["br, gzipped, *"], false),
            (&["gzip;q=many"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            said.iter().for_each(|said| _ = headers.append(ACCEPT_ENCODING, HeaderValue::from_static(said)));
            assert_eq!(prefers_gzip(&headers), is_packed, "{said:?}");
        }
    }
}
