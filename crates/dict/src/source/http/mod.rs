//! HTTP(URL '..' FORMAT f [ENDPOINT '..'] [CREDENTIALS(USER '..' PASSWORD '..')]
//! [HEADERS(HEADER(NAME '..' VALUE '..') ..)]): a server that is sent keys and answers rows.

mod client;

use self::client::Http;
use super::SourceFactory;
use super::format::names::{Format, read_format};
use super::kind::{Opening, SourceKind};
use super::web::{self, shown_url};
use crate::config::{Identity, Parameter, Parameters, Printed, ValueType, Values};
use crate::error::DictError;
use std::sync::Arc;

const CREDENTIALS: &Parameters = &Parameters::of(&[&[
    Parameter::text("USER").also("USERNAME").or("").printed(Printed::Always),
    Parameter::text("PASSWORD").or("").secret().printed(Printed::Always),
]]);
const HEADER: &Parameters = &Parameters::of(&[&[
    Parameter::text("NAME").required(),
    Parameter::text("VALUE").or("").secret().emptied().printed(Printed::Always),
]]);
const HEADERS: &Parameters = &Parameters::of(&[&[Parameter::new("HEADER", ValueType::Group(HEADER))]]);

const PARAMETERS: &[Parameter] = &[
    Parameter::new("URL", ValueType::Read(read_url)).required().shown(shown_url),
    Parameter::text("ENDPOINT").or("").shown(shown_url),
    Parameter::new("FORMAT", ValueType::Read(read_format)).required().printed(Printed::Always),
    Parameter::new("CREDENTIALS", ValueType::Group(CREDENTIALS)).anonymous(Identity::Nothing),
    Parameter::new("HEADERS", ValueType::List(HEADERS)),
];

pub(super) const KIND: SourceKind = SourceKind {
    takes_collections: true,
    ..SourceKind::new("HTTP", &[PARAMETERS], describe, open).ignoring(&["UPDATE_FIELD", "UPDATE_LAG"])
};

fn read_url(source: &str, parameter: &str, url: &str) -> Result<String, DictError> {
    let is_known = |scheme: &str| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let problem = match url.split_once("://") {
        Some((scheme, _)) if !is_known(scheme) => "must begin with http:// or https://",
        None => "must begin with http:// or https://",
        Some((_, rest)) if rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')) => {
            "holds a user; give it in CREDENTIALS(USER '..' PASSWORD '..')"
        }
        Some(_) => return Ok(url.to_string()),
    };
    Err(DictError::bad_arguments(format!("SOURCE({source}): {parameter} {problem}")))
}

/// URL and ENDPOINT, with one slash between them.
fn whole_url(values: &Values) -> String {
    let (url, endpoint) = (values.text("URL"), values.text("ENDPOINT"));
    match (url.strip_suffix('/'), endpoint) {
        (_, "") => url.to_string(),
        (Some(url), endpoint) if endpoint.starts_with('/') => format!("{url}{endpoint}"),
        (None, endpoint) if !endpoint.starts_with('/') => format!("{url}/{endpoint}"),
        (_, endpoint) => format!("{url}{endpoint}"),
    }
}

fn describe(values: &Values) -> String {
    shown_url(&whole_url(values), crate::config::HIDDEN)
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let pair = |one: &str, other: &str| (one.to_string(), other.to_string());
    let headers =
        values.groups("HEADERS").iter().map(|header| pair(header.text("NAME"), header.text("VALUE")));
    let credentials = values.groups("CREDENTIALS").iter();
    let credentials = credentials.map(|who| {
        let (name, value) = web::basic(who.text("USER"), who.text("PASSWORD"));
        pair(name, &value)
    });
    let headers: Vec<(String, String)> = headers.chain(credentials).collect();
    let (url, format) = (whole_url(values), Format::of(values));
    let Opening { structure, timeout, .. } = opening;
    Ok(Arc::new(move || Ok(Box::new(Http::new(&url, &headers, format, &structure, timeout)?))))
}
