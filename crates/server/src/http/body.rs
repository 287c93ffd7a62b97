//! A body that is read whole before it is looked at.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use granary_sql::Error;

use super::exception::Exception;
use crate::limits::BODY_BYTES_MAX;

/// Its bytes, unpacked.
pub struct WholeBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for WholeBody {
    type Rejection = Exception;

    async fn from_request(request: Request, state: &S) -> Result<Self, Exception> {
        let read = Bytes::from_request(request, state).await;
        let body = read.map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Error::query_is_too_large(format!("The body holds more than {BODY_BYTES_MAX} bytes"))
            }
            _ => Error::cannot_decompress(format!("The body cannot be read: {}", error.body_text())),
        })?;
        Ok(Self(body))
    }
}
