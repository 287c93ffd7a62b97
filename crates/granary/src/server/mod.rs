//! `granary server`.

mod address;
#[cfg(feature = "ublk")]
mod block_devices;
mod config;
mod count;
mod figures;
mod log_writer;
pub mod logging;
mod memcached;
mod mode;
mod nbd;
mod plan;
pub mod size;
mod volume_figures;
mod volumes;

use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::{allocator, memory, variables};
use clap::Args;
use clap::builder::BoolishValueParser;
use granary_server::SideServers;
use granary_sql::FolderLock;
use granary_volume::Volume;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use config::Config;
use logging::LogFormat;
use plan::Plan;

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
    granary server --path items --http none --memcached 127.0.0.1:11211 --memcached-memory 64MiB --memcached-flash 1GiB &
    until nc -z 127.0.0.1 11211 || ! kill -0 $!; do sleep 0.1; done
    printf 'set greeting 0 0 5\\r\\nhello\\r\\nget greeting\\r\\nquit\\r\\n' | nc 127.0.0.1 11211

  Serve a disk over NBD:
    granary volume create scratch --path disks --size 8GiB
    granary server --path disks --http none --nbd 127.0.0.1:10809 &
    until nbdinfo nbd://127.0.0.1/scratch 2>/dev/null || ! kill -0 $!; do sleep 0.1; done

  Listen for others, who give a password:
    granary hash-password            (reads it, and prints what the configuration wants)
    granary server --config granary.toml

SIGTERM and Ctrl-C stop it: what is under way has 10 seconds, and the dictionaries and items are warm at the next start.";

/// Arguments of `granary server`. What is not said here is as the configuration says.
#[derive(Args)]
pub struct ServerArguments {
    /// Configuration file, in TOML; flags and variables come before what it says
    #[arg(long, value_name = "FILE", env = "GRANARY_CONFIG")]
    config: Option<PathBuf>,

    /// Folder for dictionaries, items and volumes: they are there, and warm, at the next start [default: granary-data]
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

    /// Folder on a tmpfs where the RAM tiers and write buffers of dictionaries on SSD lie, so that they outlive a kill
    /// of the server; those that it has no room for (Docker gives it 64 MiB), and all of them with none, die with the
    /// server [default: /dev/shm]
    #[arg(long, value_name = "FOLDER", env = "GRANARY_DICTIONARY_MEMORY_FOLDER")]
    dictionary_memory_folder: Option<PathBuf>,

    /// Connections served at once [default: 4096]
    #[arg(long, value_name = "N", env = "GRANARY_CONNECTIONS")]
    connections: Option<NonZeroUsize>,

    /// Memory that all queries may take together, such as 4GiB [default: half of the RAM that the caches leave]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, env = "GRANARY_QUERY_MEMORY")]
    query_memory: Option<size::Size>,

    /// Log lines to write: error, warn, info, debug or trace, or a filter as warn,granary_memcached=info [default:
    /// info]
    #[arg(long, value_name = "FILTER", env = "GRANARY_LOG")]
    log: Option<String>,

    /// How log lines are written [default: text]
    #[arg(long, value_name = "FORMAT", env = "GRANARY_LOG_FORMAT")]
    log_format: Option<LogFormat>,

    #[command(flatten)]
    memcached: memcached::MemcachedArguments,

    #[command(flatten)]
    nbd: nbd::NbdArguments,

    #[cfg(feature = "ublk")]
    #[command(flatten)]
    block_devices: block_devices::BlockDeviceArguments,
}

/// Serves until it is stopped.
pub fn run(arguments: ServerArguments) -> ExitCode {
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where it cannot be written there is nobody to tell.
            complain!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: ServerArguments) -> Result<(), Box<dyn Error>> {
    // Allocations of many sizes and ages take up to twice the RAM in huge pages, and lookups are no faster with them.
    // On a kernel without huge pages the call fails, harmlessly.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let config = match &arguments.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    let filter = arguments.log.as_ref().or(config.log.as_ref()).map_or("info", String::as_str);
    let _log = logging::start(filter, arguments.log_format.or(config.log_format).unwrap_or_default())?;
    variables::warn_of_unknown();
    allow_all_descriptors();
    // Before other threads are started.
    #[cfg(feature = "ublk")]
    if plan::serves_block_devices(&arguments, &config) {
        block_devices::allocate_without_disks();
    }
    carry_out(Plan::new(arguments, config)?)
}

/// Starts what is planned, serves until it is stopped, and closes everything.
fn carry_out(plan: Plan) -> Result<(), Box<dyn Error>> {
    let Plan { path, mut options, query_memory, serves_block_devices, .. } = plan;
    let serves_volumes = plan.nbd.has_address() || serves_block_devices;
    // Before anything is opened, or made anew because its size has changed.
    let server = granary_server::Server::bind(&options)?;
    // Held until everything is closed.
    let lock = FolderLock::take(&path)?;
    options.session.lock = Some(lock.clone());
    let volumes = if serves_volumes { volumes::open(&path)? } else { volumes::Opened::default() };
    // Before items are opened: other sizes empty them, which must not be for a start that fails.
    let nbd = plan.nbd.start(&volumes, plan.nbd_tls)?;
    let volumes::Opened { volumes, refused, .. } = volumes;
    if let (true, Some(error)) = (serves_block_devices, refused.into_iter().next()) {
        // Later devices would get other numbers.
        return Err(error.into());
    }
    #[cfg(feature = "ublk")]
    let block_devices = block_devices::start(if serves_block_devices { &volumes } else { &[] })?;
    let memcached = plan.memcached.start(&path, plan.memcached_tls)?;
    let places = nbd.iter().flat_map(granary_nbd::Server::uris).map(String::as_str);
    #[cfg(feature = "ublk")]
    let places = places.chain(block_devices.iter().map(granary_ublk::BlockDevice::path));
    let places = places.collect::<Vec<_>>().join(", ");
    options.side_servers = SideServers {
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
        log_addresses(http, https, memcached.as_ref());
        if serves_volumes {
            log_volumes(&volumes, &places);
        }
    })?;
    let stopped = memcached.map_or(Ok(()), granary_memcached::Server::stop);
    // Requests in progress are answered before volumes are closed.
    drop(nbd);
    #[cfg(feature = "ublk")]
    drop(block_devices);
    volumes::close(volumes)?;
    stopped?;
    drop(lock);
    tracing::info!("Granary has stopped");
    Ok(())
}

fn log_addresses(
    http: Option<SocketAddr>,
    https: Option<SocketAddr>,
    memcached: Option<&granary_memcached::Server>,
) {
    if let Some(http) = http {
        tracing::info!("Granary listens on http://{http}");
    }
    if let Some(https) = https {
        tracing::info!("Granary listens on https://{https}");
    }
    if let Some(memcached) = memcached {
        tracing::info!("Granary serves memcached on {}", memcached.places());
    }
}

fn log_volumes(volumes: &[Arc<Volume>], places: &str) {
    let names: Vec<&str> = volumes.iter().map(|volume| volume.name()).collect();
    match names.is_empty() {
        true => tracing::warn!("Granary serves no volume: none can be opened"),
        false => tracing::info!("Granary serves the volumes {} at {places}", names.join(", ")),
    }
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
