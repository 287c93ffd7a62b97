//! Who sends a request: user and password in headers, in the URL, or by HTTP's own Basic, as ClickHouse takes them.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use granary_sql::{Error, Rights, Session};

use super::App;
use super::exception::Exception;
use super::waiting::may_wait;
use crate::access::DEFAULT_USER;

/// Somebody who may come in.
pub struct Caller {
    pub app: Arc<App>,
    pub user: String,
    pub rights: Rights,
}

impl Caller {
    /// A session of the caller's own.
    pub fn session(&self) -> Session {
        self.app.session.another(self.user.clone(), self.rights.clone())
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Exception;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Exception> {
        let (user, password) = credentials(parts)?;
        let rights = if app.users.is_quick(&user, &password) {
            app.users.authenticate(&user, &password)
        } else {
            let (app, user) = (Arc::clone(app), user.clone());
            may_wait(move || app.users.authenticate(&user, &password)).await
        }?;
        Ok(Self { app: Arc::clone(app), user, rights })
    }
}

fn credentials(parts: &Parts) -> Result<(String, String), Exception> {
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(user) = header("x-clickhouse-user") {
        return Ok((user, header("x-clickhouse-key").unwrap_or_default()));
    }
    if let Some(basic) = header(AUTHORIZATION.as_str()) {
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
    use super::basic_credentials;

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
