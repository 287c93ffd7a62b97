//! The user that a request says it is from: in headers, by HTTP's own Basic, or in the URL. Nobody is believed yet.

use std::collections::HashMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

/// A name, if one is said, and a password, empty if none is.
pub type Claim = (Option<String>, String);

/// Why a claim is not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A browser sends what it remembers for a page of somebody else.
    OtherPage,
    /// The header is not as Basic has it.
    NotBasic,
    /// What the URL says behind its question mark cannot be read.
    Url(String),
}

/// What a request says.
pub fn claim(method: &Method, headers: &HeaderMap, uri: &Uri) -> Result<Claim, Wrong> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(user) = header("x-clickhouse-user") {
        return Ok((Some(user), header("x-clickhouse-key").unwrap_or_default()));
    }
    if let Some(basic) = header(AUTHORIZATION.as_str()) {
        // GET changes nothing, and its answer is not shown to other pages.
        if method != Method::GET && is_of_another_page(headers) {
            return Err(Wrong::OtherPage);
        }
        return basic_credentials(&basic)
            .map(|(user, password)| (Some(user), password))
            .ok_or(Wrong::NotBasic);
    }
    let parameters: HashMap<String, String> = serde_urlencoded::from_str(uri.query().unwrap_or_default())
        .map_err(|error| Wrong::Url(error.to_string()))?;
    let get = |name: &str| parameters.get(name).cloned();
    Ok((get("user"), get("password").unwrap_or_default()))
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
    use http::{HeaderMap, HeaderName, HeaderValue};

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
