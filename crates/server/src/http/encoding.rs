//! Encodings of bodies: gzip, or LZ4, in which clickhouse-connect sends rows. A body is unpacked when it is read, after
//! the user is authenticated. Several members, or frames, in a row are one body: logs that are appended to and files of
//! bgzip are such. Answers are packed by a layer, always by gzip.

use std::io;
use std::sync::Arc;

use async_compression::tokio::bufread::GzipDecoder;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use granary_sql::Error;
use tokio_stream::StreamExt;
use tokio_util::io::{ReaderStream, StreamReader};

use super::App;
use super::body::read_whole;
use super::exception::Exception;
use super::lz4::unpacked;
use super::waiting::{Work, run_blocking};
use crate::limits::CHUNK_BYTES;

/// Unpacks a request's body as its header says, and refuses unknown encodings.
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

/// All members of a gzip body, unpacked as they arrive.
fn gunzipped(body: Body) -> Body {
    let packed = body.into_data_stream().map(|piece| piece.map_err(io::Error::other));
    let mut members = GzipDecoder::new(StreamReader::new(packed));
    members.multiple_members(true);
    Body::from_stream(ReaderStream::with_capacity(members, CHUNK_BYTES))
}

/// All frames of an LZ4 body, unpacked when the last has arrived.
fn unpacked_once_read(app: Arc<App>, body: Body) -> Body {
    Body::from_stream(futures::stream::once(async move {
        let packed = read_whole(&app, body).await?;
        let check_memory = move |bytes| app.session.check_memory(bytes);
        run_blocking(Work::Lookup, move || unpacked(&packed, check_memory)).await.map(Bytes::from)
    }))
}

/// Reduces the encodings that the client accepts to that of the answer: `gzip`, or none. So the handler and the layer
/// that packs agree.
pub async fn settle(mut request: Request) -> Request {
    let is_packed = prefers_gzip(request.headers());
    request.headers_mut().remove(ACCEPT_ENCODING);
    if is_packed {
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    request
}

/// Whether the answer to a settled request is packed.
pub fn is_packed(headers: &HeaderMap) -> bool {
    headers.contains_key(ACCEPT_ENCODING)
}

/// Whether gzip is accepted and preferred over an unpacked answer, if preferences are given.
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
