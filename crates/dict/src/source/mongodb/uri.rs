//! MongoDB's URIs: `mongodb://user:password@host:27017,host/database?option=value&..`.

use super::{OPTIONS as OPTIONS_PARAMETER, URI};
use crate::config::Values;
use crate::error::DictError;
use crate::source::server::Server;
use mongodb::options::{ConnectionString, HostInfo, ReadPreference, ServerAddress, Tls};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use std::path::Path;

/// What a URI says.
pub(super) struct Target {
    /// The URI as the client reads it.
    pub connection: ConnectionString,
    /// The database.
    pub database: String,
    /// tlsCAFile.
    pub authorities: Option<String>,
}

/// The parameters that a URI comes from, and its options.
const OF_URI: [&str; 2] = [URI, URI];
/// See `OF_URI`.
const OF_SERVER: [&str; 2] = ["HOST, DB or OPTIONS", OPTIONS_PARAMETER];

/// Options that have an effect here.
const OPTIONS: [&str; 25] = [
    "appName",
    "authMechanism",
    "authSource",
    "connectTimeoutMS",
    "directConnection",
    "heartbeatFrequencyMS",
    "loadBalanced",
    "localThresholdMS",
    "maxConnecting",
    "maxIdleTimeMS",
    "maxPoolSize",
    "maxStalenessSeconds",
    "minPoolSize",
    "readConcernLevel",
    "readPreference",
    "readPreferenceTags",
    "replicaSet",
    "retryReads",
    "serverMonitoringMode",
    "serverSelectionTimeoutMS",
    "ssl",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsCAFile",
    "tlsInsecure",
];
/// Options of writers, and of what the client does not have: they change nothing that is read.
const IDLE: [&str; 9] = [
    "compressors",
    "journal",
    "retryWrites",
    "socketTimeoutMS",
    "uuidRepresentation",
    "w",
    "waitQueueTimeoutMS",
    "wTimeoutMS",
    "zlibCompressionLevel",
];

impl Target {
    /// The servers and the database that parameters mean.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` for what is no URI, or has options that are not read here.
    pub fn of(values: &Values) -> Result<Target, DictError> {
        match values.get(URI) {
            Some(uri) => Target::parse(OF_URI, uri),
            None => Target::parse(OF_SERVER, &of_server(&Server::of(values), values.text(OPTIONS_PARAMETER))),
        }
    }

    /// Whether one request may be answered by another server than the last.
    pub fn reads_anywhere(&self) -> bool {
        let is_of_one = self.connection.direct_connection == Some(true);
        let is_of_primary = matches!(self.connection.read_preference, None | Some(ReadPreference::Primary));
        !is_of_one && !is_of_primary
    }

    /// `from` says which parameters the URI comes from, `options` which one its options do.
    fn parse([from, options]: [&str; 2], uri: &str) -> Result<Target, DictError> {
        let refused =
            |what: &str, why: &str| DictError::bad_arguments(format!("SOURCE(MONGODB): {what} {why}"));
        let wrong = |why: &str| refused(from, why);
        if uri.starts_with("mongodb+srv:") {
            return Err(wrong(
                "is looked up in DNS (mongodb+srv), which is not done here: write the servers into it, \
                 mongodb://host:27017,host:27017/database?replicaSet=..&authSource=admin&tls=true",
            ));
        }
        let (place, given) = uri.split_once('?').unwrap_or((uri, ""));
        let mut read = Vec::new();
        for option in given.split('&').filter(|option| !option.is_empty()) {
            let name = option.split_once('=').map_or(option, |(name, _)| name);
            let is = |known: &&str| known.eq_ignore_ascii_case(name);
            match (OPTIONS.iter().any(is), IDLE.iter().any(is)) {
                (true, _) => read.push(option),
                (false, true) => {}
                (false, false) => {
                    let allowed = OPTIONS.join(", ");
                    let why = format!("has an option {name}, which is not read; allowed are {allowed}");
                    return Err(refused(options, &why));
                }
            }
        }
        let uri = format!("{place}?{}", read.join("&"));
        // The client panics at a '%' before a character of several bytes.
        if !is_percent_encoded(&uri) {
            return Err(wrong("has a % without two hexadecimal digits; % itself is written as %25"));
        }
        let connection =
            ConnectionString::parse(uri).map_err(|e| wrong(&format!("cannot be read: {}", e.kind)))?;
        let HostInfo::HostIdentifiers(hosts) = &connection.host_info else {
            return Err(wrong("names no servers"));
        };
        if !hosts.iter().all(|host| matches!(host, ServerAddress::Tcp { .. })) {
            return Err(wrong("names a socket of this machine; give a host and a port"));
        }
        let authorities = match &connection.tls {
            Some(Tls::Enabled(tls)) => tls.ca_file_path.as_deref().and_then(Path::to_str).map(str::to_string),
            _ => None,
        };
        let database = connection.default_database.clone().ok_or_else(|| {
            wrong("names no database; it stands behind the servers: mongodb://host:27017/database")
        })?;
        Ok(Target { connection, database, authorities })
    }
}

/// The URI of one server.
fn of_server(server: &Server, options: &str) -> String {
    let who = match (server.user.as_str(), server.password.as_str()) {
        ("", _) => String::new(),
        (user, "") => format!("{}@", encoded(user)),
        (user, password) => format!("{}:{}@", encoded(user), encoded(password)),
    };
    let host = match server.host.contains(':') && !server.host.starts_with('[') {
        true => format!("[{}]", server.host),
        false => server.host.clone(),
    };
    format!("mongodb://{who}{host}:{}/{}?{options}", server.port, encoded(&server.database))
}

/// The URI with `hidden` in place of the password, also of one that should have been encoded.
pub(super) fn shown(uri: &str, hidden: &str) -> String {
    let (scheme, rest) = uri.split_once("://").unwrap_or(("", uri));
    match rest.rsplit_once('@').and_then(|(who, rest)| Some((who.split_once(':')?.0, rest))) {
        Some((user, rest)) => format!("{scheme}://{user}:{hidden}@{rest}"),
        None => uri.to_string(),
    }
}

/// The servers and the database alone.
pub(super) fn anonymous(uri: &str) -> String {
    let place = uri.split_once('?').map_or(uri, |(place, _)| place);
    let (scheme, place) = place.split_once("://").unwrap_or(("mongodb", place));
    format!("{scheme}://{}", place.rsplit_once('@').map_or(place, |(_, place)| place))
}

/// Whether two hexadecimal digits follow each '%'.
fn is_percent_encoded(uri: &str) -> bool {
    uri.split('%').skip(1).all(|behind| {
        let code = behind.as_bytes().get(..2);
        code.is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
    })
}

/// A text as it stands in a URI.
fn encoded(text: &str) -> PercentEncode<'_> {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(user: &str, password: &str) -> Server {
        let text = str::to_string;
        Server { host: text("h"), port: 1, user: text(user), password: text(password), database: text("d b") }
    }

    #[test]
    fn a_server_becomes_a_uri_that_says_the_same() {
        assert_eq!(of_server(&server("", ""), ""), "mongodb://h:1/d%20b?");
        let uri = of_server(
            &Server { host: "::1".into(), database: "d".into(), ..server("ü:@", "p/%?") },
            "ssl=false",
        );
        assert_eq!(uri, "mongodb://%C3%BC%3A%40:p%2F%25%3F@[::1]:1/d?ssl=false");
        let target = Target::parse(OF_SERVER, &uri).unwrap();
        let credential = target.connection.credential.unwrap();
        assert_eq!(credential.username.as_deref(), Some("ü:@"));
        assert_eq!(credential.password.as_deref(), Some("p/%?"));
        assert_eq!(target.database, "d");
    }

    #[test]
    fn passwords_are_shown_nowhere() {
        for (uri, expected) in [
            ("mongodb://h/d", "mongodb://h/d"),
            ("mongodb://u@h/d", "mongodb://u@h/d"),
            ("mongodb://u:p@h,i:2/d?tls=true", "mongodb://u:*@h,i:2/d?tls=true"),
            ("mongodb://u:p@p?q/@h/d", "mongodb://u:*@h/d"),
            ("u:p@h", "://u:*@h"),
        ] {
            assert_eq!(shown(uri, "*"), expected);
        }
        assert_eq!(anonymous("mongodb://u:p@h,i:2/d?tls=true"), "mongodb://h,i:2/d");
    }

    #[test]
    fn options_of_writers_are_dropped() {
        let target =
            Target::parse(OF_URI, "mongodb://h/d?w=majority&retryWrites=true&TLS=true&tlsCAFile=a.pem")
                .unwrap();
        assert_eq!(target.authorities.as_deref(), Some("a.pem"));
        assert!(target.connection.write_concern.is_none() && target.connection.retry_writes.is_none());
    }

    #[test]
    fn a_percent_sign_has_two_digits_behind_it() {
        for place in ["%\u{1078}@h", "u:%\u{1078}@h", "u:%4\u{e9}@h", "u:1%@h", "%\u{1078}"] {
            let error = Target::parse(OF_URI, &format!("mongodb://{place}/d")).err().unwrap();
            assert!(error.to_string().contains("%25"), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_uri_panics(uri in "(mongodb(\\+srv)?:?/?/?)?([a-z0-9:,@/?&=%.\\[\\]]|ssl=|tls=true|\\PC){0,40}") {
            let _ = Target::parse(OF_URI, &uri);
            let _ = (shown(&uri, "*"), anonymous(&uri));
        }
    }
}
