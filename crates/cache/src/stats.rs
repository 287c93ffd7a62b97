//! Counters and sizes of a cache.

use crate::limits::LOOK_ALIKE_BITS;
use granary_log::sync::atomic::{AtomicU64, Ordering};

macro_rules! stats {
    (
        counters { $($(#[$doc:meta])* $name:ident),* $(,)? }
        sizes { $($(#[$size_doc:meta])* $size:ident),* $(,)? }
    ) => {
        /// Counters that any thread adds to.
        #[derive(Default)]
        pub(crate) struct Counters { $(pub $name: AtomicU64,)* }

        /// Counters since the cache was opened, and sizes now.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            $($(#[$size_doc])* pub $size: u64,)*
        }

        impl Counters {
            pub fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed),)* ..Stats::default() }
            }
        }

        impl std::ops::AddAssign for Stats {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
                $(self.$size += other.$size;)*
            }
        }
    };
}

stats! {
    counters {
        /// Keys found in the RAM tier (negative and expired ones too, as below).
        hits_memory,
        /// `hits_memory` found in a block that the RAM tier keeps.
        hits_block,
        /// Keys found in a write buffer.
        hits_buffer,
        /// Keys found on flash.
        hits_flash,
        /// Keys found but expired.
        expired,
        /// Keys found as negative entries.
        negative,
        /// Keys not found.
        misses,
        /// Blocks read from flash by lookups.
        block_reads,
        /// Reads from flash by lookups; neighbouring blocks share one.
        reads,
        /// Bytes read from flash by lookups.
        bytes_read,
        /// Blocks that failed their check, or could not be read.
        corrupt_blocks,
        /// Block lookups that found another key behind a tag.
        false_finds,
        /// Entries put.
        puts,
        /// Bytes of their keys and values.
        bytes_put,
        /// Entries not stored because the device was behind.
        puts_dropped,
        /// Entries not stored because they are longer than a segment or too much of RAM, or their key than a block.
        puts_too_large,
        /// Entries put that were appended to the log at once.
        written_through,
        /// Records of the log whose lengths are known: those found at the start, in whole segments, and those appended.
        records_measured,
        /// Bytes of these records.
        bytes_measured,
        /// Entries appended again when their segment was reused.
        reinserted,
        /// Entries that left the index for want of room.
        evicted_index,
        /// Entries that left the cache because their segment was reused.
        evicted_flash,
        /// Segments that were reused although some of their entries had to leave.
        segments_evicted,
        /// Entries that left the cache because their segment could not be written, or their block not be read.
        lost,
        /// Entries that left the index because another key looks like theirs.
        displaced,
        /// Entries of the index that a put or delete took over from an older version of its key or from another key
        /// that looks like it: which of the two, the index does not know.
        taken_over_unsure,
        /// The expected number of these that belonged to other keys, summed over puts and deletes, in units of
        /// 1/2^[`LOOK_ALIKE_BITS`](crate::limits::LOOK_ALIKE_BITS).
        look_alikes_expected,
        /// Entries on flash that the start left out of the index because a later one looks like theirs: they had left
        /// it before. Those of deleted keys are not counted.
        displaced_at_start,
        /// Entries that the start compared with later look-alikes, which may be versions of the same key.
        compared_at_start,
        /// Entries copied to the RAM tier.
        promoted,
        /// DRAM first: entries that went from RAM to flash.
        admitted,
        /// DRAM first: entries that left RAM because the policy did not want them on flash.
        rejected,
        /// DRAM first: entries that left RAM before the evictor came to them.
        left_unseen,
        /// DRAM first: entries that came back to RAM when their segment was reused.
        taken_back,
        /// Entries of the RAM tier that outlived the last process.
        taken_over,
    }
    sizes {
        /// Entries that left the cache from RAM because others needed their room.
        evicted_memory,
        /// The entries of `evicted_memory` that were not read since they were put.
        evicted_unfetched,
        /// Entries that left the cache from RAM after they had expired.
        expired_memory,
        /// The entries of `expired_memory` that were not read since they were put.
        expired_unfetched,
        /// Entries now: live ones in the index, and those in RAM only; not the copies in RAM of entries whose place on
        /// flash was reused.
        entries,
        /// Entries on flash now, and in write buffers.
        flash_entries,
        /// Bytes of flash.
        flash_bytes,
        /// Segments of flash.
        flash_segments,
        /// `flash_segments` that were written since the cache was made or cleared.
        flash_segments_used,
        /// Slots of the index now.
        index_slots,
        /// Entries in the RAM tier now.
        memory_entries,
        /// Bytes of RAM of the index now, including its collision filters and locks.
        index_bytes,
        /// Bytes of RAM of the RAM tier now.
        memory_bytes,
        /// `memory_bytes` that blocks take.
        block_bytes,
        /// Bytes of RAM of the files in which the RAM tier outlives the process, including free space; 0: the tier lies
        /// in private memory.
        memory_file_bytes,
        /// Bytes of RAM of the admission policy now.
        policy_bytes,
        /// Bytes of RAM of write buffers now.
        buffer_bytes,
        /// With compression: bytes of the values that were put.
        value_bytes_raw,
        /// Bytes of these values as they are stored.
        value_bytes_kept,
        /// Dictionaries for compression now.
        codec_versions,
        /// Dictionaries for compression that were trained.
        codec_trainings,
        /// Values that could not be decompressed: they were misses.
        values_undecodable,
        /// Bytes of RAM of dictionaries for compression, of contexts to compress in and of values to train on now.
        codec_bytes,
        /// Bytes written to flash.
        bytes_written,
        /// Segments written to flash.
        segments_written,
        /// Segments that could not be written.
        write_errors,
    }
}

impl std::iter::Sum for Stats {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let mut sum = Self::default();
        all.for_each(|stats| sum += stats);
        sum
    }
}

impl Stats {
    /// Bytes of the values put, divided by their stored bytes; 1 without compression.
    pub fn compression_ratio(&self) -> f64 {
        if self.value_bytes_kept == 0 {
            1.0
        } else {
            self.value_bytes_raw as f64 / self.value_bytes_kept as f64
        }
    }

    /// All keys looked up.
    pub fn lookups(&self) -> u64 {
        self.hits() + self.misses
    }

    /// All keys found.
    pub fn hits(&self) -> u64 {
        self.hits_memory + self.hits_buffer + self.hits_flash
    }

    /// Entries that left the index because another key looks like theirs: those known, plus the expected number of
    /// others.
    pub fn displaced(&self) -> u64 {
        self.displaced + self.taken_over_unsure.min(self.look_alikes_expected >> LOOK_ALIKE_BITS)
    }

    /// Entries that left the cache before they expired and without being deleted.
    pub fn evicted(&self) -> u64 {
        self.evicted_memory + self.evicted_flash + self.evicted_index + self.lost + self.displaced()
    }

    /// Estimated bytes of `records` records of the log, by their mean length.
    pub fn bytes_of_records(&self, records: u64) -> u64 {
        let mean = self.bytes_measured as f64 / self.records_measured.max(1) as f64;
        (records as f64 * mean) as u64
    }

    /// Bytes of flash that live entries take, as an estimate: their number times the mean length of a record.
    pub fn flash_bytes_live(&self) -> u64 {
        self.bytes_of_records(self.flash_entries).min(self.flash_bytes_used())
    }

    /// Bytes of the segments of flash that were written.
    pub fn flash_bytes_used(&self) -> u64 {
        self.flash_bytes / self.flash_segments.max(1) * self.flash_segments_used
    }

    /// All RAM of the cache, in bytes.
    pub fn bytes_allocated(&self) -> u64 {
        self.index_bytes + self.memory_bytes + self.policy_bytes + self.buffer_bytes + self.codec_bytes
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    if n > 0 {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
