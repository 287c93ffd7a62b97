//! The dictionary source that a ClickHouse reads by SOURCE(HTTP(...)). Keys come as a body, rows of the keys that were
//! found go back, and never a key that was not asked for: ClickHouse's dictHas on a DIRECT dictionary does not survive
//! one.

use std::ops::Range;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderValue, Version};
use axum::response::{IntoResponse, Response};
use granary_dict::{Dictionary, RowReader};
use granary_sql::arrow::array::{ArrayRef, RecordBatch};
use granary_sql::arrow::compute::filter;
use granary_sql::arrow::datatypes::SchemaRef;
use granary_sql::format::{self, BatchWriter, Format, Statistics};
use granary_sql::{Error, Session};

use super::Scheme;
use super::answer::{self, Compression, Delivery};
use super::body::WholeBody;
use super::caller::Caller;
use super::exception::Exception;
use super::pieces::Pieces;
use super::url::{Parameters, path_part};
use super::url_parameters::UrlParameters;
use super::waiting::{Work, run_blocking};
use crate::limits::{KEY_BYTES_PER_LOOKUP, KEYS_PER_LOOKUP, ROWS_PER_WRITE};

/// The formats of keys and rows: `?format=`, by default RowBinary.
struct Form {
    keys: granary_dict::Format,
    rows: Format,
}

impl Form {
    fn of(parameters: &Parameters) -> Result<Self, Error> {
        Self::or_else(parameters, |name| format!("Keys cannot be read as {name}"))
    }

    /// For rows without keys: a format that ClickHouse reads from a source.
    fn of_rows(parameters: &Parameters) -> Result<Self, Error> {
        Self::or_else(parameters, |name| format!("Rows of a dictionary are not written as {name}"))
    }

    fn or_else(parameters: &Parameters, refusal: impl Fn(&str) -> String) -> Result<Self, Error> {
        let rows = parameters.get("format").map_or(Ok(Format::RowBinary), |name| name.parse())?;
        let keys = granary_dict::Format::named(rows.name()).ok_or_else(|| {
            let is_written = |name: &&str| name.parse::<Format>().is_ok();
            let known: Vec<&str> = granary_dict::Format::names().filter(is_written).collect();
            Error::unknown_format(format!("{}; use {}", refusal(rows.name()), known.join(", ")))
        })?;
        Ok(Self { keys, rows })
    }

    /// A reader of a dictionary's keys, as long as there is memory for them.
    fn key_reader(&self, dictionary: &Dictionary, session: &Session) -> RowReader {
        dictionary.key_reader(self.keys).within_memory(session.memory_check())
    }
}

/// POST: the rows of the keys in the body, looked up while the body arrives.
pub async fn look_up(
    caller: Caller,
    version: Version,
    Path(name): Path<String>,
    UrlParameters(parameters): UrlParameters,
    body: Body,
) -> Result<Response, Exception> {
    let form = Form::of(&parameters)?;
    let session = caller.session();
    let (rows, delivery) = (form.rows, Delivery::of_rows(version));
    // Checked before the body is waited for.
    session.check_dictionary(&name)?;
    let mut pieces = Pieces::of(&caller.app, body).await;
    let body = answer::written(&caller.app, Work::Lookup, Compression::None, delivery, move |out, _| {
        let dictionary = session.dictionary(&name)?;
        dictionary.definition().require_keys()?;
        let schema = dictionary.definition().structure.schema();
        let mut writer = format::open(form.rows, Arc::clone(&schema), out)?;
        let mut keys = form.key_reader(&dictionary, &session);
        let mut gathered = 0;
        let mut ended = false;
        while !ended {
            match pieces.next()? {
                Some(piece) => {
                    gathered += piece.len();
                    keys.push(&piece)?;
                }
                None => {
                    ended = true;
                    keys.finish()?;
                }
            }
            // A source is asked once for many keys, not for each piece of the body.
            if ended || keys.len() >= KEYS_PER_LOOKUP || gathered >= KEY_BYTES_PER_LOOKUP {
                gathered = 0;
                let keys = keys.take()?;
                for range in ranges(keys.first().map_or(0, |column| column.len()), KEYS_PER_LOOKUP) {
                    write_found(&dictionary, &schema, slice(&keys, range), &mut *writer)?;
                }
            }
        }
        writer.finish(Statistics::default())
    })
    .await?;
    Ok(rows_response(rows, body))
}

/// Splits `0..len` into ranges of `step`.
fn ranges(len: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(step).map(move |first| first..len.min(first + step))
}

fn slice(columns: &[ArrayRef], rows: Range<usize>) -> Vec<ArrayRef> {
    columns.iter().map(|column| column.slice(rows.start, rows.len())).collect()
}

/// Looks keys up, then writes the rows found in parts: the client reads them meanwhile.
fn write_found(
    dictionary: &Dictionary,
    schema: &SchemaRef,
    keys: Vec<ArrayRef>,
    writer: &mut dyn BatchWriter,
) -> Result<(), Error> {
    let attributes: Vec<usize> = (0..dictionary.definition().structure.attributes.len()).collect();
    let rows = dictionary.get_rows(&attributes, &keys)?;
    for range in ranges(rows.found().len(), ROWS_PER_WRITE) {
        let found = rows.found().slice(range.start, range.len());
        let columns = slice(&keys, range.clone()).into_iter().chain(rows.columns(range)?);
        // A NULL key in a column that is not Nullable is not found, and filtered out before the schema could refuse it.
        let columns = columns.map(|column| filter(&column, &found)).collect::<Result<_, _>>()?;
        writer.write(&RecordBatch::try_new(Arc::clone(schema), columns)?)?;
    }
    Ok(())
}

/// POST: asks the source for the rows of the keys in the body, whatever is cached.
pub async fn refresh(
    caller: Caller,
    Path(name): Path<String>,
    UrlParameters(parameters): UrlParameters,
    WholeBody(body): WholeBody,
) -> Result<Response, Exception> {
    let form = Form::of(&parameters)?;
    let session = caller.session();
    run_blocking(Work::Lookup, move || {
        let dictionary = session.dictionary_to_renew(&name)?;
        Ok(dictionary.refresh(&form.key_reader(&dictionary, &session).read_all(&body)?)?)
    })
    .await?;
    Ok("Ok.\n".into_response())
}

/// POST: forgets the cached rows of the keys in the body; without a body, all.
pub async fn invalidate(
    caller: Caller,
    Path(name): Path<String>,
    UrlParameters(parameters): UrlParameters,
    WholeBody(body): WholeBody,
) -> Result<Response, Exception> {
    let form = Form::of(&parameters)?;
    let session = caller.session();
    run_blocking(Work::Lookup, move || {
        let dictionary = session.dictionary_to_renew(&name)?;
        if body.is_empty() {
            return Ok(dictionary.reload()?);
        }
        Ok(dictionary.invalidate(&form.key_reader(&dictionary, &session).read_all(&body)?)?)
    })
    .await?;
    Ok("Ok.\n".into_response())
}

/// GET: every row that is resident, or for a DIRECT dictionary every row of its source.
pub async fn all_rows(
    caller: Caller,
    version: Version,
    Path(name): Path<String>,
    UrlParameters(parameters): UrlParameters,
) -> Result<Response, Exception> {
    let form = Form::of_rows(&parameters)?;
    let session = caller.session();
    let (rows, delivery) = (form.rows, Delivery::of_rows(version));
    let body = answer::written(&caller.app, Work::Lookup, Compression::None, delivery, move |out, _| {
        let dictionary = session.dictionary(&name)?;
        let schema = dictionary.definition().rows().schema();
        let mut writer = format::open(form.rows, Arc::clone(&schema), out)?;
        for batch in dictionary.resident()? {
            writer.write(&batch?)?;
        }
        writer.finish(Statistics::default())
    })
    .await?;
    Ok(rows_response(rows, body))
}

/// GET: the statement by which a ClickHouse reads from us, as the user of this request.
pub async fn statement(
    caller: Caller,
    Path(name): Path<String>,
    Extension(Scheme(scheme)): Extension<Scheme>,
    headers: HeaderMap,
) -> Result<Response, Exception> {
    let (session, wanted) = (caller.session(), name.clone());
    let dictionary = run_blocking(Work::Lookup, move || session.dictionary(&wanted)).await?;
    dictionary.definition().require_keys()?;
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:8123");
    let url = format!("{scheme}://{host}/dictionary/{}", path_part(&name));
    let Caller { user, password, .. } = &caller;
    let credentials =
        caller.app.users.requires_password(user, password).then_some((user.as_str(), password.as_str()));
    let statement = dictionary.definition().to_sql_over_http(&url, credentials);
    // The statement may contain a password.
    Ok(([(CACHE_CONTROL, HeaderValue::from_static("no-store"))], statement).into_response())
}

fn rows_response(format: Format, body: Body) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(answer::content_type(format)))], body).into_response()
}
