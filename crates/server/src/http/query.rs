//! ClickHouse's HTTP interface: a query in the URL, in the body, or begun in one and continued in the other.

use std::sync::Arc;
use std::time::Instant;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use granary_sql::format::Format;
use granary_sql::{Access, Error, Session};

use super::answer::{self, Compression, Delivery, LateException};
use super::blocks;
use super::body::WholeBody;
use super::caller::Caller;
use super::dashboard;
use super::encoding;
use super::exception::Exception;
use super::sessions::Lease;
use super::url::Parameters;
use super::url_parameters::UrlParameters;
use super::waiting::{Work, run_blocking};
use crate::limits::{ANSWER_BYTES_HELD_MAX, ANSWER_BYTES_HELD_MIN, BODY_BYTES_MAX};

const FORMAT: HeaderName = HeaderName::from_static("x-clickhouse-format");
const DATABASE: HeaderName = HeaderName::from_static("x-clickhouse-database");
const SUMMARY: HeaderName = HeaderName::from_static("x-clickhouse-summary");
const EXCEPTION_TAG: HeaderName = HeaderName::from_static("x-clickhouse-exception-tag");

/// URL parameters that belong to the request and are not settings.
const OF_THE_REQUEST: &[&str] = &[
    "buffer_size",
    "client_protocol_version",
    "close_session",
    "compress",
    "database",
    "decompress",
    "default_format",
    "enable_http_compression",
    "password",
    "query",
    "query_id",
    "quota_key",
    "role",
    "session_check",
    "session_id",
    "session_timeout",
    "stacktrace",
    "user",
    "wait_end_of_query",
];

/// GET: the query in the URL; without one, the dashboard or ClickHouse's greeting. Browsers and caches send GET
/// unasked, so it changes nothing.
pub async fn run_get(
    mut caller: Caller,
    UrlParameters(parameters): UrlParameters,
    headers: HeaderMap,
) -> Result<Response, Exception> {
    if !parameters.contains_key("query") {
        return Ok(match dashboard::is_wanted(&headers) {
            true => dashboard::page(caller).await,
            false => "Ok.\n".into_response(),
        });
    }
    caller.rights.access = Access::ReadOnly;
    run(caller, parameters, headers, Vec::new()).await
}

/// POST: the URL's part of the query comes before the body.
pub async fn run_post(
    caller: Caller,
    UrlParameters(parameters): UrlParameters,
    headers: HeaderMap,
    WholeBody(body): WholeBody,
) -> Result<Response, Exception> {
    let is_form = |value: &HeaderValue| value.as_bytes().starts_with(b"multipart/form-data");
    if headers.get(CONTENT_TYPE).is_some_and(is_form) {
        let what = "Forms are not read here: the query is the body, and its parameters are in the URL";
        return Err(Error::not_implemented(what).into());
    }
    let body = if is_on(&parameters, "decompress") {
        let app = Arc::clone(&caller.app);
        run_blocking(Work::Query, move || {
            app.session.check_memory(blocks::plain_len(&body).min(BODY_BYTES_MAX))?;
            Ok(blocks::decompress(&body, BODY_BYTES_MAX)?)
        })
        .await?
    } else {
        body
    };
    run(caller, parameters, headers, body).await
}

fn is_on(parameters: &Parameters, name: &str) -> bool {
    parameters.get(name).is_some_and(|value| value != "0")
}

/// The value of a header, or else of the URL; an empty text is none.
fn header_or_url<'a>(
    headers: &'a HeaderMap,
    header: HeaderName,
    parameters: &'a Parameters,
    parameter: &str,
) -> Result<Option<&'a str>, Error> {
    let said = headers.get(&header).map(|value| std::str::from_utf8(value.as_bytes())).transpose();
    let said = said.map_err(|_| Error::cannot_parse_text(format!("The header {header} is not UTF-8")))?;
    let in_url = || parameters.get(parameter).map(String::as_str);
    Ok(said.filter(|text| !text.is_empty()).or_else(in_url).filter(|text| !text.is_empty()))
}

/// When an answer begins, by the URL or else by settings.
fn delivery(session: &Session, parameters: &Parameters, late: LateException) -> Result<Delivery, Error> {
    let waits = match parameters.contains_key("wait_end_of_query") {
        true => is_on(parameters, "wait_end_of_query"),
        false => session.is_on("http_wait_end_of_query"),
    };
    if waits {
        return Ok(Delivery::Whole);
    }
    let said =
        parameters.get("buffer_size").cloned().or_else(|| session.setting("http_response_buffer_size"));
    let said = said.unwrap_or_default();
    let bytes: u64 = said.parse().map_err(|_| {
        Error::bad_arguments(format!("buffer_size is a number of bytes, and cannot be {said}"))
    })?;
    let hold_bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(ANSWER_BYTES_HELD_MIN);
    if hold_bytes > ANSWER_BYTES_HELD_MAX {
        let message =
            format!("buffer_size is at most {ANSWER_BYTES_HELD_MAX} bytes here, and cannot be {bytes}");
        return Err(Error::bad_arguments(message));
    }
    Ok(Delivery::AsWritten { hold_bytes, late })
}

async fn run(
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Vec<u8>,
) -> Result<Response, Exception> {
    let started = Instant::now();
    let default_format = match header_or_url(&headers, FORMAT, &parameters, "default_format")? {
        Some(name) => name.parse()?,
        None => Format::TabSeparated,
    };
    let database = header_or_url(&headers, DATABASE, &parameters, "database")?;
    let leased = prepared(&caller, &parameters, database)?;
    let revision = match parameters.get("client_protocol_version") {
        None => 0,
        Some(revision) => revision.parse().map_err(|_| {
            Error::bad_arguments(format!("client_protocol_version is a number, and cannot be {revision}"))
        })?,
    };
    let late = LateException::new(!encoding::is_packed(&headers));
    let delivery = delivery(&leased.session, &parameters, late)?;
    let (running, query) = (Arc::clone(&leased), parameters.get("query").cloned());
    let (queries, planning) = (caller.app.queries.clone(), caller.app.queries.clone());
    // Tokenizing a long text takes long. Commands wait for sources and the device, and so does the planning of some
    // queries.
    let mut output = run_blocking(Work::Query, move || {
        let session = &running.session;
        planning.block_on(session.execute_one(text(session, query, body)?))
    })
    .await?;
    let chosen = output.format.unwrap_or(default_format);
    let (progress, written) = (output.progress(), output.written);
    let compression = if is_on(&parameters, "compress") { Compression::Blocks } else { Compression::None };
    let body = answer::written(&caller.app, Work::Query, compression, delivery, move |out, gone| {
        // The session owns the query's data. It is released when all is written, before the client sees the end.
        let _leased = leased;
        if !output.has_columns() {
            return Ok(());
        }
        output.end_when(gone);
        output.set_native_revision(revision);
        output.write(&queries, chosen, out)
    })
    .await?;
    let read = progress.read();
    let elapsed = started.elapsed().as_nanos();
    let summary = format!(
        "{{\"read_rows\":\"{}\",\"read_bytes\":\"{}\",\"written_rows\":\"{}\",\
         \"written_bytes\":\"{}\",\"total_rows_to_read\":\"0\",\"result_rows\":\"{}\",\"elapsed_ns\":\"{elapsed}\"}}",
        read.rows_read,
        read.bytes_read,
        written.rows,
        written.bytes,
        progress.rows_answered().max(written.rows)
    );
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(answer::content_type(chosen))),
        (FORMAT, HeaderValue::from_static(chosen.name())),
        (SUMMARY, HeaderValue::from_str(&summary).expect("names and digits")),
        (EXCEPTION_TAG, HeaderValue::from_str(late.tag()).expect("letters")),
    ];
    Ok((headers, body).into_response())
}

/// The URL's part of the query, followed by the body.
fn text(session: &Session, query: Option<String>, body: Vec<u8>) -> Result<Vec<u8>, Error> {
    match query {
        Some(query) if body.is_empty() => Ok(query.into_bytes()),
        Some(query) => {
            session.check_memory(body.len())?;
            Ok([query.as_bytes(), b"\n", &body].concat())
        }
        None => Ok(body),
    }
}

/// The session of one query, and the lock of the named session it is part of.
struct Leased {
    session: Session,
    /// Last, so that the query is dropped entirely before the session's next query may begin.
    _lease: Lease,
}

/// The session that the request names or begins. The request's database and settings hold for its query alone.
fn prepared(
    caller: &Caller,
    parameters: &Parameters,
    database: Option<&str>,
) -> Result<Arc<Leased>, Exception> {
    if let Some(role) = parameters.get("role") {
        let message = format!("There is no role `{role}`: the rights of a user are in the configuration");
        return Err(Error::unknown_role(message).into());
    }
    let lease = caller.app.sessions.find(caller, parameters)?;
    let settings = parameters.iter().filter(|(name, _)| !OF_THE_REQUEST.contains(&name.as_str()));
    let settings = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
    let session = lease.session.for_query(caller.rights.clone(), database, settings)?;
    Ok(Arc::new(Leased { session, _lease: lease }))
}
