//! Errors as in ClickHouse's HTTP interface.

use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use granary_sql::Error;

use super::blocks::Damage;

/// Header with the error's code.
const EXCEPTION_CODE: HeaderName = HeaderName::from_static("x-clickhouse-exception-code");

/// Makes a browser ask its user for a password.
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

/// The status that ClickHouse answers an error's code with; 500 for codes not in its list.
fn status(code: i32) -> StatusCode {
    match code {
        // REQUIRED_PASSWORD
        194 => StatusCode::UNAUTHORIZED,
        // UNKNOWN_USER, WRONG_PASSWORD, ACCESS_DENIED, AUTHENTICATION_FAILED
        192 | 193 | 497 | 516 => StatusCode::FORBIDDEN,
        // CANNOT_PARSE_TEXT, THERE_IS_NO_COLUMN, DUPLICATE_COLUMN
        6 | 8 | 15
        // CANNOT_PARSE_ESCAPE_SEQUENCE, _QUOTED_STRING, _INPUT_ASSERTION_FAILED, BAD_ARGUMENTS, CANNOT_PARSE_DATE
        | 25 | 26 | 27 | 36 | 38
        // CANNOT_PARSE_DATETIME, ILLEGAL_COLUMN, TYPE_MISMATCH, SYNTAX_ERROR, CANNOT_PARSE_NUMBER, INCORRECT_DATA
        | 41 | 44 | 53 | 62 | 72 | 117
        // TOO_DEEP_AST, TOO_BIG_AST, UNEXPECTED_AST_STRUCTURE, VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
        | 167 | 168 | 223 | 321
        // CANNOT_PARSE_UUID, CANNOT_COMPILE_REGEXP, CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING, CANNOT_PARSE_IPV4, _IPV6
        | 376 | 427 | 441 | 675 | 676 => StatusCode::BAD_REQUEST,
        // UNKNOWN_FUNCTION, _IDENTIFIER, _TYPE, _STORAGE, _TABLE, _AGGREGATE_FUNCTION, _FORMAT, _DATABASE, _SETTING
        46 | 47 | 50 | 56 | 60 | 63 | 73 | 81 | 115 => StatusCode::NOT_FOUND,
        // TIMEOUT_EXCEEDED
        159 => StatusCode::REQUEST_TIMEOUT,
        // QUERY_IS_TOO_LARGE
        229 => StatusCode::PAYLOAD_TOO_LARGE,
        // NOT_IMPLEMENTED
        48 => StatusCode::NOT_IMPLEMENTED,
        // CANNOT_OPEN_FILE, SOCKET_TIMEOUT
        76 | 209 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::status;

    #[test]
    fn statuses_are_those_of_clickhouse() {
        for (expected, codes) in [
            (400, &[6, 8, 15, 25, 26, 27, 36, 38, 41, 44, 53, 62, 72, 117, 167, 168, 376, 427, 675, 676][..]),
            (403, &[497, 516]),
            (404, &[46, 47, 50, 56, 60, 73, 81, 115]),
            (408, &[159]),
            (413, &[229]),
            (501, &[48]),
            (503, &[76, 209]),
            (500, &[42, 43, 49, 69, 70, 130, 131, 153, 164, 241, 386, 396, 407, 452, 456, 457]),
        ] {
            for code in codes {
                assert_eq!(status(*code).as_u16(), expected, "{code}");
            }
        }
    }
}
