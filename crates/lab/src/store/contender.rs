//! The contenders, each measured in a process of its own.

use super::error::StoreError;
use super::measurement::{Contents, Loaded, Measured, Reading, StoreRequest, WarmUp};
use crate::memory_limit::MemoryLimit;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// RAM that a limited process may take beside its caches: for code, buffers and page cache,
pub const ALLOWANCE_BYTES: u64 = 64 << 20;

/// and per key, for the index (Granary) or for the tables' indexes and filters (LevelDB, RocksDB).
pub const ALLOWANCE_KEY_BYTES: u64 = 6;

/// 1/ALLOWANCE_CACHE_PART of the caches is allowed for allocators: a peer that is killed at its limit has no figure.
pub const ALLOWANCE_CACHE_PART: u64 = 16;

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Granary,
    LevelDb,
    RocksDb,
}

impl Engine {
    /// The name of its folder, and the driver's argument.
    pub fn name(self) -> &'static str {
        match self {
            Self::Granary => "granary",
            Self::LevelDb => "leveldb",
            Self::RocksDb => "rocksdb",
        }
    }
}

/// How a store reads its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileReads {
    /// Bypassing the page cache.
    Direct,
    /// Through the page cache.
    Buffered,
    /// By memory maps, LevelDB's way.
    Mapped,
}

/// One engine with one setting.
#[derive(Clone, Debug)]
pub struct Contender {
    pub name: &'static str,
    pub engine: Engine,
    pub file_reads: FileReads,
    /// Whether it runs in a memory cgroup.
    pub is_limited: bool,
}

const fn limited(name: &'static str, engine: Engine, file_reads: FileReads) -> Contender {
    Contender { name, engine, file_reads, is_limited: true }
}

pub const GRANARY: Contender = limited("Granary", Engine::Granary, FileReads::Direct);
pub const ROCKSDB: Contender = limited("RocksDB", Engine::RocksDb, FileReads::Direct);
pub const LEVELDB: Contender = limited("LevelDB", Engine::LevelDb, FileReads::Mapped);
pub const LEVELDB_READ: Contender = limited("LevelDB, pread", Engine::LevelDb, FileReads::Buffered);
pub const ROCKSDB_UNLIMITED: Contender = Contender {
    name: "RocksDB, buffered, no limit",
    engine: Engine::RocksDb,
    file_reads: FileReads::Buffered,
    is_limited: false,
};
pub const LEVELDB_UNLIMITED: Contender = Contender {
    name: "LevelDB, no limit",
    engine: Engine::LevelDb,
    file_reads: FileReads::Mapped,
    is_limited: false,
};

/// The RAM limit of a process.
pub fn limit_bytes(contents: &Contents, reading: &Reading) -> u64 {
    let caches = reading.cache_bytes + reading.row_cache_bytes;
    caches + caches / ALLOWANCE_CACHE_PART + ALLOWANCE_BYTES + ALLOWANCE_KEY_BYTES * contents.keys
}

/// The programs that load and read stores.
pub struct Programs {
    /// The command that gets a [`StoreRequest`] as its last argument and calls [`serve`](super::serve).
    pub granary: Vec<OsString>,
    /// The driver of LevelDB and RocksDB; `None`: it is missing.
    pub peers: Option<PathBuf>,
    /// Whether memory cgroups can be made.
    pub can_limit: bool,
}

impl Programs {
    /// Whether a contender can run here.
    pub fn can_run(&self, contender: &Contender) -> bool {
        contender.engine == Engine::Granary || self.peers.is_some()
    }

    /// Loads a store into a folder, which is removed first.
    ///
    /// # Errors
    /// The process fails.
    pub fn load(&self, engine: Engine, contents: &Contents) -> Result<Loaded, StoreError> {
        let folder = &contents.folder;
        let failed = |why: std::io::Error| StoreError::Process(folder.display().to_string(), why.to_string());
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(failed)?;
        }
        std::fs::create_dir_all(folder).map_err(failed)?;
        let arguments = match engine {
            Engine::Granary => self.request(contents, None)?,
            _ => {
                let order = if contents.in_key_order { "keys" } else { "random" };
                let mut words = self.words("load", engine, contents);
                let block_bytes = contents.block_bytes.to_string();
                words.extend(["--order", order, "--block-size", &block_bytes].map(OsString::from));
                words
            }
        };
        run(&arguments, None)
    }

    /// Measures a contender on a store that was loaded.
    ///
    /// # Errors
    /// The process fails, or a value is wrong; or the process cannot be limited, though it should be.
    pub fn read(
        &self,
        contender: &Contender,
        contents: &Contents,
        reading: &Reading,
    ) -> Result<Measured, StoreError> {
        let arguments = match contender.engine {
            Engine::Granary => self.request(contents, Some(reading.clone()))?,
            engine => {
                let mut words = self.words("read", engine, contents);
                let file_reads = match contender.file_reads {
                    FileReads::Direct => "direct",
                    FileReads::Buffered => "buffered",
                    FileReads::Mapped => "mmap",
                };
                // Pages that other processes brought into the page cache would not count for its limit.
                // Without a limit the page cache shall hold the store, whatever read it before.
                let cold = if contender.is_limited { "yes" } else { "fill" };
                let warm_up = match reading.warm_up {
                    WarmUp::Cold => "0".to_owned(),
                    WarmUp::Operations(count) => count.to_string(),
                    WarmUp::Pass => "pass".to_owned(),
                    WarmUp::Rehearsal => {
                        return Err(StoreError::Wrong("peers do not rehearse".to_owned()));
                    }
                };
                let numbers = [
                    ("--cache", reading.cache_bytes),
                    ("--row-cache", reading.row_cache_bytes),
                    ("--operations", reading.operations),
                    ("--at-once", reading.keys_at_once),
                    ("--windows", reading.windows),
                    ("--seed", reading.seed),
                ];
                let names = [
                    ("--workload", &reading.workload[..]),
                    ("--file-reads", file_reads),
                    ("--cold", cold),
                    ("--warm-up", &warm_up),
                ];
                words.extend(names.iter().flat_map(|(name, value)| [name, value]).map(OsString::from));
                let seconds = reading.seconds_max.map(|seconds| ("--seconds", seconds));
                let numbers = numbers
                    .into_iter()
                    .chain(seconds)
                    .map(|(name, number)| [name.to_owned(), number.to_string()]);
                words.extend(numbers.flatten().map(OsString::from));
                words
            }
        };
        let wants_limit = contender.is_limited && self.can_limit;
        let limit = wants_limit.then(|| MemoryLimit::new(limit_bytes(contents, reading))).transpose();
        let limit = limit.map_err(StoreError::Limit)?;
        run(&arguments, limit.as_ref())
    }

    fn request(&self, contents: &Contents, reading: Option<Reading>) -> Result<Vec<OsString>, StoreError> {
        let request = serde_json::to_string(&StoreRequest { contents: contents.clone(), reading })?;
        Ok(self.granary.iter().cloned().chain([request.into()]).collect())
    }

    fn words(&self, command: &str, engine: Engine, contents: &Contents) -> Vec<OsString> {
        let program = self.peers.clone().unwrap_or_default().into_os_string();
        let numbers = [contents.keys, contents.value_bytes].map(|number| number.to_string().into());
        let mut words = vec![program, command.into(), engine.name().into(), contents.folder.clone().into()];
        words.extend(numbers);
        words
    }
}

fn run<T: DeserializeOwned>(arguments: &[OsString], limit: Option<&MemoryLimit>) -> Result<T, StoreError> {
    let program = arguments[0].to_string_lossy().into_owned();
    let mut command = match limit {
        Some(limit) => limit.command(&program),
        None => Command::new(&program),
    };
    let output = command.args(&arguments[1..]).stdin(Stdio::null()).output();
    let output = output.map_err(|why| StoreError::Process(program.clone(), why.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(StoreError::Process(program, format!("{}: {said}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
