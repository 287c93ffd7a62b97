//! The place of a cache, and its size.

mod builder;
mod check;

pub use builder::Builder;

use crate::admission::Admission;
use crate::applications::Applications;
use crate::codec::{self, Compression};
use crate::drive::Helpers;
use crate::framing::{Records, SharingRule, has_summary};
use crate::index::{Capacity, Growth};
use crate::limits::{
    DEFAULT_MEMORY_FOLDER, HASH_BITS, OPENING_BYTES_DEFAULT, OPENING_RECORD_BYTES, PARTITIONS_MAX, SHARDS,
};
use crate::memory::Pool;
use crate::memory::shared::{self, Claims, WriteBuffers};
use crate::policy::Reinsertion;
use granary_log::device::Space;
use granary_log::sync::atomic::AtomicU64;
use granary_log::{CrashPolicy, Geometry, Occupant, OpenError, SlotOrder, folder_of, with_suffix};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The content of a cache on flash after a loss of power, which takes what was not synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerLoss {
    /// Nothing: the lost part may have changed any value.
    #[default]
    StartEmpty,
    /// The entries that are found. If a newer value of a key is lost it has an older one, but none that was deleted or
    /// overwritten before a [`Cache::sync_changes`](crate::Cache::sync_changes). The file is synced every 64 MiB.
    ServeOlder,
}

/// The part of a cache on flash. Sizes are bytes.
#[derive(Clone, Debug)]
pub struct FlashOptions {
    /// `<path>.bin` holds the data, or `path` itself if it is a block device. `<path>.state` and `<path>.journal.*` lie
    /// beside it, with several partitions `<path>.partition.N.state` and so on, and with compression
    /// `<path>.dictionaries`.
    pub path: PathBuf,
    /// The folder of state and journal instead, for a block device.
    pub state_path: Option<PathBuf>,
    /// `FILE_SIZE`: reserved at once, a multiple of `write_buffer_size`.
    pub file_size: u64,
    /// `BLOCK_SIZE`: the smallest unit read.
    pub block_size: u64,
    /// `WRITE_BUFFER_SIZE`: the unit written and reused, a multiple of `block_size`.
    pub write_buffer_size: u64,
    /// The number of separate caches that the file is divided into, by the keys' hashes: a power of two, 64 at most.
    /// Each has shorter block numbers in its index, and its own write buffers; RAM tier and budgets are divided. If the
    /// number changes, the cache starts empty.
    pub partitions: u64,
    /// `MAX_STORED_KEYS`: the index never holds more entries, rounded up to a power of two, and to 64. Opened with a
    /// bound for which the index keeps another number of hash bits (about twice as high, or half), the cache starts
    /// empty.
    pub max_stored_keys: Option<u64>,
    /// Stands for what the values mean: opened with another number, the cache starts empty.
    pub fingerprint: u64,
    /// Seeds the hash of keys ([`KeyHasher`](crate::KeyHasher)); opened with another number, the cache starts empty.
    /// `None`: the seed that the cache has, and a random one for a new cache. A fixed seed is for keys that no attacker
    /// can choose.
    pub hash_seed: Option<u64>,
    /// The fate of entries whose segment is reused. Ignored with an admission other than [`Admission::All`]:
    /// entries found lately go back to RAM.
    pub reinsertion: Reinsertion,
    /// The choice of entries that go to flash. If it is changed from [`Admission::All`] to another or back, the cache
    /// starts empty.
    pub admission: Admission,
    /// A folder on a tmpfs: the RAM tier lies there in files, and survives a kill or a panic of the process. `None`, or
    /// if the folder is no tmpfs or lacks room, which the log says once: it lies in private memory, which a kill loses.
    pub memory_folder: Option<PathBuf>,
    /// The content of the cache after a loss of power. If it is changed, the cache starts empty.
    pub power_loss: PowerLoss,
    /// The most bytes admitted to flash in a day; not with [`Admission::All`].
    pub bytes_per_day: Option<u64>,
    /// Bytes of RAM that opening may take beside the index to learn what is on flash: 8 for each record. If that is not
    /// enough, summaries are read several times, at most eight.
    pub opening_bytes: u64,
}

impl FlashOptions {
    /// Default sizes: blocks of 4 KiB, write buffers of 1 MiB, no bound on keys.
    pub fn new(path: impl Into<PathBuf>, file_size: u64) -> Self {
        Self {
            path: path.into(),
            state_path: None,
            file_size,
            block_size: 4096,
            write_buffer_size: 1 << 20,
            partitions: 1,
            max_stored_keys: None,
            fingerprint: 0,
            hash_seed: None,
            reinsertion: Reinsertion::None,
            admission: Admission::All,
            memory_folder: None,
            power_loss: PowerLoss::StartEmpty,
            bytes_per_day: None,
            opening_bytes: OPENING_BYTES_DEFAULT,
        }
    }

    pub(crate) fn log_options(&self) -> Result<granary_log::Options, OpenError> {
        self.check()?;
        let data_path =
            if is_block_device(&self.path) { self.path.clone() } else { with_suffix(&self.path, ".bin") };
        let geometry = Geometry::new(self.file_size, self.write_buffer_size, self.block_size)?;
        // Live entries of a segment may change in RAM only once it is emptied. A single segment would be emptied for
        // its own reuse.
        let partition = self.partition(geometry)?;
        if self.admission != Admission::All && partition.segments() < 2 {
            return Err(OpenError::OneSegment { path: self.path.clone() });
        }
        let hash_bits = self.capacity(&partition).hash_bits;
        // DRAM first, recovery follows another rule (recover/replay.rs).
        let rule = if self.admission == Admission::All { 0 } else { 0b01 };
        let serves_older = u64::from(self.power_loss == PowerLoss::ServeOlder);
        Ok(granary_log::Options {
            path: data_path,
            state_path: self.state_path.clone().unwrap_or_else(|| self.path.clone()),
            geometry,
            fingerprint: self.fingerprint.rotate_left(8)
                ^ u64::from(hash_bits)
                ^ rule << 6
                ^ serves_older << 63,
            salt: self.hash_seed,
            depends_on: 0,
            slots: SlotOrder::Fifo,
            space: Space::Reserved,
            crash_policy: match self.power_loss {
                PowerLoss::StartEmpty => CrashPolicy::StartEmpty,
                PowerLoss::ServeOlder => CrashPolicy::ServeOlder,
            },
            shared_memory: Vec::new(),
        })
    }

    /// The most records that opening may keep in RAM.
    pub(crate) fn opening_entries(&self) -> u64 {
        self.opening_bytes / OPENING_RECORD_BYTES as u64
    }

    /// The framing of the records.
    pub(crate) fn framing(&self) -> Result<Records, OpenError> {
        let hash_bits = self.capacity(&self.geometry()?).hash_bits;
        // The index knows the shard and `hash_bits` bits of a hash; a summary entry has one bit below the hash.
        let sharing_rule = SharingRule { ignored_bits: 1 + HASH_BITS - SHARDS.ilog2() - hash_bits };
        Ok(Records {
            summary_entries_of: crate::record::summary_entries_of,
            sharing_rule,
            is_dram_first: self.admission != Admission::All,
            entries_to_recover: Arc::new(AtomicU64::new(self.opening_entries())),
        })
    }

    /// The shape of each partition.
    pub(super) fn geometry(&self) -> Result<Geometry, OpenError> {
        self.partition(Geometry::new(self.file_size, self.write_buffer_size, self.block_size)?)
    }

    /// The shape of each partition of a file with shape `geometry`.
    fn partition(&self, geometry: Geometry) -> Result<Geometry, OpenError> {
        Ok(geometry.divide(self.partitions)?[0])
    }

    /// The capacity of the index of a partition of this shape.
    pub(crate) fn capacity(&self, geometry: &Geometry) -> Capacity {
        // No entry begins in the last block of a segment with a summary. Excluding it saves a bit if the number of
        // blocks is a power of two.
        let blocks = geometry.blocks() - u64::from(has_summary(geometry));
        let growth = if self.admission == Admission::All { Growth::Quick } else { Growth::Tight };
        let entries = self.max_stored_keys.map(|keys| keys.div_ceil(self.partitions));
        Capacity::new(geometry.file_bytes(), blocks, entries, growth)
    }

    /// Bits of a key's hash that the index keeps, including those that choose its shard. One in 2^bits of a partition's
    /// keys collides with a given key.
    ///
    /// # Errors
    /// Sizes that do not fit together.
    pub fn index_hash_bits(&self) -> Result<u32, OpenError> {
        Ok(SHARDS.ilog2() + self.capacity(&self.geometry()?).hash_bits)
    }

    /// Returns what lies where these options would create a cache; nothing is touched.
    ///
    /// # Errors
    /// Sizes that do not fit together, and errors of the operating system for an existing file.
    pub fn occupant(&self) -> Result<Occupant, OpenError> {
        let options = self.log_options()?;
        options
            .occupant(self.partitions)
            .map_err(|source| OpenError::State { path: self.path.clone(), source })
    }

    /// The files that a cache with these options creates, or may create.
    ///
    /// # Errors
    /// Sizes that do not fit together.
    pub fn files(&self) -> Result<Vec<PathBuf>, OpenError> {
        let mut files = granary_log::state_files(&self.log_options()?.state_path, self.partitions);
        if !is_block_device(&self.path) {
            files.push(with_suffix(&self.path, ".bin"));
        }
        let state_path = self.state_path.as_deref().unwrap_or(&self.path);
        files.push(codec::path_of(state_path));
        if let Some(folder) = &self.memory_folder {
            files
                .extend((0..self.partitions).map(|partition| shared::path_of(folder, state_path, partition)));
        }
        Ok(files)
    }

    /// Makes a cache that is not open start empty when it is opened again, for changes of keys that bypass it
    /// meanwhile. Removes the files of its RAM tier, which a kill left, from `memory_folder` and the default folder.
    /// Returns whether there was one.
    ///
    /// # Errors
    /// The cache is open, or the operating system refuses.
    pub fn invalidate(path: &Path, memory_folder: Option<&Path>) -> Result<bool, OpenError> {
        let is_there = granary_log::invalidate_closed(path, PARTITIONS_MAX)?;
        for folder in memory_folder.into_iter().chain([Path::new(DEFAULT_MEMORY_FOLDER)]) {
            shared::remove_unlocked(folder, path, 0..PARTITIONS_MAX);
        }
        Ok(is_there)
    }

    /// Removes the files of a cache with these options. If it is open, it goes on with the unlinked files. A kill
    /// meanwhile leaves files that open as an empty cache, and that another call removes.
    ///
    /// # Errors
    /// Sizes that do not fit together, and errors of the operating system for a file that stays.
    pub fn remove_files(&self) -> Result<(), OpenError> {
        let error = |path: &Path, source| OpenError::State { path: path.to_owned(), source };
        // Without its journal the content would have deleted entries again.
        granary_log::invalidate(&self.log_options()?.state_path, self.partitions)
            .map_err(|source| error(&self.path, source))?;
        let mut files = self.files()?;
        let state_path = self.state_path.as_deref().unwrap_or(&self.path);
        let dictionaries = codec::path_of(state_path);
        if codec::is_foreign(&dictionaries).map_err(|source| error(&dictionaries, source))? {
            files.retain(|file| *file != dictionaries);
        }
        // The states last, the first one behind all others: what lies there without one is taken for somebody else's.
        for file in files.iter().rev() {
            for path in unfinished(file).iter().chain([file]) {
                match std::fs::remove_file(path) {
                    Err(source) if source.kind() != ErrorKind::NotFound => return Err(error(path, source)),
                    _ => {}
                }
            }
        }
        // A new cache in their place must not find them after a loss of power.
        for folder in folders_of(&files) {
            match File::open(folder).and_then(|folder| folder.sync_all()) {
                Err(source) if source.kind() != ErrorKind::NotFound => return Err(error(folder, source)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The folders that `files` lie in.
fn folders_of(files: &[PathBuf]) -> BTreeSet<&Path> {
    files.iter().map(|file| folder_of(file)).collect()
}

/// The temporary name under which a journal or a file of dictionaries is written.
fn unfinished(file: &Path) -> Option<PathBuf> {
    let is_replaced = [".journal.0", ".journal.1", ".dictionaries"]
        .iter()
        .any(|end| file.as_os_str().as_bytes().ends_with(end.as_bytes()));
    is_replaced.then(|| file.with_added_extension("new"))
}

fn is_block_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|m| m.file_type().is_block_device())
}

/// The division of the RAM tier in front of flash between entries and blocks. A block of flash in RAM serves all keys
/// in it, which were put one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryDivision {
    /// By the reads of flash that more RAM for each would have saved, measured as the cache is used.
    #[default]
    Measured,
    /// Blocks get `blocks_percent` of the bytes, as far as entries keep the minimum that they need.
    Fixed {
        /// From 0 to 100; 0: blocks are not kept.
        blocks_percent: u8,
    },
}

/// A cache: on flash with a RAM tier, or in RAM only. The default has no room.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `None`: the RAM tier is the whole cache.
    pub flash: Option<FlashOptions>,
    /// Budget of the RAM tier in bytes, everything counted. 0: none. More than 127 GiB are not used.
    pub memory_bytes: u64,
    /// Most entries of the RAM tier, whatever their size. Not with flash and another admission than [`Admission::All`].
    pub memory_entries: Option<u64>,
    /// The division of the RAM tier. It keeps no blocks without flash, and none with another admission than
    /// [`Admission::All`].
    pub memory_division: MemoryDivision,
    /// The compression of values. Values compressed otherwise before are still found.
    pub compression: Compression,
    /// Applications that share the cache: dictionaries for compression are trained for each, and
    /// [`Admission::Flashield`] learns for each. Default: one application.
    pub applications: Applications,
    /// Threads that help with large batches; a process should give the same ones to all its caches.
    pub helpers: Helpers,
}

impl Options {
    /// Claims the files of the RAM tier; there are none without a usable folder.
    ///
    /// # Errors
    /// `InUse`: another process has the cache.
    pub(crate) fn claims(&self, log: &granary_log::Options) -> Result<Claims, OpenError> {
        let partition = self.of_partition();
        match self.flash.as_ref().and_then(|flash| flash.memory_folder.as_deref()) {
            Some(folder) if self.memory_bytes > 0 => {
                let pool = Pool::new(partition.memory_bytes, partition.memory_entries);
                // `log_options` has checked them.
                let geometry = self.flash.as_ref().and_then(|flash| flash.partition(log.geometry).ok());
                let buffers = geometry.map_or_else(WriteBuffers::default, |geometry| WriteBuffers {
                    number: geometry.write_buffers_max(),
                    bytes: geometry.segment_bytes(),
                });
                let layout = pool.layout(partition.entries_of_shard()).with_buffers(buffers);
                Claims::new(folder, &log.state_path, self.partitions(), layout)
                    .map_err(|_| OpenError::InUse { path: log.path.clone() })
            }
            _ => Ok(Claims::none(&log.state_path)),
        }
    }

    /// The most entries of a shard of a partition.
    pub(crate) fn entries_of_shard(&self) -> u64 {
        self.memory_entries.map_or(u64::MAX, |entries| entries.div_ceil(SHARDS as u64))
    }

    /// The number of partitions.
    pub(crate) fn partitions(&self) -> u64 {
        self.flash.as_ref().map_or(1, |flash| flash.partitions)
    }

    /// The options of each partition.
    pub(crate) fn of_partition(&self) -> Self {
        let mut options = self.clone();
        if let Some(flash) = &mut options.flash {
            let partitions = flash.partitions;
            flash.bytes_per_day = flash.bytes_per_day.map(|bytes| bytes.div_ceil(partitions));
            options.memory_bytes /= partitions;
            options.memory_entries = options.memory_entries.map(|entries| entries.div_ceil(partitions));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_share_the_budgets() {
        let flash =
            FlashOptions { partitions: 4, bytes_per_day: Some(1000), ..FlashOptions::new("c", 1 << 20) };
        let (memory_bytes, memory_entries) = (4000, Some(402));
        let options = Options { flash: Some(flash), memory_bytes, memory_entries, ..Options::default() };
        let one = options.of_partition();
        assert_eq!((one.memory_bytes, one.memory_entries), (1000, Some(101)));
        assert_eq!(one.flash.unwrap().bytes_per_day, Some(250));
    }

    /// A removal syncs the current folder for files with bare names.
    #[test]
    fn a_bare_name_lies_in_the_current_folder() {
        let files = ["c.bin", "c.state", "state/c.dictionaries"].map(PathBuf::from);
        assert_eq!(folders_of(&files), BTreeSet::from([Path::new("."), Path::new("state")]));
    }
}
