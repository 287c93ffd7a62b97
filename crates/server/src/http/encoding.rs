//! How a body is packed: `Content-Encoding: lz4`, in which clickhouse-connect sends rows, is unpacked here, gzip by a
//! layer. Neither is before somebody reads the body, who knows by then from whom it is.

use std::io::{self, Read};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
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
