//! One conversation over HTTP: a request with a body, an answer that is read whole. What HTTP and CLICKHOUSE
//! share.

use super::lost_connection::is_broken;
use super::tls::Trusted;
use crate::config::HIDDEN;
use crate::error::{Code, DictError};
use crate::limits;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue, Response, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Error, SendBody};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Client errors of a server that answers no request, or none of this USER.
const OF_ALL: [StatusCode; 7] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::PROXY_AUTHENTICATION_REQUIRED,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_MANY_REQUESTS,
];

/// Asks one URL, over one connection that is kept.
pub(super) struct Client {
    agent: Agent,
    url: String,
    /// The URL as errors show it.
    shown: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
    /// Maximum bytes of an answer that is read whole, unpacked.
    answer_bytes_max: u64,
}

impl Client {
    /// # Errors
    /// `BAD_ARGUMENTS` for a header that is none.
    pub fn new<'a>(
        url: String,
        headers: impl Iterator<Item = (&'a str, String)>,
        timeout: Duration,
    ) -> Result<Client, DictError> {
        let headers = headers.map(|(name, value)| {
            // The value may be a secret: the message has the name alone.
            let wrong = || DictError::bad_arguments(format!("'{name}' is no header, or its value is none"));
            Ok((
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?,
                HeaderValue::from_str(&value).map_err(|_| wrong())?,
            ))
        });
        let mut config = Agent::config_builder();
        if url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:")) {
            config = config.tls_config(tls()?);
        }
        let config = config
            .user_agent(concat!("Granary/", env!("CARGO_PKG_VERSION")))
            .accept("")
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(timeout))
            // Statuses other than 200 become errors of ours, with the server's message.
            .http_status_as_error(false)
            .max_redirects(0)
            // SOURCE(..) names the server to ask; no environment variable does.
            .proxy(None)
            .build();
        Ok(Client {
            agent: config.into(),
            shown: shown_url(&url, HIDDEN),
            url,
            headers: headers.collect::<Result<_, DictError>>()?,
            timeout,
            answer_bytes_max: limits::ANSWER_BYTES_MAX,
        })
    }

    /// The answer to a body that is sent in chunks.
    pub fn post(&self, body: &[u8]) -> Result<Vec<u8>, DictError> {
        let answer = reader(self.posted(body)?);
        let (mut bytes, most) = (Vec::new(), self.answer_bytes_max);
        answer.take(most + 1).read_to_end(&mut bytes).map_err(|e| self.error(e.into()))?;
        match bytes.len() as u64 > most {
            false => Ok(bytes),
            true => {
                let text = format!("{}: an answer of more than {most} bytes", self.shown);
                Err(DictError::new(Code::LimitExceeded, text))
            }
        }
    }

    /// Like [`post`](Self::post), but the answer is read while it comes.
    pub fn post_and_read(&self, body: &[u8]) -> Result<impl Read, DictError> {
        Ok(reader(self.posted(body)?))
    }

    /// The answer to a GET, read while it comes.
    pub fn get(&self) -> Result<impl Read, DictError> {
        let response = self.respond(|| {
            let mut request = self.agent.get(&self.url);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            request.call()
        })?;
        Ok(reader(response))
    }

    fn posted(&self, body: &[u8]) -> Result<Response<Body>, DictError> {
        self.respond(|| {
            let mut request = self.agent.post(&self.url);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            request.send(SendBody::from_reader(&mut &*body))
        })
    }

    /// An answer with status 200, its body to be read.
    fn respond(&self, ask: impl Fn() -> Result<Response<Body>, Error>) -> Result<Response<Body>, DictError> {
        let response = match ask() {
            // The server may have closed a connection that was kept, just when it was used again. Asking
            // twice for rows changes nothing.
            Err(Error::Io(e)) if is_broken(&e) => ask(),
            other => other,
        };
        let response = response.map_err(|e| self.error(e))?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let code = match status.is_redirection() {
            true => Code::TooManyRedirects,
            false => Code::ReceivedErrorFromRemoteIoServer,
        };
        // As much as fits into a message, or came.
        let mut said = Vec::new();
        let _ = reader(response).take(limits::STDERR_TAIL_BYTES as u64).read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let colon = if said.trim().is_empty() { "" } else { ": " };
        let error = DictError::new(code, format!("{} answered {status}{colon}{}", self.shown, said.trim()));
        Err(error.of_request(status.is_client_error() && !OF_ALL.contains(&status)))
    }

    fn error(&self, e: Error) -> DictError {
        let (code, text) = match e {
            Error::Timeout(_) => {
                let text = format!("{}: no whole answer within {} ms", self.shown, self.timeout.as_millis());
                return DictError::new(Code::TimeoutExceeded, text);
            }
            Error::BadUri(_) | Error::Http(_) => (Code::BadArguments, e.to_string()),
            other => (Code::NetworkError, other.to_string()),
        };
        // The error may name the URL, too.
        DictError::new(code, format!("{}: {}", self.shown, text.replace(&self.url, &self.shown)))
    }
}

fn reader(response: Response<Body>) -> impl Read {
    response.into_body().into_reader()
}

/// Trusts servers whose certificates the system trusts.
fn tls() -> Result<TlsConfig, DictError> {
    let trusted = Trusted::read(None)?;
    let certificates: Vec<Certificate<'static>> = parse_pem(&trusted.pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
            Ok(_) => None,
            Err(e) => Some(Err(trusted.failed(&e))),
        })
        .collect::<Result<_, _>>()?;
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

/// A URL, or what follows one, as it is shown: the part after its question mark may be a secret.
pub(super) fn shown_url(url: &str, hidden: &str) -> String {
    match url.split_once('?') {
        Some((url, query)) if !query.is_empty() => format!("{url}?{hidden}"),
        _ => url.to_string(),
    }
}

/// `Authorization: Basic ..`.
pub(super) fn basic(user: &str, password: &str) -> (&'static str, String) {
    ("Authorization", format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    use std::net::TcpListener;

    /// Answers one request with `count` packed zeros.
    fn zeros(status: &'static str, count: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&vec![b'0'; count]).unwrap();
            let packed = packed.finish().unwrap();
            let (mut client, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"0\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let length = packed.len();
            write!(client, "HTTP/1.1 {status}\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n")
                .unwrap();
            client.write_all(&packed).unwrap();
        });
        url
    }

    #[test]
    fn an_answer_is_as_long_as_it_is_unpacked() {
        let ask = |status, count| {
            let timeout = Duration::from_secs(20);
            let client = Client::new(zeros(status, count), std::iter::empty(), timeout).unwrap();
            Client { answer_bytes_max: 100_000, ..client }.post(b"keys")
        };
        assert_eq!(ask("200 OK", 100_000).unwrap(), vec![b'0'; 100_000]);
        let error = ask("200 OK", 100_001).unwrap_err();
        assert_eq!(error.kind(), Code::LimitExceeded);
        assert!(error.message().ends_with("an answer of more than 100000 bytes"), "{error}");
        let said = ask("500 Internal Server Error", 10_000_000).unwrap_err();
        assert!(said.message().len() < limits::STDERR_TAIL_BYTES + 100, "{}", said.message().len());
        assert!(said.message().ends_with("0000"), "what came of it is said");
    }
}
