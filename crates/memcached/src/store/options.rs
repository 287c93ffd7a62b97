//! The options of a store: the places of items, and bounds on them.

use crate::limits::{
    BLOCK_BYTES, BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, ITEM_BYTES_DEFAULT, ITEM_BYTES_MAX, ITEM_BYTES_MIN,
    LARGE_BLOCK_BYTES, MIDDLE_BLOCK_BYTES, PARTITION_BLOCKS_MAX, PARTITION_MEMORY_SEGMENTS_MIN,
    SEGMENT_BYTES_MIN, SEGMENTS_MIN, SMALL_FLASH_BYTES,
};
use granary_cache::admission::Admission;
use granary_cache::limits::{DEFAULT_MEMORY_FOLDER, PARTITIONS_MAX, SHARED_MEMORY_ENTRY_DIVISOR};
use granary_cache::{Applications, Compression, FlashOptions, PowerLoss, Reinsertion};
use std::path::PathBuf;

/// Identifies the format of an item's bytes (`item.rs`): if it changes, a store starts empty.
const FINGERPRINT: u64 = 0x6D65_6D63_0000_0001;

/// The options of a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The folder of all files; it is created if need be.
    pub path: PathBuf,
    /// RAM for items, in bytes, overhead included.
    pub memory_bytes: u64,
    /// Flash for items, in bytes, rounded down to whole segments; 0: all items are in RAM, and gone after
    /// a restart.
    pub flash_bytes: u64,
    /// Item size limit in bytes, as memcached counts it: header, key and value.
    pub item_bytes_max: usize,
    /// Block size, the least that is read from flash, in bytes: a power of two from 4 KiB to 64 KiB. `None`: a size
    /// that suits the sizes of RAM and flash, and items of some hundred bytes.
    pub block_size: Option<u64>,
    /// A folder on a tmpfs for the items in RAM, so that they survive a kill of the process. With `None`, without
    /// flash, or if the folder cannot be used, they are lost with the process.
    pub memory_folder: Option<PathBuf>,
    /// Whether the device keeps each change before it is answered, so that the items on flash survive a loss of power;
    /// otherwise a loss of power empties the store. If this is changed, the store starts empty.
    pub sync_changes: bool,
    /// The policy that decides which items go to flash.
    pub admission: Admission,
    /// The codec that items are compressed with.
    pub compression: Compression,
    /// Applications that share the store, by the prefixes of their keys.
    pub applications: Applications,
    /// Most bytes that may be written to flash in a day.
    pub bytes_per_day: Option<u64>,
    /// Seed of the hash of keys, instead of a random one, for a store on flash whose keys no attacker chooses.
    pub hash_seed: Option<u64>,
}

/// The reasons why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The sizes do not fit together.
    #[error("{0}")]
    Sizes(String),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Folder {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The cache could not be opened.
    #[error(transparent)]
    Cache(#[from] granary_cache::OpenError),
}

impl StoreOptions {
    /// Options with memcached's default item size limit. RAM is the filter in front of flash, and lies in `/dev/shm` if
    /// that has room.
    pub fn new(path: impl Into<PathBuf>, memory_bytes: u64, flash_bytes: u64) -> Self {
        Self {
            path: path.into(),
            memory_bytes,
            flash_bytes,
            item_bytes_max: ITEM_BYTES_DEFAULT,
            block_size: None,
            memory_folder: Some(DEFAULT_MEMORY_FOLDER.into()),
            sync_changes: false,
            admission: Admission::Reuse,
            compression: Compression::None,
            applications: Applications::default(),
            bytes_per_day: None,
            hash_seed: None,
        }
    }

    pub(super) fn flash_path(&self) -> PathBuf {
        self.path.join("items")
    }

    pub(super) fn time_path(&self) -> PathBuf {
        self.path.join("time")
    }

    pub(super) fn numbers_path(&self) -> PathBuf {
        self.path.join("numbers")
    }

    /// The segment size, the unit that is written and reused: it holds the longest item, and is a power of two.
    pub fn segment_bytes(&self) -> u64 {
        (2 * self.item_bytes_max as u64).next_power_of_two().max(SEGMENT_BYTES_MIN)
    }

    /// The block size, the least that is read from flash.
    pub fn block_bytes(&self) -> u64 {
        self.block_size.unwrap_or_else(|| {
            if self.partitions_wanted(BLOCK_BYTES) <= self.partitions_allowed() {
                BLOCK_BYTES
            } else if self.flash_bytes <= SMALL_FLASH_BYTES {
                MIDDLE_BLOCK_BYTES
            } else {
                LARGE_BLOCK_BYTES
            }
        })
    }

    /// The number of partitions that the flash is divided into: as many as the index needs, if RAM allows them.
    pub fn partitions(&self) -> u64 {
        self.partitions_wanted(self.block_bytes()).min(self.partitions_allowed())
    }

    fn partitions_wanted(&self, block_bytes: u64) -> u64 {
        self.flash_bytes.div_ceil(block_bytes * PARTITION_BLOCKS_MAX).next_power_of_two()
    }

    fn partitions_allowed(&self) -> u64 {
        let segments = self.memory_bytes / self.segment_bytes();
        let of_flash = self.flash_bytes / (self.segment_bytes() * SEGMENTS_MIN);
        let allowed = (segments / PARTITION_MEMORY_SEGMENTS_MIN).min(of_flash).max(1);
        (1 << allowed.ilog2()).min(PARTITIONS_MAX)
    }

    pub(super) fn cache(&self) -> Result<granary_cache::Options, OpenError> {
        if !(ITEM_BYTES_MIN..=ITEM_BYTES_MAX).contains(&self.item_bytes_max) {
            return Err(OpenError::Sizes(format!(
                "an item size limit of {} bytes is not between {ITEM_BYTES_MIN} and {ITEM_BYTES_MAX}",
                self.item_bytes_max
            )));
        }
        let in_ram_only = self.flash_bytes == 0 || self.admission == Admission::None;
        let least = self.item_bytes_max as u64 * SHARED_MEMORY_ENTRY_DIVISOR;
        if in_ram_only && self.memory_bytes < least {
            return Err(OpenError::Sizes(format!(
                "{} bytes of RAM are too few for items that are nowhere else: items up to {} bytes need {least}",
                self.memory_bytes, self.item_bytes_max
            )));
        }
        Ok(granary_cache::Options {
            flash: self.flash()?,
            memory_bytes: self.memory_bytes,
            compression: self.compression,
            applications: self.applications.clone(),
            ..granary_cache::Options::default()
        })
    }

    fn flash(&self) -> Result<Option<FlashOptions>, OpenError> {
        if self.admission == Admission::All && self.bytes_per_day.is_some() {
            return Err(OpenError::Sizes(
                "a write budget is for items that RAM filters: choose another admission than all".to_owned(),
            ));
        }
        if self.flash_bytes == 0 {
            let of_flash =
                [("synced changes", self.sync_changes), ("a write budget", self.bytes_per_day.is_some())];
            return match of_flash.iter().find(|(_, is_set)| *is_set) {
                Some((what, _)) => {
                    Err(OpenError::Sizes(format!("{what}: for items on flash, and there is no flash")))
                }
                None => Ok(None),
            };
        }
        if let Some(block) = self.block_size
            && !(block.is_power_of_two() && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block))
        {
            return Err(OpenError::Sizes(format!(
                "blocks of {block} bytes: they can have {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX}, a power of two"
            )));
        }
        let segment = self.segment_bytes();
        let least = segment * SEGMENTS_MIN;
        if self.flash_bytes < least {
            return Err(OpenError::Sizes(format!(
                "{} bytes of flash are too few: items up to {} bytes need {least}",
                self.flash_bytes, self.item_bytes_max
            )));
        }
        let unit = segment * self.partitions();
        let mut flash = FlashOptions::new(self.flash_path(), self.flash_bytes / unit * unit);
        flash.partitions = self.partitions();
        flash.write_buffer_size = segment;
        flash.block_size = self.block_bytes();
        flash.fingerprint = FINGERPRINT;
        flash.reinsertion = Reinsertion::Read;
        flash.admission = self.admission.clone();
        flash.bytes_per_day = self.bytes_per_day;
        flash.memory_folder = self.memory_folder.clone();
        if self.sync_changes {
            flash.power_loss = PowerLoss::ServeOlder;
        }
        flash.hash_seed = self.hash_seed;
        Ok(Some(flash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_flash_is_divided_where_there_is_ram_for_it() {
        let partitions = |memory_mib: u64, flash_gib: u64| {
            let options = StoreOptions::new("", memory_mib << 20, flash_gib << 30);
            let flash = options.flash().unwrap().unwrap();
            assert_eq!((flash.partitions, flash.file_size), (options.partitions(), flash_gib << 30));
            (flash.partitions, flash.block_size)
        };
        assert_eq!(partitions(32, 1), (1, MIDDLE_BLOCK_BYTES));
        assert_eq!(partitions(64, 1), (2, BLOCK_BYTES));
        assert_eq!(partitions(64, 2), (2, MIDDLE_BLOCK_BYTES));
        assert_eq!(partitions(64, 16), (2, MIDDLE_BLOCK_BYTES));
        assert_eq!(partitions(512, 16), (16, MIDDLE_BLOCK_BYTES));
        assert_eq!(partitions(1024, 16), (32, BLOCK_BYTES));
        assert_eq!(partitions(1024, 12), (32, BLOCK_BYTES));
        assert_eq!(partitions(1024, 64), (32, LARGE_BLOCK_BYTES));
        assert_eq!(partitions(8192, 32), (PARTITIONS_MAX, BLOCK_BYTES));
        assert_eq!(partitions(8192, 1024), (PARTITIONS_MAX, LARGE_BLOCK_BYTES));
        assert_eq!(partitions(1, 1024), (1, LARGE_BLOCK_BYTES));
        // Larger items need larger segments, and these need more RAM.
        let options = StoreOptions { item_bytes_max: 64 << 20, ..StoreOptions::new("", 1 << 30, 16 << 30) };
        assert_eq!((options.segment_bytes(), options.partitions()), (128 << 20, 1));
        // Each partition has as many segments as a cache needs.
        let options = StoreOptions { item_bytes_max: 64 << 20, ..StoreOptions::new("", 2 << 30, 600 << 20) };
        assert_eq!((options.partitions(), options.block_bytes()), (1, MIDDLE_BLOCK_BYTES));
    }

    #[test]
    fn blocks_can_be_chosen() {
        let with =
            |block| StoreOptions { block_size: Some(block), ..StoreOptions::new("", 1 << 30, 16 << 30) };
        let blocks = |block| with(block).flash().map(|flash| flash.map(|it| (it.partitions, it.block_size)));
        assert_eq!(blocks(64 << 10).unwrap(), Some((2, 64 << 10)));
        assert_eq!(blocks(4 << 10).unwrap(), Some((32, 4 << 10)));
        for wrong in [0, 2 << 10, 12 << 10, 128 << 10] {
            assert!(blocks(wrong).unwrap_err().to_string().contains("power of two"), "{wrong}");
        }
    }
}
