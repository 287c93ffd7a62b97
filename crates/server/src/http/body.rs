//! A body that is read whole before it is used. The bytes of all bodies count as memory of queries.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use granary_sql::Error;
use tokio_stream::StreamExt;

use super::App;
use super::exception::Exception;
use super::unread::read_off;
use crate::limits::{BODY_BYTES_MAX, BODY_STEP_BYTES, UNREAD_BYTES_MAX};

/// The body's bytes, unpacked.
pub struct WholeBody(pub Vec<u8>);

impl FromRequest<Arc<App>> for WholeBody {
    type Rejection = Exception;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Exception> {
        Ok(Self(read_whole(app, request.into_body()).await?))
    }
}

/// Reads all of a body.
///
/// # Errors
/// QUERY_IS_TOO_LARGE, MEMORY_LIMIT_EXCEEDED, and errors of transfer or unpacking.
pub async fn read_whole(app: &App, body: Body) -> Result<Vec<u8>, Error> {
    let mut pieces = body.into_data_stream();
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(unread)?;
        // An unpacked body comes in one piece, which is not copied.
        if whole.is_empty() && piece.len() <= BODY_BYTES_MAX {
            whole = Vec::from(piece);
            continue;
        }
        let room = match whole.len() + piece.len() {
            len if len > BODY_BYTES_MAX => {
                let message = format!("The body holds more than {BODY_BYTES_MAX} bytes");
                Err(Error::query_is_too_large(message))
            }
            _ => check_room(app, whole.len(), piece.len()),
        };
        if let Err(error) = room {
            drop(whole);
            // A client that is still sending reads no answer.
            read_off(&mut pieces, UNREAD_BYTES_MAX).await;
            return Err(error);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

/// Checks memory for `more` bytes of a body that has `held` bytes. Short bodies are not checked.
///
/// # Errors
/// MEMORY_LIMIT_EXCEEDED.
pub fn check_room(app: &App, held: usize, more: usize) -> Result<(), Error> {
    // Memory is checked a whole step at a time.
    match (held + more) / BODY_STEP_BYTES > held / BODY_STEP_BYTES {
        true => app.session.check_memory(more.max(BODY_STEP_BYTES)),
        false => Ok(()),
    }
}

/// The error of a body that cannot be read: our own, if we refused it.
pub fn unread(error: axum::Error) -> Error {
    let error = error.into_inner();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
    while let Some(known) = cause {
        if let Some(known) = known.downcast_ref::<Error>() {
            return known.clone();
        }
        cause = known.source();
    }
    Error::cannot_decompress(format!("The body cannot be read: {error}"))
}
