//! How a body is packed: `Content-Encoding: lz4`, in which clickhouse-connect sends rows, is unpacked here, gzip by a
//! layer. Neither is before somebody reads the body, who knows by then from whom it is. And whether an answer is packed:
//! always by gzip, by another layer.

use std::io::{self, Read};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use granary_sql::Error;
use lz4_flex::frame::FrameDecoder;

use super::App;
use super::body::read_whole;
use super::exception::Exception;
use super::waiting::{Work, may_wait};
use crate::limits::{BODY_BYTES_MAX, BODY_STEP_BYTES};

/// Unpacks the body of a request whose header says that it is a frame of LZ4, and refuses what nobody here can unpack.
pub async fn unpack(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match request.headers().get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity" | b"gzip") => return next.run(request).await,
        Some(b"lz4") => {}
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            let message = format!("Unknown Content-Encoding '{other}'; use gzip or lz4, or send it plain");
            return Exception(Error::not_implemented(message)).into_response();
        }
    }
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(CONTENT_ENCODING);
    parts.headers.remove(CONTENT_LENGTH);
    let unpacked = futures::stream::once(async move {
        let packed = read_whole(&app, body).await?;
        may_wait(Work::Lookup, move || unpacked(&app, &packed)).await.map(Bytes::from)
    });
    next.run(Request::from_parts(parts, Body::from_stream(unpacked))).await
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

fn unpacked(app: &App, packed: &[u8]) -> Result<Vec<u8>, Error> {
    let wrong = |what: &dyn std::fmt::Display| Error::cannot_decompress(format!("Cannot decompress: {what}"));
    let mut plain = Vec::new();
    let mut frame = FrameDecoder::new(packed);
    loop {
        app.session.check_memory(BODY_STEP_BYTES)?;
        let step = io::Read::take(&mut frame, BODY_STEP_BYTES as u64);
        let read = { step }.read_to_end(&mut plain).map_err(|error| wrong(&error))?;
        if plain.len() > BODY_BYTES_MAX {
            return Err(wrong(&format!("the body holds more than {BODY_BYTES_MAX} bytes")));
        }
        if read < BODY_STEP_BYTES {
            return Ok(plain);
        }
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
