//! Both caches behind the same calls.

use foyer::{
    BlockEngineConfig, DeviceBuilder, FsDeviceBuilder, HybridCache, HybridCacheBuilder, HybridCachePolicy,
    IoEngineConfig, PsyncIoEngineConfig, RecoverMode, UringIoEngineConfig,
};
use granary_cache::{AsyncCache, Cache, TypedCache};
use std::path::Path;
use std::time::Duration;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Granary, its RAM tier in memory of the process's own.
    Granary,
    /// Granary, its RAM tier on tmpfs.
    GranaryShared,
    /// foyer with pread and pwrite on tokio's threads, its default, which writes entries as they are inserted.
    FoyerPsync,
    /// The same with io_uring.
    FoyerUring,
    /// The first with 256 MiB of write buffers.
    FoyerLarge,
    /// foyer that writes what leaves RAM, its default policy, with 256 MiB of write buffers.
    FoyerEviction,
}

impl Kind {
    pub const SPEED: [Self; 3] = [Self::Granary, Self::FoyerPsync, Self::FoyerUring];
    pub const MEMORY: [Self; 2] = [Self::Granary, Self::FoyerPsync];
    pub const STALE: [Self; 5] =
        [Self::Granary, Self::FoyerPsync, Self::FoyerUring, Self::FoyerLarge, Self::FoyerEviction];
    pub const RESTART: [Self; 4] =
        [Self::Granary, Self::GranaryShared, Self::FoyerPsync, Self::FoyerEviction];

    pub fn name(self) -> &'static str {
        match self {
            Self::Granary => "granary",
            Self::GranaryShared => "granary-shared",
            Self::FoyerPsync => "foyer-psync",
            Self::FoyerUring => "foyer-uring",
            Self::FoyerLarge => "foyer-large",
            Self::FoyerEviction => "foyer-eviction",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::STALE.into_iter().chain([Self::GranaryShared]).find(|kind| kind.name() == name)
    }
}

/// Sizes, the same for both.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub memory_bytes: usize,
    pub disk_bytes: usize,
}

/// A value: its key's version and number, and bytes that do not compress.
pub fn value(key: u64, version: u64, len: usize) -> Vec<u8> {
    let mut value = vec![0; len];
    let mut random = fastrand::Rng::with_seed(key ^ version.rotate_left(32));
    random.fill(&mut value[16..]);
    value[..8].copy_from_slice(&version.to_le_bytes());
    value[8..16].copy_from_slice(&key.to_le_bytes());
    value
}

/// The version of a value, which must be the key's.
fn version_of(key: u64, value: &[u8]) -> u64 {
    let (version, rest) = value.split_first_chunk().expect("a version");
    assert!(rest.starts_with(&key.to_le_bytes()), "another key's value");
    u64::from_le_bytes(*version)
}

#[derive(Clone)]
pub enum Engine {
    Granary(AsyncCache<u64, Vec<u8>>),
    Foyer(HybridCache<u64, Vec<u8>>),
}

impl Engine {
    pub async fn open(kind: Kind, folder: &Path, sizes: Sizes) -> Self {
        if matches!(kind, Kind::Granary | Kind::GranaryShared) {
            let mut builder = Cache::builder()
                .memory(sizes.memory_bytes as u64)
                .flash(folder.join("granary"), sizes.disk_bytes as u64);
            if kind == Kind::GranaryShared {
                builder = builder.memory_folder("/dev/shm");
            }
            let cache = builder.open().expect("it opens");
            return Self::Granary(AsyncCache::new(TypedCache::new(cache)).expect("threads start"));
        }
        let device = FsDeviceBuilder::new(folder.join("foyer"))
            .with_capacity(sizes.disk_bytes)
            .with_direct(true)
            .build()
            .expect("a device");
        let policy = match kind {
            Kind::FoyerEviction => HybridCachePolicy::WriteOnEviction,
            _ => HybridCachePolicy::WriteOnInsertion,
        };
        let buffers = match kind {
            Kind::FoyerLarge | Kind::FoyerEviction => 256 << 20,
            _ => 64 << 20,
        };
        // As README's example of all options has it, where that concerns what is measured: two flushers and reclaimers,
        // a large pool of buffers, and the queue that is said to be the default for it (0.22.6 has 16 MiB for any). The
        // tombstone log is for caches whose entries change and are opened again.
        let engine = BlockEngineConfig::new(device)
            .with_flushers(2)
            .with_reclaimers(2)
            .with_buffer_pool_size(buffers)
            .with_submit_queue_size_threshold(2 * buffers)
            .with_tombstone_log(true);
        let builder = HybridCacheBuilder::new()
            .with_policy(policy)
            .with_flush_on_close(true)
            .memory(sizes.memory_bytes)
            .with_weighter(|_: &u64, value: &Vec<u8>| value.len() + 64)
            .storage()
            .with_recover_mode(RecoverMode::Quiet)
            .with_engine_config(engine);
        let builder = match kind {
            Kind::FoyerUring => {
                builder.with_io_engine_config(Box::new(UringIoEngineConfig::new()) as Box<dyn IoEngineConfig>)
            }
            _ => builder.with_io_engine_config(PsyncIoEngineConfig::new()),
        };
        Self::Foyer(builder.build().await.expect("it opens"))
    }

    /// The version that is found.
    pub async fn get(&self, key: u64) -> Option<u64> {
        match self {
            Self::Granary(cache) => cache.get(&key).await.map(|value| version_of(key, &value)),
            Self::Foyer(cache) => {
                let entry = cache.get(&key).await.expect("no error")?;
                Some(version_of(key, entry.value()))
            }
        }
    }

    /// Whether the cache says that it keeps the value; foyer does not say.
    pub fn insert(&self, key: u64, value: Vec<u8>) -> bool {
        match self {
            Self::Granary(cache) => cache.insert(&key, &value).is_ok(),
            Self::Foyer(cache) => {
                cache.insert(key, value);
                true
            }
        }
    }

    pub fn remove(&self, key: u64) {
        match self {
            Self::Granary(cache) => cache.remove(&key),
            Self::Foyer(cache) => cache.remove(&key),
        }
    }

    /// Inserts values, each kept: foyer is waited for after every 8 MiB, Granary where it says that it is behind.
    pub async fn fill(&self, entries: impl Iterator<Item = (u64, Vec<u8>)>) {
        let mut bytes = 0;
        for (key, value) in entries {
            bytes += value.len().next_multiple_of(4096);
            match self {
                Self::Granary(cache) => {
                    while cache.insert(&key, &value).is_err() {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                Self::Foyer(cache) => {
                    cache.insert(key, value);
                    if bytes > 8 << 20 {
                        bytes = 0;
                        cache.storage().wait().await;
                    }
                }
            }
        }
    }

    /// Waits until what was written is on the device.
    pub async fn settle(&self) {
        match self {
            Self::Granary(cache) => cache.flush().await.expect("the device takes it"),
            Self::Foyer(cache) => cache.storage().wait().await,
        }
    }

    /// Leaves what is in RAM no place there.
    pub async fn empty_memory(&self, value_bytes: usize, memory_bytes: usize) {
        if let Self::Foyer(cache) = self {
            // What is written as it is inserted is on disk; the others are written as they leave.
            cache.flush_if(|_, _| true).await;
        }
        let others = (memory_bytes / value_bytes * 3) as u64;
        self.fill((0..others).map(|i| (u64::MAX - i, value(u64::MAX - i, 1, value_bytes)))).await;
        self.settle().await;
    }

    pub async fn close(self) {
        match self {
            Self::Granary(cache) => cache.close().await.expect("it closes"),
            Self::Foyer(cache) => cache.close().await.expect("it closes"),
        }
    }
}
