//! Errors as ClickHouse's HTTP interface words them.

use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use granary_sql::Error;

use super::blocks::Damage;

/// Says the error's code, apart from the text.
const EXCEPTION_CODE: HeaderName = HeaderName::from_static("x-clickhouse-exception-code");

/// What a browser asks its user for.
pub const BASIC: HeaderValue = HeaderValue::from_static("Basic realm=\"Granary\"");

/// An error on its way to a client.
pub struct Exception(pub granary_sql::Error);

impl<E: Into<granary_sql::Error>> From<E> for Exception {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        match damage {
            Damage::Checksum => Error::checksum_does_not_match("Checksum doesn't match: corrupted data"),
            Damage::Wrong(message) => Error::cannot_decompress(message),
        }
    }
}

impl IntoResponse for Exception {
    fn into_response(self) -> Response {
        let code = HeaderValue::from(self.0.code);
        let mut response =
            (status(self.0.code), [(EXCEPTION_CODE, code)], format!("{}\n", self.0)).into_response();
        if response.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, BASIC);
        }
        response
    }
}

/// The status that ClickHouse answers an error's code with.
fn status(code: i32) -> StatusCode {
    match code {
        // REQUIRED_PASSWORD
        194 => StatusCode::UNAUTHORIZED,
        // UNKNOWN_USER, WRONG_PASSWORD, AUTHENTICATION_FAILED
        192 | 193 | 497 | 516 => StatusCode::FORBIDDEN,
        // CANNOT_PARSE_*, BAD_ARGUMENTS, ILLEGAL_*, SYNTAX_ERROR, *TYPE*, INCORRECT_DATA and the like
        6 | 26 | 27 | 36 | 38 | 41 | 42 | 43 | 44 | 53 | 62 | 69 | 70 | 72 | 117 | 130 | 131 | 321 | 386
        | 456 | 457 => StatusCode::BAD_REQUEST,
        // UNKNOWN_*
        46 | 47 | 50 | 60 | 73 | 81 | 115 => StatusCode::NOT_FOUND,
        // TIMEOUT_EXCEEDED
        159 => StatusCode::REQUEST_TIMEOUT,
        // QUERY_IS_TOO_LARGE
        229 => StatusCode::PAYLOAD_TOO_LARGE,
        48 => StatusCode::NOT_IMPLEMENTED,
        // SOCKET_TIMEOUT, CANNOT_OPEN_FILE
        76 | 209 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
