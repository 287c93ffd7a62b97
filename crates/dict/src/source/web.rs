//! One conversation over HTTP: a request with a body, an answer that is read whole. What HTTP and CLICKHOUSE
//! share.

use crate::config::Credentials;
use crate::error::{Code, DictError};
use crate::limits;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::io;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue, Response, StatusCode};
use ureq::{Agent, Body, Error, SendBody};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks one URL, over one connection that is kept.
pub(super) struct Client {
    agent: Agent,
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    patience: Duration,
}

impl Client {
    /// # Errors
    /// `BAD_ARGUMENTS` for a header that is none.
    pub fn new<'a>(
        url: String,
        headers: impl Iterator<Item = (&'a str, String)>,
        patience: Duration,
    ) -> Result<Client, DictError> {
        let headers = headers.map(|(name, value)| {
            // The value may be a secret: the message has the name alone.
            let wrong = || DictError::bad_arguments(format!("'{name}' is no header, or its value is none"));
            Ok((
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?,
                HeaderValue::from_str(&value).map_err(|_| wrong())?,
            ))
        });
        let config = Agent::config_builder()
            .user_agent(concat!("Granary/", env!("CARGO_PKG_VERSION")))
            .accept("")
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(patience))
            // What is not 200 is an error of ours, with the server's words in it.
            .http_status_as_error(false)
            .max_redirects(0)
            // SOURCE(..) says whom to ask; no environment variable does.
            .proxy(None)
            .build();
        Ok(Client {
            agent: config.into(),
            url,
            headers: headers.collect::<Result<_, DictError>>()?,
            patience,
        })
    }

    /// The answer to a body that is sent in chunks.
    pub fn post(&self, body: &[u8]) -> Result<Vec<u8>, DictError> {
        self.answer(|| {
            let mut request = self.agent.post(&self.url);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            request.send(SendBody::from_reader(&mut &*body))
        })
    }

    pub fn get(&self) -> Result<Vec<u8>, DictError> {
        self.answer(|| {
            let mut request = self.agent.get(&self.url);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            request.call()
        })
    }

    fn answer(&self, ask: impl Fn() -> Result<Response<Body>, Error>) -> Result<Vec<u8>, DictError> {
        let response = match ask() {
            // The server may have closed a connection that was kept, just when it was used again. Asking
            // twice for rows changes nothing.
            Err(Error::Io(e)) if is_broken(&e) => ask(),
            other => other,
        };
        let mut response = response.map_err(|e| self.error(e))?;
        let status = response.status();
        let body = response.body_mut().with_config();
        if status == StatusCode::OK {
            return body.limit(limits::ANSWER_BYTES_MAX).read_to_vec().map_err(|e| self.error(e));
        }
        let code = match status.is_redirection() {
            true => Code::TooManyRedirects,
            false => Code::ReceivedErrorFromRemoteIoServer,
        };
        // As much as fits into a message.
        let body = body.limit(limits::STDERR_TAIL_BYTES as u64).lossy_utf8(true);
        let said = body.read_to_string().unwrap_or_default();
        let colon = if said.trim().is_empty() { "" } else { ": " };
        Err(DictError::new(code, format!("{} answered {status}{colon}{}", self.url, said.trim())))
    }

    fn error(&self, e: Error) -> DictError {
        let (code, text) = match e {
            Error::Timeout(_) => {
                let text = format!("{}: no whole answer within {} ms", self.url, self.patience.as_millis());
                return DictError::new(Code::TimeoutExceeded, text);
            }
            Error::BodyExceedsLimit(limit) => {
                (Code::LimitExceeded, format!("an answer of more than {limit} bytes"))
            }
            Error::BadUri(_) | Error::Http(_) => (Code::BadArguments, e.to_string()),
            other => (Code::NetworkError, other.to_string()),
        };
        DictError::new(code, format!("{}: {text}", self.url))
    }
}

/// `Authorization: Basic ..`.
pub(super) fn basic(credentials: &Credentials) -> (&'static str, String) {
    let Credentials { user, password } = credentials;
    ("Authorization", format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))))
}

fn is_broken(e: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(e.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}
