//! The memcached server of `granary server`.

use super::address;
use super::count;
use super::mode::{self, Mode};
use super::size::{self, Size};
use crate::memory;
use clap::Args;
use clap::builder::BoolishValueParser;
use granary_memcached::{
    Admission, Applications, Compression, Flush, OpenError, Options, Server, ServerConfig, ServerError,
    StoreOptions, UnixSocket, limits,
};
use indicatif::HumanBytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default RAM for items.
const MEMORY: Size = Size(64 << 20);
/// With less, hardly any item fits.
const MEMORY_MIN: Size = Size(1 << 20);
/// Default space on SSD for items.
const FLASH: Size = Size(1 << 30);
/// Default maximum size of an item, as in memcached.
const ITEM_MAX: Size = Size(1 << 20);

/// Arguments that begin with `--memcached`, and the section `[memcached]` of the configuration.
#[derive(Debug, Default, PartialEq, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a section [memcached]")]
#[command(next_help_heading = "Memcached")]
pub struct MemcachedArguments {
    /// Serve memcached's protocol here, too, over a cache of its own
    #[arg(long = "memcached", value_name = "ADDR", env = "GRANARY_MEMCACHED", value_parser = address::parse)]
    #[serde(default, deserialize_with = "address::deserialize")]
    address: Option<SocketAddr>,

    /// Listen on a Unix socket for clients of the same machine, beside ADDR or alone; memcached's -s
    #[arg(long = "memcached-socket", value_name = "PATH", env = "GRANARY_MEMCACHED_SOCKET")]
    socket: Option<PathBuf>,

    /// Who may connect to the Unix socket, in octal, as for chmod; memcached's -a [default: 700]
    #[arg(
        long = "memcached-socket-mode", value_name = "MODE", value_parser = mode::parse,
        env = "GRANARY_MEMCACHED_SOCKET_MODE"
    )]
    socket_mode: Option<Mode>,

    /// RAM for items; the index of the SSD and the write buffers come on top [default: 64MiB]
    #[arg(long = "memcached-memory", value_name = "SIZE", value_parser = size::parse, env = "GRANARY_MEMCACHED_MEMORY")]
    memory: Option<Size>,

    /// Space for items on SSD, in DIR/memcached, reserved at once; 0: RAM only, and empty after a restart [default:
    /// 1GiB]
    #[arg(long = "memcached-flash", value_name = "SIZE", value_parser = size::parse, env = "GRANARY_MEMCACHED_FLASH")]
    flash: Option<Size>,

    /// Greatest item, key and value and some 60 bytes; memcached's -I [default: 1MiB]
    #[arg(
        long = "memcached-max-item-size", value_name = "SIZE", value_parser = size::parse,
        env = "GRANARY_MEMCACHED_MAX_ITEM_SIZE"
    )]
    max_item_size: Option<Size>,

    /// Least bytes read from the SSD for an item, 4KiB to 64KiB: items should be much smaller, or waste space
    /// [default: 4KiB, or more if RAM is little beside SSD]
    #[arg(
        long = "memcached-block-size", value_name = "SIZE", value_parser = size::parse,
        env = "GRANARY_MEMCACHED_BLOCK_SIZE"
    )]
    block_size: Option<Size>,

    /// Folder on a tmpfs where the items in RAM lie, so that they outlive a kill of the server; if it has no room for
    /// them, or with none, they die with it [default: /dev/shm]
    #[arg(long = "memcached-memory-folder", value_name = "FOLDER", env = "GRANARY_MEMCACHED_MEMORY_FOLDER")]
    memory_folder: Option<PathBuf>,

    /// Have the SSD keep each change of an item there before it is answered, so that a power loss leaves the items on
    /// SSD; without, it empties them. Costs a sync for each turn in which such items change
    #[arg(long = "memcached-sync-changes", env = "GRANARY_MEMCACHED_SYNC_CHANGES", value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    sync_changes: Option<bool>,

    /// Which items go to SSD when they leave RAM: reuse, flashield[:READS], reject-first, probability:P, none; or all,
    /// each as soon as it is stored [default: reuse]
    #[arg(long = "memcached-admission", value_name = "POLICY", env = "GRANARY_MEMCACHED_ADMISSION")]
    #[serde(default, deserialize_with = "admission")]
    admission: Option<Admission>,

    /// Compress items, with a dictionary trained on those before: zstd, lz4 or none. How long a read takes then tells
    /// something of the item: leave it off where clients must not guess at each other's secrets [default: none]
    #[arg(long = "memcached-compression", value_name = "CODEC", env = "GRANARY_MEMCACHED_COMPRESSION")]
    #[serde(default, deserialize_with = "compression")]
    compression: Option<Compression>,

    /// Write no more than so much to SSD in a day
    #[arg(
        long = "memcached-write-budget", value_name = "SIZE", value_parser = size::parse,
        env = "GRANARY_MEMCACHED_WRITE_BUDGET"
    )]
    write_budget: Option<Size>,

    /// Train dictionaries for compression for keys with this prefix apart, and learn apart which of them flashield
    /// wants on SSD; repeatable
    #[arg(
        long = "memcached-application",
        value_name = "PREFIX",
        env = "GRANARY_MEMCACHED_APPLICATIONS",
        value_delimiter = ','
    )]
    #[serde(default)]
    applications: Vec<String>,

    /// Most connections at a time; memcached's -c [default: 1024]
    // The server has an argument with the same name.
    #[arg(
        id = "memcached-connections",
        long = "memcached-connections",
        value_name = "N",
        env = "GRANARY_MEMCACHED_CONNECTIONS"
    )]
    #[serde(default, deserialize_with = "count::deserialize_positive")]
    connections: Option<NonZeroUsize>,

    /// Threads that serve; memcached's -t [default: one for each core]
    #[arg(long = "memcached-threads", value_name = "N", env = "GRANARY_MEMCACHED_THREADS")]
    #[serde(default, deserialize_with = "count::deserialize_positive")]
    threads: Option<NonZeroUsize>,

    /// Refuse flush_all; memcached's -F
    #[arg(long = "memcached-no-flush", env = "GRANARY_MEMCACHED_NO_FLUSH", value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    no_flush: Option<bool>,

    /// Close connections that are idle for so many seconds; 0: never [default: 0]
    #[arg(long = "memcached-idle-timeout", value_name = "SECONDS", env = "GRANARY_MEMCACHED_IDLE_TIMEOUT")]
    #[serde(default, deserialize_with = "count::deserialize")]
    idle_timeout: Option<u64>,

    /// Speak TLS, with the certificate of --tls-certificate and --tls-key; memcached's -Z
    #[arg(long = "memcached-tls", env = "GRANARY_MEMCACHED_TLS", value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    tls: Option<bool>,

    /// Let in only whom this file has, in lines of user:password; memcached's -Y
    #[arg(long = "memcached-auth-file", value_name = "FILE", env = "GRANARY_MEMCACHED_AUTH_FILE")]
    auth_file: Option<PathBuf>,
}

fn admission<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Admission>, D::Error> {
    String::deserialize(value)?.parse().map(Some).map_err(D::Error::custom)
}

fn compression<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Compression>, D::Error> {
    String::deserialize(value)?.parse().map(Some).map_err(D::Error::custom)
}

impl MemcachedArguments {
    /// These arguments, completed by `others`.
    pub fn or(self, others: MemcachedArguments) -> MemcachedArguments {
        MemcachedArguments {
            address: self.address.or(others.address),
            socket: self.socket.or(others.socket),
            socket_mode: self.socket_mode.or(others.socket_mode),
            memory: self.memory.or(others.memory),
            flash: self.flash.or(others.flash),
            max_item_size: self.max_item_size.or(others.max_item_size),
            block_size: self.block_size.or(others.block_size),
            memory_folder: self.memory_folder.or(others.memory_folder),
            sync_changes: self.sync_changes.or(others.sync_changes),
            admission: self.admission.or(others.admission),
            compression: self.compression.or(others.compression),
            write_budget: self.write_budget.or(others.write_budget),
            applications: if self.applications.is_empty() { others.applications } else { self.applications },
            connections: self.connections.or(others.connections),
            threads: self.threads.or(others.threads),
            no_flush: self.no_flush.or(others.no_flush),
            idle_timeout: self.idle_timeout.or(others.idle_timeout),
            tls: self.tls.or(others.tls),
            auth_file: self.auth_file.or(others.auth_file),
        }
    }

    /// Whether an address or a socket is given.
    pub fn has_address(&self) -> bool {
        self.address.is_some() || self.socket.is_some()
    }

    /// Whether any argument is given.
    pub fn says_something(&self) -> bool {
        *self != MemcachedArguments::default()
    }

    /// Whether it is to serve TLS.
    pub fn wants_tls(&self) -> bool {
        self.has_address() && self.tls == Some(true)
    }

    /// Starts the server, if it has an address. Its data lie in `folder`.
    pub fn start(self, folder: &Path, tls: Option<Arc<ServerConfig>>) -> Result<Option<Server>, ServerError> {
        if !self.has_address() {
            return Ok(None);
        }
        let store = self.store(folder)?;
        if let (Some(address), None) = (self.address, &self.auth_file)
            && !address.ip().is_loopback()
        {
            tracing::warn!(
                "whoever reaches {address} reads and writes the items: --memcached-auth-file has users"
            );
        }
        let mode = self.socket_mode.map_or(UnixSocket::MODE_DEFAULT, |mode| mode.0);
        let options = Options {
            address: self.address,
            socket: self.socket.map(|path| UnixSocket { path, mode }),
            store,
            threads: self.threads.map(NonZeroUsize::get),
            connections_max: self.connections.map_or(limits::CONNECTIONS_DEFAULT, NonZeroUsize::get),
            flush: if self.no_flush == Some(true) { Flush::Refused } else { Flush::Allowed },
            idle_seconds: self.idle_timeout.unwrap_or(0),
            users: self.auth_file,
            tls,
            allocator: Some(memory::allocator_sizes),
        };
        Server::start(&options).map(Some)
    }

    /// The options of the items' store, whose data lie in `folder`.
    fn store(&self, folder: &Path) -> Result<StoreOptions, OpenError> {
        let memory_bytes = self.memory.unwrap_or(MEMORY).0;
        if memory_bytes < MEMORY_MIN.0 {
            // memcached's -m counts in megabytes.
            let reason = format!(
                "{memory_bytes} bytes of RAM are too few for items: give a unit, such as 64MiB, and 1MiB at least"
            );
            return Err(OpenError::Sizes(reason));
        }
        let ram = memory::ram();
        if memory_bytes > ram {
            let [wanted, there] = [memory_bytes, ram].map(HumanBytes);
            let reason = format!(
                "{wanted} of RAM are wanted for items, and this machine, or the control group, has {there}"
            );
            return Err(OpenError::Sizes(reason));
        }
        let mut store =
            StoreOptions::new(folder.join("memcached"), memory_bytes, self.flash.unwrap_or(FLASH).0);
        store.item_bytes_max =
            usize::try_from(self.max_item_size.unwrap_or(ITEM_MAX).0).unwrap_or(usize::MAX);
        store.block_size = self.block_size.map(|size| size.0);
        if let Some(folder) = self.memory_folder.clone() {
            store.memory_folder = Some(folder).filter(|folder| folder != Path::new("none"));
        }
        store.sync_changes = self.sync_changes == Some(true);
        store.admission = self.admission.clone().unwrap_or(store.admission);
        store.compression = self.compression.unwrap_or_default();
        store.applications =
            Applications::new(self.applications.iter().map(|prefix| prefix.clone().into_bytes()));
        store.bytes_per_day = self.write_budget.map(|size| size.0);
        Ok(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> MemcachedArguments {
        MemcachedArguments {
            address: Some(SocketAddr::from(([127, 0, 0, 1], 11211))),
            socket: Some("socket".into()),
            socket_mode: Some(Mode(0o660)),
            memory: Some(Size(1 << 20)),
            flash: Some(Size(2)),
            max_item_size: Some(Size(3)),
            block_size: Some(Size(4)),
            memory_folder: Some("memory".into()),
            sync_changes: Some(true),
            admission: Some(Admission::RejectFirst),
            compression: Some(Compression::Lz4),
            write_budget: Some(Size(5)),
            applications: vec!["a:".into()],
            connections: NonZeroUsize::new(6),
            threads: NonZeroUsize::new(7),
            no_flush: Some(true),
            idle_timeout: Some(8),
            tls: Some(true),
            auth_file: Some("users".into()),
        }
    }

    #[test]
    fn an_argument_that_is_not_given_is_that_of_the_configuration() {
        assert_eq!(MemcachedArguments::default().or(all()), all());
        assert_eq!(all().or(MemcachedArguments::default()), all());
    }

    #[test]
    fn the_store_is_as_the_arguments_say() {
        let store = all().store(Path::new("d")).unwrap();
        assert_eq!(store.path, Path::new("d/memcached"));
        assert_eq!((store.memory_bytes, store.flash_bytes, store.item_bytes_max), (1 << 20, 2, 3));
        assert_eq!((store.block_size, store.memory_folder), (Some(4), Some("memory".into())));
        assert_eq!((store.sync_changes, store.bytes_per_day), (true, Some(5)));
        assert_eq!((store.admission, store.compression), (Admission::RejectFirst, Compression::Lz4));
        assert_eq!(store.applications, Applications::new([b"a:".to_vec()]));
        let none = MemcachedArguments { memory_folder: Some("none".into()), ..MemcachedArguments::default() };
        assert_eq!(none.store(Path::new("d")).unwrap().memory_folder, None);
    }
}
