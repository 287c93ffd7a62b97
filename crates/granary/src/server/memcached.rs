//! The memcached server of `granary server`.

use super::size;
use clap::Args;
use granary_memcached::{Options, Server, ServerError, StoreOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Arguments that begin with `--memcached`.
#[derive(Args)]
#[command(next_help_heading = "Memcached")]
pub struct Arguments {
    /// Serve memcached's protocol here, too, over a cache of its own
    #[arg(long = "memcached", value_name = "ADDR", env = "GRANARY_MEMCACHED")]
    address: Option<SocketAddr>,

    /// RAM for items, everything counted
    #[arg(
        long = "memcached-memory", value_name = "SIZE", default_value = "64MiB", value_parser = size::parse,
        env = "GRANARY_MEMCACHED_MEMORY"
    )]
    memory_bytes: u64,

    /// Space for items on SSD, in DIR/memcached, reserved at once; 0: RAM only, and empty after a restart
    #[arg(
        long = "memcached-flash", value_name = "SIZE", default_value = "1GiB", value_parser = size::parse,
        env = "GRANARY_MEMCACHED_FLASH"
    )]
    flash_bytes: u64,

    /// Greatest item, key and value and some 60 bytes; memcached's -I
    #[arg(
        long = "memcached-max-item-size", value_name = "SIZE", default_value = "1MiB", value_parser = size::parse,
        env = "GRANARY_MEMCACHED_MAX_ITEM_SIZE"
    )]
    item_bytes_max: u64,

    /// Most connections at a time; memcached's -c
    #[arg(
        long = "memcached-connections", value_name = "N", default_value_t = granary_memcached::limits::CONNECTIONS_DEFAULT,
        env = "GRANARY_MEMCACHED_CONNECTIONS"
    )]
    connections_max: usize,

    /// Threads that serve; memcached's -t [default: one for each core]
    #[arg(long = "memcached-threads", value_name = "N", env = "GRANARY_MEMCACHED_THREADS")]
    threads: Option<usize>,

    /// Close connections that are idle for so many seconds; 0: never
    #[arg(
        long = "memcached-idle-timeout",
        value_name = "SECONDS",
        default_value_t = 0,
        env = "GRANARY_MEMCACHED_IDLE_TIMEOUT"
    )]
    idle_seconds: u64,

    /// Let in only whom this file has, in lines of user:password; memcached's -Y
    #[arg(long = "memcached-auth-file", value_name = "FILE", env = "GRANARY_MEMCACHED_AUTH_FILE")]
    users: Option<PathBuf>,
}

impl Arguments {
    /// Starts the server, if it is asked for. What it keeps lies in `folder`.
    pub fn start(self, folder: &Path) -> Result<Option<Server>, ServerError> {
        let Some(address) = self.address else { return Ok(None) };
        let store = StoreOptions {
            path: folder.join("memcached"),
            memory_bytes: self.memory_bytes,
            flash_bytes: self.flash_bytes,
            item_bytes_max: usize::try_from(self.item_bytes_max).unwrap_or(usize::MAX),
        };
        let Self { threads, connections_max, idle_seconds, users, .. } = self;
        Server::start(&Options { address, store, threads, connections_max, idle_seconds, users }).map(Some)
    }
}
