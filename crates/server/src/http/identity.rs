//! Headers of each answer to a query, errors too, that identify the server and the query.

use axum::extract::Request;
use axum::http::header::InvalidHeaderValue;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use granary_sql::Error;

use super::exception::Exception;
use super::url;

const TIME_ZONE: HeaderName = HeaderName::from_static("x-clickhouse-timezone");
const DISPLAY_NAME: HeaderName = HeaderName::from_static("x-clickhouse-server-display-name");
const QUERY_ID: HeaderName = HeaderName::from_static("x-clickhouse-query-id");

/// Adds the headers that identify an answer: the query's id and its user. A request whose body cannot be unpacked is
/// answered by another layer.
pub async fn identify(request: Request, next: Next) -> Response {
    if request.uri().path() != "/" {
        return next.run(request).await;
    }
    let Ok(query_id) = query_id(&request) else {
        return Exception(Error::bad_arguments("query_id cannot be sent back in a header")).into_response();
    };
    let mut response = next.run(request).await;
    response.headers_mut().extend([
        (TIME_ZONE, HeaderValue::from_static("UTC")),
        (DISPLAY_NAME, HeaderValue::from_static("granary")),
        (QUERY_ID, query_id),
    ]);
    response
}

/// `query_id` of the URL, or else of the header, or else a new one.
fn query_id(request: &Request) -> Result<HeaderValue, InvalidHeaderValue> {
    // A malformed URL is reported elsewhere.
    let said = url::parameters(request.uri()).ok().and_then(|mut parameters| parameters.remove("query_id"));
    match (said, request.headers().get(QUERY_ID)) {
        (Some(id), _) if !id.is_empty() => HeaderValue::from_str(&id),
        (None, Some(id)) if !id.is_empty() => Ok(id.clone()),
        _ => HeaderValue::from_str(&new_query_id()),
    }
}

/// A random UUID.
fn new_query_id() -> String {
    let random = fastrand::u128(..) & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    let digits = format!("{random:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
