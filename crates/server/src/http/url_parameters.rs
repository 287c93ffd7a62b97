//! The parameters of a URL, for handlers.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use granary_sql::Error;

use super::exception::Exception;
use super::url::{Parameters, parameters};

/// The parameters of the URL.
pub struct UrlParameters(pub Parameters);

impl<S: Send + Sync> FromRequestParts<S> for UrlParameters {
    type Rejection = Exception;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Exception> {
        Ok(Self(parameters(&parts.uri).map_err(Error::cannot_parse_text)?))
    }
}
