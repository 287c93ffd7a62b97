//! What every answer to a query says of the server and of the query, an error too.

use axum::extract::{Query, Request};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use granary_sql::Error;

use super::exception::Exception;
use super::query::Parameters;

const TIME_ZONE: HeaderName = HeaderName::from_static("x-clickhouse-timezone");
const DISPLAY_NAME: HeaderName = HeaderName::from_static("x-clickhouse-server-display-name");
const QUERY_ID: HeaderName = HeaderName::from_static("x-clickhouse-query-id");

/// Adds the headers by which an answer is known: the query's `query_id` or a new one, and whose it is.
pub async fn identify(request: Request, next: Next) -> Response {
    let parameters = Query::<Parameters>::try_from_uri(request.uri());
    let own = parameters.ok().and_then(|Query(mut parameters)| parameters.remove("query_id"));
    let Ok(query_id) = HeaderValue::from_str(&own.unwrap_or_else(new_query_id)) else {
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

/// A random UUID.
fn new_query_id() -> String {
    let random = fastrand::u128(..) & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    let digits = format!("{random:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
