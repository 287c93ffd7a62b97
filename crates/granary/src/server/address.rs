//! Addresses to listen on: an IP address or a name that resolves to one, and a port.

use std::net::{SocketAddr, ToSocketAddrs};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Reads `127.0.0.1:8123`, `[::1]:8123` or `localhost:8123`. Of a name's addresses the first IPv4 one is taken, else
/// the first.
///
/// # Errors
/// A text in none of these forms, or an unknown name.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    if host.is_empty() || host.contains([':', '[', ']']) || port.parse::<u16>().is_err() {
        return Err(format!("'{text}' is no address with a port, such as {}", examples(text)));
    }
    let found = text.to_socket_addrs().map_err(|error| format!("'{host}' has no address: {error}"))?;
    let found: Vec<SocketAddr> = found.collect();
    let chosen = found.iter().find(|address| address.is_ipv4()).or(found.first());
    chosen.copied().ok_or_else(|| format!("'{host}' has no address"))
}

/// Addresses that may be meant by a text that is none.
fn examples(text: &str) -> String {
    let port = text.trim_start_matches(':').parse().unwrap_or(8123u16);
    match text.contains(',') {
        true => format!("127.0.0.1:{port}: only one can be given, and [::]:{port} is all of the machine's"),
        false => format!("127.0.0.1:{port}, [::1]:{port} or localhost:{port}"),
    }
}

/// Where HTTP listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Http {
    At(SocketAddr),
    /// Only memcached, volumes or HTTPS are served.
    Nowhere,
}

impl TryFrom<String> for Http {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_http(&text)
    }
}

/// Reads an address as [`parse`] does, or `none`.
pub fn parse_http(text: &str) -> Result<Http, String> {
    if text == "none" { Ok(Http::Nowhere) } else { parse(text).map(Http::At) }
}

/// Reads an address in a configuration file, as [`parse`] does.
pub fn deserialize<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SocketAddr>, D::Error> {
    parse(&String::deserialize(value)?).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn names_have_addresses() {
        for (text, address) in [
            ("127.0.0.1:8123", "127.0.0.1:8123"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:8123", "127.0.0.1:8123"),
        ] {
            assert_eq!(parse(text).map(|address| address.to_string()).as_deref(), Ok(address));
        }
        for wrong in ["", "8123", ":8123", "localhost", "localhost:", "localhost:65536", "::1:8123", "[::1]"]
        {
            assert!(parse(wrong).is_err_and(|error| error.contains("is no address")), "{wrong}");
        }
        assert!(parse("no.such.host.invalid:1").is_err_and(|error| error.contains("has no address")));
    }
}
