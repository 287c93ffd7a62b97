//! How a body is packed: by gzip, or LZ4, in which clickhouse-connect sends rows. It is unpacked when somebody reads it, who
//! knows by then from whom it is. Several members, or frames, in a row are one body: logs that are appended to and files of
//! bgzip are such. And whether an answer is packed: always by gzip, by a layer.

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
use super::waiting::{Work, may_wait};
use crate::limits::CHUNK_BYTES;

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
        let check_memory = move |bytes| app.session.check_memory(bytes);
        may_wait(Work::Lookup, move || unpacked(&packed, check_memory)).await.map(Bytes::from)
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
