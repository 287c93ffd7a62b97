//! The page at `/`, for people: every dictionary at a glance, and a box for queries.

mod history;

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};

use super::caller::Caller;
pub use history::History;

const PAGE: &str = include_str!("page.html");

/// Everything that the page needs is in it or comes from this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Whether a browser asks, and not a program that wants ClickHouse's greeting.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

/// GET `/dashboard`, and `/` for browsers.
pub async fn page(_: Caller) -> Response {
    ([(CONTENT_SECURITY_POLICY, POLICY)], Html(PAGE)).into_response()
}

/// GET `/dashboard/history`: what the page draws over time.
pub async fn history(caller: Caller) -> Response {
    let rights = &caller.rights;
    let history = caller.app.history.read(|name| rights.may_read(name));
    ([(CONTENT_TYPE, "application/json")], history.to_string()).into_response()
}
