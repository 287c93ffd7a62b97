//! A body that is read whole before it is looked at. What all bodies hold counts as what queries take of RAM.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use granary_sql::Error;
use tokio_stream::StreamExt;

use super::App;
use super::exception::Exception;
use super::unread::read_off;
use crate::limits::{BODY_BYTES_MAX, BODY_STEP_BYTES, UNREAD_BYTES_MAX};

/// Its bytes, unpacked.
pub struct WholeBody(pub Vec<u8>);

impl FromRequest<Arc<App>> for WholeBody {
    type Rejection = Exception;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Exception> {
        Ok(Self(read_whole(app, request.into_body()).await?))
    }
}

/// All of a body.
///
/// # Errors
/// QUERY_IS_TOO_LARGE, MEMORY_LIMIT_EXCEEDED, and what is wrong with how it is sent or packed.
pub async fn read_whole(app: &App, body: Body) -> Result<Vec<u8>, Error> {
    let mut pieces = body.into_data_stream();
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(unread)?;
        // What was unpacked comes in one piece, which is not copied.
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
            // Who is sending yet reads no answer.
            read_off(&mut pieces, UNREAD_BYTES_MAX).await;
            return Err(error);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

/// Whether a body of which `held` bytes are there may hold `more`. What is short is not asked about.
///
/// # Errors
/// MEMORY_LIMIT_EXCEEDED.
pub fn check_room(app: &App, held: usize, more: usize) -> Result<(), Error> {
    // A step is taken at once.
    match (held + more) / BODY_STEP_BYTES > held / BODY_STEP_BYTES {
        true => app.session.check_memory(more.max(BODY_STEP_BYTES)),
        false => Ok(()),
    }
}

/// Why a body cannot be read: in our words if it was us who refused it.
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
