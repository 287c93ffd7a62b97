//! ClickHouse's HTTP interface: a query in the URL, in the body, or begun in one and ended in the other.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use granary_sql::format::Format;
use granary_sql::{Access, Error, Session};
use tokio::runtime::Handle;

use super::answer;
use super::exception::Exception;

const FORMAT: HeaderName = HeaderName::from_static("x-clickhouse-format");
const DATABASE: HeaderName = HeaderName::from_static("x-clickhouse-database");
const TIME_ZONE: HeaderName = HeaderName::from_static("x-clickhouse-timezone");
const DISPLAY_NAME: HeaderName = HeaderName::from_static("x-clickhouse-server-display-name");

type Parameters = Query<HashMap<String, String>>;

/// GET: the query is in the URL; without one this is ClickHouse's greeting. Browsers and caches send it without
/// being asked, so it changes nothing.
pub async fn run_get(
    State(session): State<Arc<Session>>,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Response, Exception> {
    if parameters.contains_key("query") {
        run(session, parameters, headers, String::new(), Access::ReadOnly).await
    } else {
        Ok("Ok.\n".into_response())
    }
}

/// POST: what the URL has of the query comes before the body.
pub async fn run_post(
    State(session): State<Arc<Session>>,
    Query(parameters): Parameters,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Exception> {
    run(session, parameters, headers, body, Access::Full).await
}

async fn run(
    session: Arc<Session>,
    parameters: HashMap<String, String>,
    headers: HeaderMap,
    body: String,
    access: Access,
) -> Result<Response, Exception> {
    let text = match parameters.get("query") {
        Some(query) if body.is_empty() => query.clone(),
        Some(query) => format!("{query}\n{body}"),
        None => body,
    };
    let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let default_format = match parameters.get("default_format").map(String::as_str).or(header(FORMAT)) {
        Some(name) => name.parse()?,
        None => Format::TabSeparated,
    };
    let database = parameters.get("database").map(String::as_str).or(header(DATABASE));
    let session = session.another()?;
    if let Some(database) = database {
        session.set_database(database)?;
    }
    let statements = session.split(&text)?;
    let [statement] = statements.as_slice() else {
        let message = match statements.len() {
            0 => "Empty query",
            _ => "Multi-statements are not allowed",
        };
        return Err(Error::syntax_error(message).into());
    };
    let mut output = session.execute_with(statement, access).await?;
    let chosen = output.format.unwrap_or(default_format);
    let body = answer::written(move |out| {
        // The session owns what the query reads from.
        let _session = session;
        if !output.has_columns() {
            return Ok(());
        }
        output.write(&Handle::current(), chosen, out)
    })
    .await?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(answer::content_type(chosen))),
        (FORMAT, HeaderValue::from_static(chosen.name())),
        (TIME_ZONE, HeaderValue::from_static("UTC")),
        (DISPLAY_NAME, HeaderValue::from_static("granary")),
    ];
    Ok((headers, body).into_response())
}
