//! The configuration file of `granary server`, in TOML.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use granary_server::{Password, User};
use granary_sql::{Access, Rights, Settings};
use serde::Deserialize;

use super::logging::LogFormat;
use super::{address, count, memcached, nbd, size};

/// The settings of the file, all optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub path: Option<PathBuf>,
    pub http: Option<address::Http>,
    #[serde(default, deserialize_with = "address::deserialize")]
    pub https: Option<SocketAddr>,
    pub tls: Option<Tls>,
    pub dictionaries: Option<Vec<String>>,
    pub allow_executable: Option<bool>,
    pub dictionary_memory_folder: Option<PathBuf>,
    #[serde(default, deserialize_with = "count::deserialize_positive")]
    pub connections: Option<NonZeroUsize>,
    pub query_memory: Option<size::Size>,
    pub log: Option<String>,
    pub log_format: Option<LogFormat>,
    pub memcached: Option<memcached::MemcachedArguments>,
    pub nbd: Option<nbd::NbdArguments>,
    #[cfg(feature = "ublk")]
    pub ublk: Option<bool>,
    users: Option<BTreeMap<String, ConfiguredUser>>,
    #[serde(default)]
    settings: BTreeMap<String, toml::Value>,
}

/// PEM files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [tls]")]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [users.NAME]")]
struct ConfiguredUser {
    password: Option<String>,
    password_hash: Option<String>,
    #[serde(default)]
    readonly: bool,
    dictionaries: Option<Vec<String>>,
}

/// An error of a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{0}: cannot read: {1}")]
    Read(PathBuf, std::io::Error),
    /// Neither the line nor a value of the wrong type is shown: it may be a password.
    #[error("{0}: line {1}: {2}")]
    Parse(PathBuf, usize, String),
    #[error(
        "user {0}: give password_hash (`granary hash-password` makes one), or password, or password = \"\" for none"
    )]
    Password(String),
    #[error("user {0}: password_hash is no Argon2 hash; `granary hash-password` makes one")]
    Hash(String),
    #[error("passwords cannot be hashed: the system has no random numbers")]
    Random,
    #[error("setting {0}: give a number, a string, or true or false")]
    Setting(String),
    #[error(
        "TLS needs a certificate: say certificate and key under [tls], or --tls-certificate and --tls-key"
    )]
    Tls,
    #[error(
        "there is a certificate, but nothing speaks TLS: say https = \"ADDRESS:PORT\" above [tls] (or --https), or tls = true under [memcached] or [nbd], or leave the certificate out"
    )]
    IdleTls,
    #[error(
        "memcached has no address: say address = \"ADDRESS:PORT\" or socket = \"PATH\" under [memcached] (or --memcached, --memcached-socket), or leave its other settings out"
    )]
    NoMemcached,
    /// Volumes have settings, but no address.
    #[error(
        "NBD has no address: say address = \"ADDRESS:PORT\" or socket = \"PATH\" under [nbd] (or --nbd, --nbd-socket), or leave its other settings out"
    )]
    NoNbd,
    #[error("nothing is served: http is none, and there is no address of HTTPS, memcached or NBD")]
    Nothing,
    #[error("{0} bytes are too few for queries: give --query-memory 4MiB at least, with its unit")]
    QueryMemory(u64),
    #[error(
        "users and dictionaries are asked over HTTP, and http is none: leave them out, or say where to listen"
    )]
    IdleHttp,
    #[error(
        "the filter of log lines '{0}' is none: a level is error, warn, info, debug, trace or off; a filter is as warn,granary_memcached=info"
    )]
    Log(String),
    #[error("log lines cannot be written: {0}")]
    NoLog(#[source] std::io::Error),
}

impl Config {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::Read(path.to_owned(), error))?;
        toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            ConfigError::Parse(path.to_owned(), line, without_value(error.message()))
        })
    }

    /// The users; `None`: the section is missing.
    pub fn users(&self) -> Result<Option<Vec<User>>, ConfigError> {
        let Some(users) = &self.users else { return Ok(None) };
        let users = users.iter().map(|(name, user)| {
            let access = if user.readonly { Access::ReadOnly } else { Access::Full };
            let dictionaries = user.dictionaries.clone();
            let is_bound = access == Access::ReadOnly || dictionaries.is_some();
            let rights = Rights { access, dictionaries, is_bound };
            Ok(User { name: name.clone(), password: password(name, user)?, rights })
        });
        users.collect::<Result<_, _>>().map(Some)
    }

    /// The settings that every session begins with.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        let text = |(name, value): (&String, &toml::Value)| {
            let value = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Boolean(truth) => u8::from(*truth).to_string(),
                _ => return Err(ConfigError::Setting(name.clone())),
            };
            Ok((name.clone(), value))
        };
        self.settings.iter().map(text).collect()
    }
}

/// The message of an error, without the value that it is about.
fn without_value(message: &str) -> String {
    let is_of_value = message.starts_with("invalid type: ") || message.starts_with("invalid value: ");
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if is_of_value => format!("expected {expected}"),
        _ => message.to_owned(),
    }
}

fn password(name: &str, user: &ConfiguredUser) -> Result<Password, ConfigError> {
    match (&user.password, &user.password_hash) {
        (None, Some(hash)) if granary_server::is_password_hash(hash) => Ok(Password::Hashed(hash.clone())),
        (None, Some(_)) => Err(ConfigError::Hash(name.to_owned())),
        (Some(empty), None) if empty.is_empty() => Ok(Password::None),
        (Some(plain), None) => {
            granary_server::hash_password(plain).map(Password::Hashed).map_err(|_| ConfigError::Random)
        }
        _ => Err(ConfigError::Password(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::read(file.path()).map_err(|error| error.to_string())
    }

    /// An error says where it is, and shows no password.
    #[test]
    fn a_wrong_line_is_not_shown() {
        let error = read("path = \"p\"\n[users.ann]\npasword = \"secret\"\n").unwrap_err();
        assert!(error.contains("line 3: unknown field `pasword`") && !error.contains("secret"), "{error}");
        let error = read("[users.ann]\npassword = 123456\n").unwrap_err();
        assert!(error.ends_with(": line 2: expected a string"), "{error}");
        let error = read("[users]\nann = \"secret, expected\"\n").unwrap_err();
        assert!(error.ends_with(": line 2: expected a section [users.NAME]"), "{error}");
    }

    #[test]
    fn the_packaged_configuration_is_one() {
        let config = read(include_str!("../../../../packaging/granary.toml")).unwrap();
        assert_eq!(config.path.as_deref(), Some(Path::new("/var/lib/granary")));
        assert!(config.users().unwrap().is_none());
    }

    /// The lines that are offered there are understood, too.
    #[test]
    fn the_packaged_configuration_offers_what_there_is() {
        let is_setting = |line: &&str| line.starts_with('[') || line.contains(" = ");
        let offered = |line: &str| line.strip_prefix("# ").filter(is_setting).map(str::to_owned);
        let packaged = include_str!("../../../../packaging/granary.toml").lines();
        let lines: Vec<String> = packaged.map(|line| offered(line).unwrap_or(line.to_owned())).collect();
        let config = read(&lines.join("\n")).unwrap();
        assert!(config.https.is_some());
        assert!(config.memcached.unwrap().has_address() && config.nbd.unwrap().has_address());
    }

    #[test]
    fn the_packaged_service_starts_a_server_over_its_own_folder() {
        let unit = include_str!("../../../../packaging/granary.service");
        let value = |name: &str| {
            let line = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_else(|| panic!("no {name}"))
        };
        assert!(crate::tests::is_understood(value("ExecStart")));
        assert!(value("ExecStart").ends_with(" server --config /etc/granary/granary.toml"));
        // StateDirectory=granary is this folder.
        assert_eq!((value("StateDirectory"), value("User")), ("granary", "granary"));
        // Otherwise what was in RAM goes with the user's last process.
        assert!(!unit.lines().any(|line| line.starts_with("RemoveIPC")));
    }

    #[test]
    fn block_devices_are_what_a_build_may_have() {
        let read = read("ublk = true");
        #[cfg(feature = "ublk")]
        assert_eq!(read.unwrap().ublk, Some(true));
        #[cfg(not(feature = "ublk"))]
        assert!(read.unwrap_err().contains("unknown field `ublk`"));
    }

    #[test]
    fn users_and_settings_are_read() {
        let config = read(
            "[users.ann]\npassword = 'x'\nreadonly = true\ndictionaries = ['geo.*']\n\
             [users.guest]\npassword = ''\n[settings]\nmax_execution_time = 1.5\njoin_use_nulls = true",
        )
        .unwrap();
        let users = config.users().unwrap().unwrap();
        assert!(matches!(&users[0].password, Password::Hashed(hash) if hash.starts_with("$argon2id$")));
        assert_eq!(
            (users[0].rights.access, users[0].rights.may_read("default.d")),
            (Access::ReadOnly, false)
        );
        assert!(matches!(users[1].password, Password::None));
        let settings = config.settings().unwrap();
        assert_eq!(
            settings,
            [("join_use_nulls".into(), "1".into()), ("max_execution_time".into(), "1.5".into())]
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert!(read("pth = 'x'").unwrap_err().contains("pth"));
        let users = |text: &str| read(text).unwrap().users().unwrap_err().to_string();
        assert!(users("[users.ann]\nreadonly = true").contains("user ann: give password_hash"));
        assert!(users("[users.ann]\npassword_hash = 'abc'").contains("no Argon2 hash"));
        assert_eq!(read("http = 'none'").unwrap().http, Some(address::Http::Nowhere));
        assert!(read("http = 'localhost'").unwrap_err().contains("is no address with a port"));
        assert!(read("[settings]\na = []").unwrap().settings().is_err());
        for text in ["connections = 0", "[nbd]\nconnections = '5'", "[memcached]\nthreads = -1"] {
            let error = read(text).unwrap_err();
            assert!(error.ends_with(": expected a whole number from 1"), "{text}: {error}");
        }
        assert!(read("[memcached]\nidle-timeout = '5'").unwrap_err().ends_with(": expected a whole number"));
        assert!(read("memcached = []").unwrap_err().ends_with("expected a section [memcached]"));
        for (text, expected) in [
            ("tls = true", "a section [tls]"),
            ("nbd = 5", "a section [nbd]"),
            ("memcached = '127.0.0.1:11211'", "a section [memcached]"),
            ("[users]\nann = 5", "a section [users.NAME]"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.ends_with(&format!(": expected {expected}")), "{text}: {error}");
        }
    }
}
