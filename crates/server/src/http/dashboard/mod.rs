//! The page at `/`, for people: all dictionaries, memcached and volumes, now and over time, and a box for queries.

mod history;
mod series;

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};
use granary_sql::Error;

use super::caller::Caller;
use super::exception::Exception;
use super::url_parameters::UrlParameters;
pub use history::History;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Everything the page needs comes from this server, and only its own script runs.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Whether a browser asks, and not a program that expects ClickHouse's greeting.
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

/// GET `/dashboard/style.css`. It has no secrets, and needs no login.
pub async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

/// GET `/dashboard/script.js`, without login, too.
pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

/// A file that browsers revalidate each time: after an upgrade all parts of the page are of one version.
fn file(content_type: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache")], text).into_response()
}

/// GET `/dashboard/history`: the figures that the page draws, after the Unix second `since`.
pub async fn history(
    caller: Caller,
    UrlParameters(parameters): UrlParameters,
) -> Result<Response, Exception> {
    let since = parameters.get("since").map_or(Ok(0), |since| since.parse::<u64>());
    let since = since.map_err(|_| Error::bad_arguments("since is not a time in Unix seconds"))?;
    let history = caller.app.history.read(&caller.rights, since);
    Ok(([(CONTENT_TYPE, "application/json")], history.to_string()).into_response())
}
