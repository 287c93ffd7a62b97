//! What `granary server` does, by its arguments and its configuration.

use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use granary_nbd::ServerConfig;
use granary_server::{Options, SideServers, Tls, limits};
use granary_sql::limits::DEFAULT_MEMORY_FOLDER;

use super::address::Http;
use super::config::{Config, ConfigError};
use super::{ServerArguments, memcached, nbd};

/// With less, no query can be answered.
const QUERY_MEMORY_MIN: u64 = 4 << 20;

/// The services to start, with the options and the folder of each.
pub struct Plan {
    /// Granary's folder.
    pub path: PathBuf,
    /// HTTP and HTTPS, and sessions behind them.
    pub options: Options,
    pub memcached: memcached::MemcachedArguments,
    pub memcached_tls: Option<Arc<ServerConfig>>,
    pub nbd: nbd::NbdArguments,
    pub nbd_tls: Option<Arc<ServerConfig>>,
    /// Bytes that all queries may take; `None`: a part of the RAM.
    pub query_memory: Option<u64>,
    /// Whether volumes become block devices.
    pub serves_block_devices: bool,
}

impl Plan {
    /// Joins the arguments with what the configuration says beside them. Nothing is opened but certificates.
    ///
    /// # Errors
    /// They contradict each other, or nothing would be served.
    pub fn new(mut arguments: ServerArguments, mut config: Config) -> Result<Plan, Box<dyn Error>> {
        let serves_block_devices = serves_block_devices(&arguments, &config);
        let path = arguments.path.clone().or(config.path.take()).unwrap_or_else(|| "granary-data".into());
        let of_memcached = config.memcached.take();
        let wants_memcached = of_memcached.is_some() || arguments.memcached.says_something();
        let memcached = std::mem::take(&mut arguments.memcached).or(of_memcached.unwrap_or_default());
        if wants_memcached && !memcached.has_address() {
            return Err(ConfigError::NoMemcached.into());
        }
        let of_nbd = config.nbd.take();
        let wants_nbd = of_nbd.is_some() || arguments.nbd.says_something();
        let nbd = std::mem::take(&mut arguments.nbd).or(of_nbd.unwrap_or_default());
        if wants_nbd && !nbd.has_address() {
            return Err(ConfigError::NoNbd.into());
        }
        let tls = certificate(&arguments, &config);
        let wants_https = arguments.https.or(config.https).is_some();
        if tls.is_some() && !wants_https && !memcached.wants_tls() && !nbd.wants_tls() {
            return Err(ConfigError::IdleTls.into());
        }
        let memcached_tls = tls_of(tls.as_ref(), memcached.wants_tls())?;
        let nbd_tls = tls_of(tls.as_ref(), nbd.wants_tls())?;
        let query_memory = arguments.query_memory.or(config.query_memory).map(|size| size.0);
        if let Some(bytes) = query_memory.filter(|bytes| *bytes < QUERY_MEMORY_MIN) {
            return Err(ConfigError::QueryMemory(bytes).into());
        }
        let options = options(arguments, config, path.clone(), tls)?;
        let plan = Plan {
            path,
            options,
            memcached,
            memcached_tls,
            nbd,
            nbd_tls,
            query_memory,
            serves_block_devices,
        };
        plan.check()?;
        Ok(plan)
    }

    /// Refuses to serve nothing, and settings of HTTP without it.
    fn check(&self) -> Result<(), ConfigError> {
        let Options { http, https, users, dictionaries, .. } = &self.options;
        let has_http = http.is_some() || https.is_some();
        let has_others = self.memcached.has_address() || self.nbd.has_address() || self.serves_block_devices;
        match has_http {
            false if !has_others => Err(ConfigError::Nothing),
            false if users.is_some() || !dictionaries.is_empty() => Err(ConfigError::IdleHttp),
            _ => Ok(()),
        }
    }
}

/// TLS of a server that `is_wanted` by TLS.
fn tls_of(tls: Option<&Tls>, is_wanted: bool) -> Result<Option<Arc<ServerConfig>>, Box<dyn Error>> {
    match (tls, is_wanted) {
        (Some(tls), true) => Ok(Some(tls.configuration()?)),
        (None, true) => Err(ConfigError::Tls.into()),
        (_, false) => Ok(None),
    }
}

/// Whether volumes become block devices; the program may be built without these.
#[cfg(feature = "ublk")]
pub fn serves_block_devices(arguments: &ServerArguments, config: &Config) -> bool {
    arguments.block_devices.ublk.or(config.ublk) == Some(true)
}

#[cfg(not(feature = "ublk"))]
fn serves_block_devices(_: &ServerArguments, _: &Config) -> bool {
    false
}

fn certificate(arguments: &ServerArguments, config: &Config) -> Option<Tls> {
    match (arguments.tls_certificate.clone(), arguments.tls_key.clone()) {
        (Some(certificate), Some(key)) => Some(Tls { certificate, key }),
        _ => {
            config.tls.as_ref().map(|tls| Tls { certificate: tls.certificate.clone(), key: tls.key.clone() })
        }
    }
}

fn options(
    arguments: ServerArguments,
    config: Config,
    path: PathBuf,
    tls: Option<Tls>,
) -> Result<Options, ConfigError> {
    let (users, settings) = (config.users()?, config.settings()?);
    let allow_executable = arguments.allow_executable.or(config.allow_executable) == Some(true);
    let https = match (arguments.https.or(config.https), tls) {
        (Some(address), Some(tls)) => Some((address, tls)),
        (Some(_), None) => return Err(ConfigError::Tls),
        (None, _) => None,
    };
    let dictionaries = match arguments.dictionaries.is_empty() {
        true => config.dictionaries.unwrap_or_default(),
        false => arguments.dictionaries,
    };
    let memory_folder = arguments.dictionary_memory_folder.or(config.dictionary_memory_folder);
    let memory_folder = memory_folder.unwrap_or_else(|| DEFAULT_MEMORY_FOLDER.into());
    Ok(Options {
        session: granary_sql::Options {
            memory_folder: Some(memory_folder).filter(|folder| folder != Path::new("none")),
            user_files: Some(path.join("user_files")),
            path: Some(path),
            allow_executable,
            ..granary_sql::Options::default()
        },
        http: match arguments.http.or(config.http) {
            Some(Http::At(address)) => Some(address),
            Some(Http::Nowhere) => None,
            None => Some(SocketAddr::from(([127, 0, 0, 1], 8123))),
        },
        https,
        users,
        dictionaries,
        settings,
        connections: arguments
            .connections
            .or(config.connections)
            .map_or(limits::CONNECTIONS, NonZeroUsize::get),
        side_servers: SideServers::default(),
    })
}
