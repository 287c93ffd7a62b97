//! HTTP(..).

use super::format::Format;
use super::{Kind, no_expressions};
use crate::config::HIDDEN;
use crate::config::node::{Node, Parameters, Settings, Value};
use crate::definition::Structure;
use crate::error::{Code, DictError};
use std::fmt;

/// HTTP(URL '..' FORMAT f [ENDPOINT '..'] [CREDENTIALS(USER '..' PASSWORD '..')]
/// [HEADERS(HEADER(NAME '..' VALUE '..') ..)]): a server that is sent keys and answers rows.
#[derive(Clone, PartialEq)]
pub struct HttpConfig {
    /// URL, `http://..` or `https://..`.
    pub url: String,
    /// ENDPOINT, which goes behind the URL; empty: nothing.
    pub endpoint: String,
    /// FORMAT of keys and rows.
    pub format: Format,
    /// CREDENTIALS, for basic authentication.
    pub credentials: Option<Credentials>,
    /// HEADERS, sent with each request.
    pub headers: Vec<Header>,
}

/// Who asks.
#[derive(Clone, PartialEq)]
pub struct Credentials {
    /// USER.
    pub user: String,
    /// PASSWORD.
    pub password: String,
}

/// A header of a request; its value may be a secret.
#[derive(Clone, PartialEq)]
pub struct Header {
    /// NAME.
    pub name: String,
    /// VALUE.
    pub value: String,
}

const PARAMETERS: Parameters = Parameters {
    allowed: &["URL", "ENDPOINT", "FORMAT", "CREDENTIALS", "HEADERS"],
    idle: &["UPDATE_FIELD", "UPDATE_LAG"],
    refused: &[],
};
const CREDENTIALS: Parameters = Parameters { allowed: &["USER", "PASSWORD"], idle: &[], refused: &[] };
const HEADER: Parameters = Parameters { allowed: &["NAME", "VALUE"], idle: &[], refused: &[] };

impl HttpConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<HttpConfig, DictError> {
        let settings = Settings::of("SOURCE", "HTTP", nodes, &PARAMETERS)?;
        let url = settings.required("URL")?.to_string();
        let is_known =
            |scheme: &str| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let problem = match url.split_once("://") {
            Some((scheme, _)) if !is_known(scheme) => Some("must begin with http:// or https://"),
            None => Some("must begin with http:// or https://"),
            Some((_, rest)) if rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')) => {
                Some("holds a user; give it in CREDENTIALS(USER '..' PASSWORD '..')")
            }
            Some(_) => None,
        };
        if let Some(problem) = problem {
            return Err(settings.error("URL", problem));
        }
        Ok(HttpConfig {
            url,
            endpoint: settings.text("ENDPOINT")?.unwrap_or_default().to_string(),
            format: Format::parse("HTTP", settings.required("FORMAT")?)?,
            credentials: settings.group("CREDENTIALS")?.map(Credentials::take).transpose()?,
            headers: Header::take_all(settings.group("HEADERS")?.unwrap_or_default())?,
        })
    }

    /// URL and ENDPOINT, with one slash between them.
    pub fn whole_url(&self) -> String {
        match (self.url.strip_suffix('/'), self.endpoint.as_str()) {
            (_, "") => self.url.clone(),
            (Some(url), endpoint) if endpoint.starts_with('/') => format!("{url}{endpoint}"),
            (None, endpoint) if !endpoint.starts_with('/') => format!("{}/{endpoint}", self.url),
            (_, endpoint) => format!("{}{endpoint}", self.url),
        }
    }

    /// The same, asked as nobody.
    pub(super) fn anonymous(&self) -> HttpConfig {
        let nameless = |header: &Header| Header { name: header.name.clone(), value: String::new() };
        HttpConfig { credentials: None, headers: self.headers.iter().map(nameless).collect(), ..self.clone() }
    }
}

/// A URL, or what goes behind one, as it is shown: what it says behind its question mark may be a secret.
pub(crate) fn shown_url(url: &str) -> String {
    match url.split_once('?') {
        Some((url, query)) if !query.is_empty() => format!("{url}?{HIDDEN}"),
        _ => url.to_string(),
    }
}

impl Credentials {
    fn take(nodes: &[Node]) -> Result<Credentials, DictError> {
        let settings = Settings::of("SOURCE", "HTTP(CREDENTIALS)", nodes, &CREDENTIALS)?;
        let text = |name| Ok::<_, DictError>(settings.text(name)?.unwrap_or_default().to_string());
        Ok(Credentials { user: text("USER")?, password: text("PASSWORD")? })
    }
}

impl Header {
    fn take_all(nodes: &[Node]) -> Result<Vec<Header>, DictError> {
        nodes.iter().map(Header::take).collect()
    }

    fn take(node: &Node) -> Result<Header, DictError> {
        if node.name != "HEADER" {
            let text = format!(
                "SOURCE(HTTP): HEADERS holds {}; allowed are HEADER(NAME '..' VALUE '..')",
                node.name
            );
            return Err(DictError::new(Code::UnknownSetting, text));
        }
        let settings =
            Settings::of("SOURCE", "HTTP(HEADERS(HEADER))", node.settings("SOURCE(HTTP)")?, &HEADER)?;
        Ok(Header {
            name: settings.required("NAME")?.to_string(),
            value: settings.text("VALUE")?.unwrap_or_default().to_string(),
        })
    }
}

impl Kind for HttpConfig {
    fn name(&self) -> &'static str {
        "HTTP"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let shown = |url: &str| hidden.map_or_else(|| url.to_string(), |_| shown_url(url));
        let mut nodes = vec![Node::text("URL", shown(&self.url))];
        if !self.endpoint.is_empty() {
            nodes.push(Node::text("ENDPOINT", shown(&self.endpoint)));
        }
        nodes.push(Node::text("FORMAT", self.format.name()));
        let secret = |name: &str, text: &str| Node::text(name, hidden.unwrap_or(text));
        let group = |name: &str, nodes| Node { name: name.to_string(), value: Value::Group(nodes) };
        if let Some(Credentials { user, password }) = &self.credentials {
            nodes.push(group("CREDENTIALS", vec![Node::text("USER", user), secret("PASSWORD", password)]));
        }
        let header = |header: &Header| {
            group("HEADER", vec![Node::text("NAME", &header.name), secret("VALUE", &header.value)])
        };
        if !self.headers.is_empty() {
            nodes.push(group("HEADERS", self.headers.iter().map(header).collect()));
        }
        nodes
    }

    fn describe(&self) -> String {
        shown_url(&self.whole_url())
    }

    fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        no_expressions("http", structure)
    }
}

impl fmt::Debug for HttpConfig {
    /// As it is shown elsewhere.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig").field("url", &self.describe()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Credentials {
    /// Without the password, which debug output must not leak.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Debug for Header {
    /// Without the value, which debug output must not leak.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("name", &self.name).finish_non_exhaustive()
    }
}
