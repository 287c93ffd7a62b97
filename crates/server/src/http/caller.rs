//! Who sends a request: user and password in headers, in the URL, or by HTTP's own Basic, as ClickHouse takes them.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use granary_sql::{Error, Rights, Session};

use super::exception::{BASIC, Exception};
use super::waiting::may_wait;
use super::{App, dashboard};
use crate::access::DEFAULT_USER;

/// Somebody who may come in.
pub struct Caller {
    pub app: Arc<App>,
    pub user: String,
    /// What he sent to prove who he is; empty: nothing.
    pub password: String,
    pub rights: Rights,
}

impl Caller {
    /// A session of the caller's own.
    pub fn session(&self) -> Session {
        self.app.session.another(self.user.clone(), self.rights.clone())
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        Self::of(parts, app).await.map_err(|Exception(error)| {
            let is_unknown = error.code == Error::authentication_failed("").code;
            let mut response = Exception(error).into_response();
            if is_unknown && parts.method == Method::GET && dashboard::is_wanted(&parts.headers) {
                // A browser asks its user for a password then, and sends it with all that the page asks for.
                *response.status_mut() = StatusCode::UNAUTHORIZED;
                response.headers_mut().insert(WWW_AUTHENTICATE, BASIC);
            }
            response
        })
    }
}

impl Caller {
    async fn of(parts: &Parts, app: &Arc<App>) -> Result<Self, Exception> {
        let (user, password) = credentials(parts)?;
        let rights = if app.users.is_quick(&user, &password) {
            app.users.authenticate(&user, &password)
        } else {
            let (app, user, password) = (Arc::clone(app), user.clone(), password.clone());
            may_wait(move || app.users.authenticate(&user, &password)).await
        }?;
        Ok(Self { app: Arc::clone(app), user, password, rights })
    }
}

/// Whether a browser says that a page of somebody else's sends this: the password that it knows is not for that one.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let header = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    match (header(HeaderName::from_static("sec-fetch-site")), header(ORIGIN)) {
        (Some(site), _) => ![&b"same-origin"[..], b"none"].contains(&site),
        (None, None) => false,
        (None, Some(origin)) => {
            let host = header(HOST).unwrap_or_default();
            ![&b"http://"[..], b"https://"].iter().any(|scheme| origin == [scheme, host].concat())
        }
    }
}

fn credentials(parts: &Parts) -> Result<(String, String), Exception> {
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(user) = header("x-clickhouse-user") {
        return Ok((user, header("x-clickhouse-key").unwrap_or_default()));
    }
    if let Some(basic) = header(AUTHORIZATION.as_str()) {
        // GET changes nothing, and its answer is not shown to other pages.
        if parts.method != Method::GET && is_of_another_page(&parts.headers) {
            let message =
                "The browser's password is for this server's own pages, and a page of another one asks";
            return Err(Exception(Error::access_denied(message)));
        }
        return basic_credentials(&basic).ok_or_else(|| {
            let message = "The Authorization header is not Basic with a user and a password";
            Exception(Error::authentication_failed(message))
        });
    }
    let Query(parameters) = Query::<HashMap<String, String>>::try_from_uri(&parts.uri)
        .map_err(|error| Error::bad_arguments(error.body_text()))?;
    let get = |name: &str| parameters.get(name).cloned();
    Ok((get("user").unwrap_or_else(|| DEFAULT_USER.to_owned()), get("password").unwrap_or_default()))
}

fn basic_credentials(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    let decoded =
        BASE64_STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{basic_credentials, is_of_another_page};
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn pages_of_others_are_told_by_their_origin() {
        let is = |headers: &[(&'static str, &'static str)]| {
            let header = |&(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            is_of_another_page(&headers.iter().map(header).collect::<HeaderMap>())
        };
        let host = ("host", "granary:8123");
        for own in [
            &[host][..],
            &[host, ("origin", "http://granary:8123")],
            &[host, ("origin", "https://granary:8123")],
            &[host, ("origin", "https://proxy"), ("sec-fetch-site", "same-origin")],
            &[host, ("sec-fetch-site", "none")],
        ] {
            assert!(!is(own), "{own:?}");
        }
        for other in [
            &[host, ("origin", "http://granary")][..],
            &[host, ("origin", "null")],
            &[host, ("origin", "http://granary:8123"), ("sec-fetch-site", "cross-site")],
            &[host, ("sec-fetch-site", "same-site")],
            &[("origin", "http://evil")],
        ] {
            assert!(is(other), "{other:?}");
        }
    }

    #[test]
    fn basic_is_base64_of_user_and_password() {
        let of =
            |header: &str| basic_credentials(header).map(|(user, password)| format!("{user}/{password}"));
        assert_eq!(of("Basic YW5uOnNlOmNyZXQ=").as_deref(), Some("ann/se:cret"));
        assert_eq!(of("basic YW5uOg==").as_deref(), Some("ann/"));
        for wrong in ["Bearer YW5uOnNlOmNyZXQ=", "Basic", "Basic ?", "Basic YW5u"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
