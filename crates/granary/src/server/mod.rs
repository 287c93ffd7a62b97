//! `granary server`.

mod address;
#[cfg(feature = "ublk")]
mod block_devices;
mod config;
mod figures;
mod log_writer;
pub mod logging;
mod memcached;
mod mode;
mod nbd;
pub mod size;
mod volume_figures;
mod volumes;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{allocator, memory};
use clap::Args;
use clap::builder::BoolishValueParser;
use granary_server::{Neighbours, Options, Tls, limits};
use granary_sql::limits::DEFAULT_MEMORY_FOLDER;
use granary_sql::FolderLock;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use address::Http;
use config::{Config, ConfigError};
use logging::LogFormat;

/// With less, no query can be answered.
const QUERY_MEMORY_MIN: u64 = 4 << 20;

/// Shown at the end of `granary server --help`.
pub const EXAMPLES: &str = "\
Examples:
  Serve the dictionaries kept in ./data:
    granary server --path data

  Make one, over an SQLite table in data/user_files/users.db, cached on SSD:
    curl http://127.0.0.1:8123/ --data-binary \"
      CREATE DICTIONARY users (id UInt64, name String, city String DEFAULT 'unknown')
      PRIMARY KEY id
      SOURCE(SQLITE(PATH 'users.db' TABLE 'users'))
      LIFETIME(MIN 300 MAX 600)
      LAYOUT(SSD_CACHE(PATH 'users' FILE_SIZE 1073741824 WRITE_BUFFER_SIZE 1048576))\"

  Ask it:
    curl http://127.0.0.1:8123/ --data-binary \"SELECT dictGet('users', ('name', 'city'), 42)\"

  Let a ClickHouse read from it: this prints the CREATE DICTIONARY statement to run there:
    curl http://127.0.0.1:8123/dictionary/users/ddl

  See what it does:
    curl http://127.0.0.1:8123/metrics
    curl http://127.0.0.1:8123/ --data-binary \"SELECT * FROM system.dictionaries FORMAT Vertical\"

  Serve memcached's protocol, with 64 MiB of RAM and 1 GiB of SSD for its items:
    granary server --path items --http none --memcached 127.0.0.1:11211 --memcached-memory 64MiB --memcached-flash 1GiB & sleep 1
    printf 'set greeting 0 0 5\\r\\nhello\\r\\nget greeting\\r\\nquit\\r\\n' | nc 127.0.0.1 11211

  Serve a disk over NBD:
    granary volume create scratch --path disks --size 8GiB
    granary server --path disks --http none --nbd 127.0.0.1:10809 & sleep 1
    nbdinfo nbd://127.0.0.1/scratch

  Listen for others, who give a password:
    granary hash-password            (reads it, and prints what the configuration wants)
    granary server --config granary.toml

SIGTERM and Ctrl-C stop it: what is under way has 10 seconds, and the dictionaries and items are warm at the next start.";

/// Arguments of `granary server`. What is not said here is as the configuration says.
#[derive(Args)]
pub struct Arguments {
    /// Configuration file, in TOML; flags and variables come before what it says
    #[arg(long, value_name = "FILE", env = "GRANARY_CONFIG")]
    config: Option<PathBuf>,

    /// Folder for dictionaries: they are there, and warm, at the next start [default: granary-data]
    #[arg(long, value_name = "DIR", env = "GRANARY_PATH")]
    path: Option<PathBuf>,

    /// Where to listen for HTTP; port 0 lets the system choose, none is for memcached or volumes alone
    /// [default: 127.0.0.1:8123]
    #[arg(long, value_name = "ADDR", env = "GRANARY_HTTP", value_parser = address::parse_http)]
    http: Option<address::Http>,

    /// Where to listen for HTTPS, too; needs --tls-certificate and --tls-key
    #[arg(long, value_name = "ADDR", env = "GRANARY_HTTPS", value_parser = address::parse)]
    https: Option<SocketAddr>,

    /// PEM file of the certificate, and of those that vouch for it
    #[arg(long, value_name = "FILE", env = "GRANARY_TLS_CERTIFICATE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,

    /// PEM file of the certificate's key
    #[arg(long, value_name = "FILE", env = "GRANARY_TLS_KEY", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,

    /// ClickHouse's XML files of dictionaries, as a pattern with *; read again when they change
    #[arg(long, value_name = "PATTERN", env = "GRANARY_DICTIONARIES")]
    dictionaries: Vec<String>,

    /// Allow dictionaries to run programs: SOURCE(EXECUTABLE(...)), SOURCE(EXECUTABLE_POOL(...))
    #[arg(long, env = "GRANARY_ALLOW_EXECUTABLE", value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    allow_executable: Option<bool>,

    /// Folder on a tmpfs where the RAM tiers of dictionaries on SSD lie, so that they outlive a kill of the server; if it
    /// has no room for one, or with none, it dies with it [default: /dev/shm]
    #[arg(long, value_name = "FOLDER", env = "GRANARY_DICTIONARY_MEMORY_FOLDER")]
    dictionary_memory_folder: Option<PathBuf>,

    /// Connections served at once [default: 4096]
    #[arg(long, value_name = "N", env = "GRANARY_CONNECTIONS")]
    connections: Option<NonZeroUsize>,

    /// Memory that all queries may take together, such as 4GiB [default: half of the RAM that the caches leave]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, env = "GRANARY_QUERY_MEMORY")]
    query_memory: Option<size::Size>,

    /// Log lines to write: error, warn, info, debug or trace, or a filter as warn,granary_memcached=info [default: info]
    #[arg(long, value_name = "FILTER", env = "GRANARY_LOG")]
    log: Option<String>,

    /// How log lines are written [default: text]
    #[arg(long, value_name = "FORMAT", env = "GRANARY_LOG_FORMAT")]
    log_format: Option<LogFormat>,

    #[command(flatten)]
    memcached: memcached::Arguments,

    #[command(flatten)]
    nbd: nbd::Arguments,

    #[cfg(feature = "ublk")]
    #[command(flatten)]
    block_devices: block_devices::Arguments,
}

/// Serves until it is stopped.
pub fn run(arguments: Arguments) -> ExitCode {
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where it cannot be written there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    // Allocations of many sizes and ages take up to twice the RAM in huge pages, and lookups are no faster with them.
    // On a kernel without huge pages the call fails, harmlessly.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let mut config = match &arguments.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    let filter = arguments.log.as_ref().or(config.log.as_ref()).map_or("info", String::as_str);
    let _log = logging::start(filter, arguments.log_format.or(config.log_format).unwrap_or_default())?;
    allow_all_descriptors();
    let serves_block_devices = serves_block_devices(&arguments, &config);
    // Before other threads are started.
    #[cfg(feature = "ublk")]
    if serves_block_devices {
        block_devices::allocate_without_disks();
    }
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
    if tls.is_some()
        && arguments.https.or(config.https).is_none()
        && !memcached.wants_tls()
        && !nbd.wants_tls()
    {
        return Err(ConfigError::IdleTls.into());
    }
    let memcached_tls = match (&tls, memcached.wants_tls()) {
        (Some(tls), true) => Some(tls.configuration()?),
        (None, true) => return Err(ConfigError::Tls.into()),
        (_, false) => None,
    };
    let nbd_tls = match (&tls, nbd.wants_tls()) {
        (Some(tls), true) => Some(tls.configuration()?),
        (None, true) => return Err(ConfigError::Tls.into()),
        (_, false) => None,
    };
    let query_memory = arguments.query_memory.or(config.query_memory).map(|size| size.0);
    if let Some(bytes) = query_memory.filter(|bytes| *bytes < QUERY_MEMORY_MIN) {
        return Err(ConfigError::QueryMemory(bytes).into());
    }
    let mut options = options(arguments, config, path.clone(), tls)?;
    let serves_volumes = nbd.has_address() || serves_block_devices;
    if options.http.is_none() && options.https.is_none() && !memcached.has_address() && !serves_volumes {
        return Err(ConfigError::Nothing.into());
    }
    if options.http.is_none()
        && options.https.is_none()
        && (options.users.is_some() || !options.dictionaries.is_empty())
    {
        return Err(ConfigError::IdleHttp.into());
    }
    // Before anything is opened, or made anew because its size has changed.
    let server = granary_server::Server::bind(&options)?;
    // Held until everything is closed.
    let lock = FolderLock::take(&path)?;
    options.session.lock = Some(lock.clone());
    let volumes = if serves_volumes { volumes::open(&path)? } else { volumes::Opened::default() };
    let memcached = memcached.start(&path, memcached_tls)?;
    let nbd = nbd.start(&volumes, nbd_tls)?;
    let volumes::Opened { volumes, refused, .. } = volumes;
    if let (true, Some(error)) = (serves_block_devices, refused.into_iter().next()) {
        // Later devices would get other numbers.
        return Err(error.into());
    }
    let places = nbd.iter().flat_map(granary_nbd::Server::uris).map(String::as_str);
    #[cfg(feature = "ublk")]
    let block_devices = block_devices::start(if serves_block_devices { &volumes } else { &[] })?;
    #[cfg(feature = "ublk")]
    let places = places.chain(block_devices.iter().map(granary_ublk::BlockDevice::path));
    let places = places.collect::<Vec<_>>().join(", ");
    options.neighbours = Neighbours {
        memcached: memcached.as_ref().map(figures::of),
        volumes: serves_volumes.then(|| volume_figures::of(&volumes, places.clone())),
    };
    let of_memcached = memcached.as_ref().map(granary_memcached::Server::stats);
    options.session.memory =
        Some(memory::options(query_memory, move || of_memcached.as_ref().map_or(0, figures::ram)));
    allocator::decay_while_idle()?;
    let folder = std::path::absolute(&path)?;
    server.run(options, |http, https| {
        tracing::info!("Granary {} works in {}", env!("CARGO_PKG_VERSION"), folder.display());
        if let Some(http) = http {
            tracing::info!("Granary listens on http://{http}");
        }
        if let Some(https) = https {
            tracing::info!("Granary listens on https://{https}");
        }
        if let Some(memcached) = &memcached {
            tracing::info!("Granary serves memcached on {}", memcached.places());
        }
        if serves_volumes {
            let names: Vec<&str> = volumes.iter().map(|volume| volume.name()).collect();
            match names.is_empty() {
                true => tracing::warn!("Granary serves no volume: none can be opened"),
                false => tracing::info!("Granary serves the volumes {} at {places}", names.join(", ")),
            }
        }
    })?;
    memcached.map_or(Ok(()), granary_memcached::Server::stop)?;
    // Requests in progress are answered before volumes are closed.
    drop(nbd);
    #[cfg(feature = "ublk")]
    drop(block_devices);
    volumes::close(volumes)?;
    drop(lock);
    tracing::info!("Granary has stopped");
    Ok(())
}

/// Raises the limit of descriptors to the maximum: the usual limit is for programs that use `select`, and a connection
/// of NBD takes some four.
fn allow_all_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
    }
}

/// Whether volumes become block devices; the program may be built without these.
#[cfg(feature = "ublk")]
fn serves_block_devices(arguments: &Arguments, config: &Config) -> bool {
    arguments.block_devices.ublk.or(config.ublk) == Some(true)
}

#[cfg(not(feature = "ublk"))]
fn serves_block_devices(_: &Arguments, _: &Config) -> bool {
    false
}

fn certificate(arguments: &Arguments, config: &Config) -> Option<Tls> {
    match (arguments.tls_certificate.clone(), arguments.tls_key.clone()) {
        (Some(certificate), Some(key)) => Some(Tls { certificate, key }),
        _ => {
            config.tls.as_ref().map(|tls| Tls { certificate: tls.certificate.clone(), key: tls.key.clone() })
        }
    }
}

fn options(
    arguments: Arguments,
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
        neighbours: Neighbours::default(),
    })
}
