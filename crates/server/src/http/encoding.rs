//! How a body is packed: `Content-Encoding: lz4`, in which clickhouse-connect sends rows, is unpacked here, gzip by a
//! layer.

use std::io::Read;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use granary_sql::Error;
use lz4_flex::frame::FrameDecoder;

use super::exception::Exception;
use super::waiting::may_wait;
use crate::limits::BODY_BYTES_MAX;

/// Unpacks the body of a request whose header says that it is a frame of LZ4, and refuses what nobody here can unpack.
pub async fn unpack(request: Request, next: Next) -> Response {
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
    match unpacked(body).await {
        Ok(body) => {
            parts.headers.remove(CONTENT_ENCODING);
            parts.headers.remove(CONTENT_LENGTH);
            next.run(Request::from_parts(parts, Body::from(body))).await
        }
        Err(error) => Exception(error).into_response(),
    }
}

async fn unpacked(body: Body) -> Result<Vec<u8>, Error> {
    let wrong = |what: &dyn std::fmt::Display| Error::cannot_decompress(format!("Cannot decompress: {what}"));
    let packed: Bytes = to_bytes(body, BODY_BYTES_MAX).await.map_err(|error| wrong(&error))?;
    may_wait(move || {
        let mut plain = Vec::new();
        let frame = FrameDecoder::new(packed.as_ref());
        frame.take(BODY_BYTES_MAX as u64 + 1).read_to_end(&mut plain).map_err(|error| wrong(&error))?;
        if plain.len() > BODY_BYTES_MAX {
            return Err(wrong(&format!("the body holds more than {BODY_BYTES_MAX} bytes")));
        }
        Ok(plain)
    })
    .await
}
