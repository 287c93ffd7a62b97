//! The user that a request claims to be from: in headers, by HTTP Basic, or in the URL. Nothing is verified here.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use super::url;

/// The user's name, if there is one, and the password, empty if there is none.
pub type Credentials = (Option<String>, String);

/// Why credentials are refused unverified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialsError {
    /// A browser sends it for a page of another origin.
    OtherPage,
    /// The header is not valid Basic authentication.
    NotBasic,
    /// Headers have a password, but no user.
    NoUser,
    /// The header of this name is not UTF-8.
    NotText(&'static str),
    /// The URL's query string cannot be read.
    Url(String),
}

/// The user and password that a request claims.
pub fn read_credentials(
    method: &Method,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Credentials, CredentialsError> {
    let header = |name: &'static str| {
        let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec());
        headers.get(name).map(text).transpose().map_err(|_| CredentialsError::NotText(name))
    };
    // A browser acts with its user's authority: with the password it remembers, or where none is needed.
    if is_of_another_page(headers) && !is_visit(method, headers) {
        return Err(CredentialsError::OtherPage);
    }
    let key = header("x-clickhouse-key")?.unwrap_or_default();
    // An empty name is none, as in ClickHouse.
    match header("x-clickhouse-user")?.filter(|user| !user.is_empty()) {
        Some(user) => return Ok((Some(user), key)),
        None if !key.is_empty() => return Err(CredentialsError::NoUser),
        None => {}
    }
    if let Some(basic) = header("authorization")? {
        return basic_credentials(&basic)
            .map(|(user, password)| (Some(user), password))
            .ok_or(CredentialsError::NotBasic);
    }
    let parameters = url::parameters(uri).map_err(CredentialsError::Url)?;
    let get = |name: &str| parameters.get(name).cloned();
    Ok((get("user"), get("password").unwrap_or_default()))
}

/// Whether the request follows a link to here: the linking page does not see the answer, and GET changes nothing.
fn is_visit(method: &Method, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|known| known == value);
    method == Method::GET && is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")
}

/// Whether the request comes from a page loaded by plain HTTP from a server with a name. Any name may resolve to this
/// machine: the page may be anybody's, and believe that this server is its own.
pub fn is_of_a_page_with_a_name(headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let Some(host) = origin.and_then(|origin| origin.strip_prefix("http://")) else { return false };
    if host.starts_with('[') {
        return false;
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_here = name == "localhost" || name.ends_with(".localhost");
    !is_here && name.parse::<std::net::IpAddr>().is_err()
}

/// Whether the browser says that a page of another origin sends this.
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
    use super::{
        CredentialsError, basic_credentials, is_of_a_page_with_a_name, is_of_another_page, read_credentials,
    };
    use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

    #[test]
    fn other_pages_may_link_to_here_and_no_more() {
        let claimed = |method: Method, headers: &[(&'static str, &'static str)]| {
            let header = |&(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            let headers = headers.iter().map(header).collect();
            read_credentials(&method, &headers, &Uri::from_static("/?user=ann&password=p"))
        };
        let other = ("sec-fetch-site", "cross-site");
        let (visit, page) = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"));
        let ann = Ok((Some("ann".to_owned()), "p".to_owned()));
        assert_eq!(claimed(Method::GET, &[other, visit, page]), ann);
        assert_eq!(claimed(Method::POST, &[]), ann);
        for (method, headers) in [
            (Method::POST, &[other, visit, page][..]),
            (Method::GET, &[other]),
            (Method::GET, &[other, ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")]),
            (Method::GET, &[other, visit, ("sec-fetch-dest", "iframe")]),
            (Method::GET, &[("host", "granary"), ("origin", "http://evil")]),
            (Method::POST, &[other, ("x-clickhouse-user", "ann")]),
        ] {
            assert_eq!(claimed(method, headers), Err(CredentialsError::OtherPage), "{headers:?}");
        }
    }

    /// A name that is not UTF-8 refuses the request: the user is not taken from another header or the URL.
    #[test]
    fn names_are_utf8() {
        let claimed = |name: &'static str, value: &[u8]| {
            let header = (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
            read_credentials(
                &Method::POST,
                &[header].into_iter().collect(),
                &Uri::from_static("/?user=ann&password=p"),
            )
        };
        let name = "müller";
        assert_eq!(claimed("x-clickhouse-user", name.as_bytes()), Ok((Some(name.to_owned()), String::new())));
        for header in ["x-clickhouse-user", "x-clickhouse-key", "authorization"] {
            assert_eq!(claimed(header, b"m\xFCller"), Err(CredentialsError::NotText(header)));
        }
    }

    #[test]
    fn a_key_without_a_user_is_nobodys() {
        let claimed = |key: &'static str| {
            let header = (HeaderName::from_static("x-clickhouse-key"), HeaderValue::from_static(key));
            read_credentials(
                &Method::POST,
                &[header].into_iter().collect(),
                &Uri::from_static("/?user=ann&password=p"),
            )
        };
        assert_eq!(claimed("p"), Err(CredentialsError::NoUser));
        assert_eq!(claimed(""), Ok((Some("ann".to_owned()), "p".to_owned())));
        let empty = (HeaderName::from_static("x-clickhouse-user"), HeaderValue::from_static(""));
        let claimed = read_credentials(
            &Method::POST,
            &[empty].into_iter().collect(),
            &Uri::from_static("/?user=ann&password=p"),
        );
        assert_eq!(claimed, Ok((Some("ann".to_owned()), "p".to_owned())));
    }

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
    fn names_may_lead_anywhere() {
        let has_a_name = |origin: &'static str| {
            let header = (HeaderName::from_static("origin"), HeaderValue::from_static(origin));
            is_of_a_page_with_a_name(&[header].into_iter().collect())
        };
        assert!(!is_of_a_page_with_a_name(&HeaderMap::new()));
        for fixed in [
            "http://127.0.0.1:8123",
            "http://[::1]:8123",
            "http://localhost:8123",
            "http://a.localhost",
            "https://granary.example",
        ] {
            assert!(!has_a_name(fixed), "{fixed}");
        }
        for name in ["http://evil.example:8123", "http://evil.example", "http://localhost.evil.example"] {
            assert!(has_a_name(name), "{name}");
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
