//! The sender of a request: the user that it [claims](super::credentials), and that user's rights.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use granary_sql::{Error, Rights, Session};

use super::credentials::{CredentialsError, is_of_a_page_with_a_name, read_credentials};
use super::exception::{BASIC, Exception};
use super::waiting::{Work, run_blocking};
use super::{App, dashboard};
use crate::access::DEFAULT_USER;

/// An authenticated user.
pub struct Caller {
    pub app: Arc<App>,
    pub user: String,
    /// The password that was sent; empty: none.
    pub password: String,
    pub rights: Rights,
}

impl Caller {
    /// A session of the caller's own.
    pub fn session(&self) -> Session {
        self.app.session.for_user(self.user.clone(), self.rights.clone())
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        Self::of(parts, app).await.map_err(|Exception(error)| {
            let is_unknown = error.code == Error::authentication_failed("").code;
            let mut response = Exception(error).into_response();
            if is_unknown && parts.method == Method::GET && dashboard::is_wanted(&parts.headers) {
                // The browser then asks its user for a password, and sends it with all requests of the page.
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
        if !app.users.is_configured() && is_of_a_page_with_a_name(&parts.headers) {
            let message = "Without users, browsers may ask by an address or as localhost, for a name may be anybody's: \
                           give users passwords in the configuration, or use HTTPS";
            return Err(Error::access_denied(message).into());
        }
        let rights = if app.users.is_quick(&user, &password) {
            app.users.authenticate(&user, &password)
        } else {
            let (app, user, password) = (Arc::clone(app), user.clone(), password.clone());
            run_blocking(Work::Login, move || app.users.authenticate(&user, &password)).await
        };
        let says_who = user != DEFAULT_USER || !password.is_empty();
        let rights = rights.inspect_err(|_| {
            // A browser asks without a password first.
            if says_who && let Some(untold) = app.refused_logins.take() {
                tracing::warn!(user, path = parts.uri.path(), untold, "a login is refused");
            }
        })?;
        Ok(Self { app: Arc::clone(app), user, password, rights })
    }
}

fn credentials(parts: &Parts) -> Result<(String, String), Exception> {
    let claimed = read_credentials(&parts.method, &parts.headers, &parts.uri);
    let (user, password) = claimed.map_err(|wrong| match wrong {
        CredentialsError::OtherPage => Error::access_denied(
            "A page of another server asks, and browsers may ask here for this server's own pages only",
        ),
        CredentialsError::NotBasic => {
            Error::authentication_failed("The Authorization header is not Basic with a user and a password")
        }
        CredentialsError::NoUser => {
            Error::authentication_failed("Got an empty user name from X-ClickHouse HTTP headers")
        }
        CredentialsError::NotText(header) => {
            Error::cannot_parse_text(format!("The header {header} is not UTF-8"))
        }
        CredentialsError::Url(what) => Error::cannot_parse_text(what),
    })?;
    Ok((user.unwrap_or_else(|| DEFAULT_USER.to_owned()), password))
}
