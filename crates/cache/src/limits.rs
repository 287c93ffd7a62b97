//! Every bound of the cache, in one place.

pub use granary_log::limits::PARTITIONS_MAX;

/// Bits of a key's hash that the cache knows: with one bit for deletions, a summary entry.
pub const HASH_BITS: u32 = 47;

/// The index and the RAM tier are cut into this many shards, each with a lock of its own.
pub const SHARDS: usize = 64;

/// Fewest bits of a tag when the index is as full as it is expected to get. Two buckets of 17 slots
/// then hold a foreign entry that looks like ours for 0.4 % of the keys that are not there.
pub const TAG_BITS_MIN: u32 = 12;

/// Bits of tag and block number together that every index can afford: those of a file of 256 MiB in blocks of 4 KiB.
pub const TAG_AND_BLOCK_BITS: u32 = TAG_BITS_MIN + 16;

/// Smallest mean entry, in bytes of the file, that the index expects; it works below, with shorter tags.
pub const ENTRY_BYTES_EXPECTED_MIN: u64 = 64;

/// Bytes of a bucket of the index: a cache line.
pub const BUCKET_BYTES: usize = 64;

/// A full table of fewer buckets grows by one bucket in [`SMALL_GROWTH_DIVISOR`]. As many take 32 KiB, and have some
/// 8000 entries.
pub const SMALL_TABLE_BUCKETS: usize = 512;
/// A small table grows by one bucket in this many ([`SMALL_TABLE_BUCKETS`]): after that it is 4/5 as full as before.
pub const SMALL_GROWTH_DIVISOR: usize = 4;

/// A larger full table grows by one bucket in this many: after that it is 10/11 as full as before.
pub const GROWTH_DIVISOR: usize = 10;

/// DRAM first, a full table grows by one bucket in this many: it is 32/33 as full as before.
pub const TIGHT_GROWTH_DIVISOR: usize = 32;

/// DRAM first: smallest mean entry, in bytes of the file, that the index expects; below, it finds more
/// strangers. In a week of a commercial memcached service the mean object had 257 bytes (Flashield, NSDI 2019).
pub const OBJECT_BYTES_EXPECTED_MIN: u64 = 256;

/// Fill, in percent, of a table that is made for a number of entries: a fuller one would rarely do without growing
/// again.
pub const FULL_PERCENT: usize = 95;

/// A table that grows for a batch makes room for twice the entries to come, but for at most this many more: some 5 KiB.
pub const EXPECTED_AHEAD_MAX: usize = 1024;

/// Entries that one hold of the writer's lock appends: many to a shard, so that what they touch of it
/// stays in the processor's caches, and a few milliseconds' work.
pub const PUT_CHUNK: usize = 4096;

/// Most keys whose older versions on flash a put that stays in RAM deletes at once. A kill between the two leaves
/// neither version of these.
pub const OVERWRITE_CHUNK: usize = 64;

/// Keys of a batch that are planned at once: as many as the processor's caches hold with all that is known
/// of them.
pub const PLANNED_KEYS: usize = 8192;

/// Keys that one hold of a shard's lock looks up.
pub const LOCKED_LOOKUPS: usize = 256;

/// Blocks of a write buffer that are looked through under its lock at once.
pub const LOCKED_BLOCKS: usize = 32;

/// Most keys whose entries are copied under locks before the copies are delivered.
pub const ANSWERS_MAX: usize = 256;
/// Most bytes of values that are copied so, not counting the last one.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Most bytes of room for such copies that stay from one batch to the next.
pub const ANSWER_BYTES_KEPT: usize = 1 << 20;

/// Most threads that read from the device for asynchronous tasks of a cache.
pub const ASYNC_DRIVERS_MAX: usize = 4;

/// Most bytes of room to encode keys and values in that stay with a thread.
pub const ENCODING_BYTES_KEPT: usize = 1 << 20;

/// Keys whose entries or buckets the processor fetches from memory while others are looked at. Of a million entries,
/// large batches take a tenth longer with 16, a third with 8, and as long with 32.
pub const SIDE_BY_SIDE: usize = 24;

/// Bytes that a processor fetches at once from memory.
pub const CACHE_LINE_BYTES: usize = 64;
/// Most bytes of an entry that are fetched so; those of long ones follow each other, and the processor sees that
/// itself.
pub const PREFETCHED_BYTES_MAX: usize = 256;

/// Keys of a batch that are worth another thread's help, which takes some 50 us to start.
#[cfg(not(any(feature = "shuttle", miri)))]
pub const SHARED_KEYS_MIN: usize = 8192;
/// Keys of a batch that are worth another thread's help: a model checker's batches are small.
#[cfg(any(feature = "shuttle", miri))]
pub const SHARED_KEYS_MIN: usize = 2;

/// Of the keys that a thread looks up with another one, 1/`FIRST_KEYS_DIVISOR` are planned before it begins to read.
pub const FIRST_KEYS_DIVISOR: usize = 4;

/// A stretch of blocks is read ahead if at least 1/`WANTED_DIVISOR` of its blocks are wanted by these first keys, which
/// are an eighth of the batch.
pub const WANTED_DIVISOR: usize = 2;

/// Entries of one put that are worth another thread's help with publishing them.
#[cfg(not(any(feature = "shuttle", miri)))]
pub const SHARED_ENTRIES_MIN: usize = 1024;
/// Entries of one put that are worth another thread's help: a model checker's puts are small.
#[cfg(any(feature = "shuttle", miri))]
pub const SHARED_ENTRIES_MIN: usize = 2;

/// Made values that are remembered as stored, for puts and removals that go on at the same time: 8 bytes each. A batch
/// during which more are stored is deleted.
pub const MADE_LATELY: usize = 16_384;

/// Most entries of one hash that the index holds: their two buckets have room for some 34, and a lookup reads a block
/// for each.
pub const SAME_HASH_MAX: usize = 8;

/// Expected look-alikes are counted in units of 1/2^`LOOK_ALIKE_BITS`.
pub const LOOK_ALIKE_BITS: u32 = 20;

/// Blocks known not to hold a key although its tag is there, per shard.
pub const COLLISIONS_PER_SHARD: usize = 64;

/// The time that the stop of a partition waits in all for slots for waiting deletions.
pub const STOP_WAITS_FOR_ROOM: std::time::Duration = std::time::Duration::from_secs(2);

/// Deletions that wait for room in the log, of different keys, before the cache is reset instead.
pub const TOMBSTONES_MAX: usize = 4 << 20;

/// Most bytes of multi-block entries that a lookup reads at once, except for one longer entry.
pub const LONG_BYTES_AT_ONCE: usize = 1 << 20;

/// Most times that a lookup follows an entry that moves while it is being read.
pub const LOOKUP_ROUNDS_MAX: usize = 8;

/// The least bytes of a chunk of the RAM tier.
pub const MEMORY_CHUNK_BYTES_MIN: usize = 512;
/// Most bytes of a chunk of the RAM tier, but for one with a longer entry.
pub const MEMORY_CHUNK_BYTES_MAX: usize = 64 << 10;

/// Default folder of the files of RAM tiers that outlive the process: a tmpfs on Linux.
pub const DEFAULT_MEMORY_FOLDER: &str = "/dev/shm";

/// The time that a cache that is opened waits at most for the device, in seconds, to write again what was lost with the
/// write buffers of the process before and is in RAM.
pub const WRITE_AGAIN_SECONDS_MAX: u64 = 30;

/// Bytes of a page of memory. Chunks of the RAM tier that are longer are made of whole pages.
pub const SHARED_MEMORY_PAGE_BYTES: u64 = 4096;

/// Bytes that a RAM tier on tmpfs has the kernel reserve at once.
pub const SHARED_MEMORY_RESERVE_BYTES: u64 = 1 << 20;

/// Write buffers that a RAM tier on tmpfs is to have room for beside itself: one is filled, one waits for the device,
/// one is to be used again.
pub const WRITE_BUFFERS_USUAL: u64 = 3;

/// An entry that is only in RAM takes at most 1/`SHARED_MEMORY_ENTRY_DIVISOR` of the RAM tier.
pub const SHARED_MEMORY_ENTRY_DIVISOR: u64 = 2;

/// The RAM tier's turnover is counted in parts of 1/`FRESH_DIVISOR` of its size. An entry is fresh in the part in which
/// it was put and in the next one: it does not leave before older entries, even if all of these were read.
pub const FRESH_DIVISOR: u64 = 8;

/// While this part of what entries have of the RAM tier is replaced, all found marks of the index are cleared once: an
/// entry is copied to RAM if it is found on flash twice in about that time.
pub const FOUND_TURNOVER_DIVISOR: u64 = 2;

/// Most buckets of the index whose found marks are cleared for one entry that is copied to RAM, which bounds how long
/// the index is locked. With more than some 200 times as many entries on flash as in RAM, marks last longer for it.
pub const BUCKETS_CLEARED_MAX: usize = 32;

/// Longest value, in bytes; a segment may bound it further.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// DRAM first: an entry larger than 1/`DRAM_FIRST_MEMORY_DIVISOR` of all RAM goes to flash at once. In a small RAM a
/// large entry drives out others, which costs hits; bypassing the policy costs even more in writes: with a 512th
/// (docs/studies/replay.md has the workloads) a cache of web objects wrote twice as much and found less.
pub const DRAM_FIRST_MEMORY_DIVISOR: u64 = 128;

/// DRAM first: the same for the RAM of a partition, if there are many.
pub const DRAM_FIRST_PARTITION_DIVISOR: u64 = 8;

/// DRAM first: the evictor keeps 1/`SPARE_MEMORY_DIVISOR` of the RAM tier free.
pub const SPARE_MEMORY_DIVISOR: u64 = 16;

/// DRAM first: at most this share of the entries on flash keeps its found mark (Flashield's hotness threshold, HDT).
pub const FOUND_PERCENT_MAX: usize = 70;

/// Bytes of an entry on flash beside its record: its summary entry, its part of block headers and of unused space.
pub const RECORD_COST_BYTES: usize = 10;

/// Bytes of a segment that are read at once to take entries back from it.
pub const TAKE_BACK_READ_BYTES_MAX: usize = 1 << 20;

/// The time that a cache that is closed waits for room to save what is in RAM only, before it says so and waits for the
/// device to take all that it was given.
pub const SAVE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Most passes in which a cache that is closed saves all shards' RAM: each may bring back at most [`FOUND_PERCENT_MAX`]
/// of what the one before wrote.
pub const SAVE_PASSES_MAX: usize = 16;

/// The time for which an unused write budget accumulates, in seconds.
pub const BUDGET_BURST_SECONDS: f64 = 60.0;

/// Bytes of flash for each bit of the filter of recent keys, in each of its two generations.
pub const RETURNING_FLASH_BYTES_PER_BIT: u64 = 128;

/// Bits of that filter, at least.
pub const RETURNING_BITS_MIN: u64 = 1 << 12;

/// That filter remembers 1 to 2 times 1/`RETURNING_FLASH_DIVISOR` of an object's lifetime on flash.
pub const RETURNING_FLASH_DIVISOR: u64 = 3;

/// The share of objects without evidence for flash that are written nevertheless.
pub const UNPROVEN_ADMITTED: f64 = 0.05;

/// This share while there is flash that was never written to.
pub const UNPROVEN_ADMITTED_TO_FREE_FLASH: f64 = 0.5;

/// Objects of an application that are sampled for learning.
pub const SAMPLES_MAX: usize = 8192;

/// Examples that a support vector machine needs before it decides.
pub const EXAMPLES_MIN: u32 = 256;

/// The least number of keys of a batch that is looked up in a lent workspace.
pub const LENT_WORKSPACE_KEYS_MIN: usize = 256;

/// Most workspaces kept for the next such batches.
pub const SPARE_WORKSPACES_MAX: usize = 16;

/// Bytes of entries that one step of a scan visits, or one entry if that is longer.
pub const SCAN_STEP_BYTES: usize = 1 << 20;

/// Bytes of RAM that a scan copies at once: a shard is copied in parts if it has more, and looked through for each.
pub const SCAN_COPY_BYTES: usize = 64 << 20;

const _: () = assert!(HASH_BITS + 1 == 48, "a summary entry has 48 bits");
const _: () = assert!(SHARDS.is_power_of_two());

/// Bytes of a block that are its header: checksum, sequence number, record count.
pub const BLOCK_HEADER_SIZE: usize = 16;

/// Segments of fewer blocks than this carry no summary; recovery reads their blocks.
pub const SUMMARY_BLOCKS_PER_SEGMENT_MIN: u32 = 16;

/// Most free spaces at the ends of blocks that are remembered while a segment is filled.
pub const FREE_SPACES_MAX: usize = 16;

/// A free space is filled only within the last blocks, this many: the summary entries behind it are compared and
/// shifted.
pub const FREE_SPACE_BLOCKS_BACK_MAX: usize = 64;
/// A free space is filled only within the last records, approximately this many, for the same reason.
pub const FREE_SPACE_RECORDS_BACK_MAX: usize = 2048;

/// For a block of at least this many records a filter tells which may look alike; with fewer, all are compared.
pub const MARKED_RECORDS_MIN: usize = 1024;

/// Bits of that filter for each record, at least.
pub const MARK_BITS_PER_RECORD: usize = 16;

/// Smaller free spaces are ignored: few records are shorter.
pub const FREE_SPACE_BYTES_MIN: usize = 32;

const _: () = assert!(granary_log::limits::BLOCK_SIZE_MIN as usize > BLOCK_HEADER_SIZE);
pub use granary_log::limits::SUMMARY_ENTRY_MAX;
/// Bytes of a summary entry, on the device and in RAM.
pub const SUMMARY_ENTRY_BYTES: usize = 6;
const _: () = assert!(SUMMARY_ENTRY_MAX >> (8 * SUMMARY_ENTRY_BYTES) == 0);

/// The time for which a failed read is repeated block by block.
pub const READ_BY_BLOCK_MAX: std::time::Duration = std::time::Duration::from_millis(100);

/// The longest wait for room, whatever `timeout` says.
pub const TIMEOUT_MAX: std::time::Duration = std::time::Duration::from_secs(100 * 365 * 24 * 3600);

/// Default bytes of RAM that opening a cache takes beside the index.
pub const OPENING_BYTES_DEFAULT: u64 = 128 << 20;

/// Bytes of RAM for a record while a cache is opened: its summary entry, and the structure that it is sorted into.
pub const OPENING_RECORD_BYTES: usize = 8;

/// Records of neighbouring segments that opening sorts by shard in one go.
pub const RECORDS_SORTED_TOGETHER: usize = 1 << 16;

/// Shards whose records opening replays at the same time, each on a thread: some 25 bytes a record.
pub const SHARDS_REPLAYED_TOGETHER: usize = 4;

/// Most passes in which opening reads the segments to stay within its RAM.
pub const OPENING_PASSES_MAX: usize = 8;

/// The shortest value that is compressed, in bytes: shorter ones hardly ever save an eighth.
pub const COMPRESSED_VALUE_BYTES_MIN: usize = 32;
/// The longest value that is compressed, in bytes. No more is allocated for a value, whatever its record says.
pub const COMPRESSED_VALUE_BYTES_MAX: usize = 4 << 20;

/// The compression level of zstd.
pub const ZSTD_LEVEL: i32 = 3;

/// Longest dictionary for compression, in bytes.
pub const DICTIONARY_BYTES_MAX: usize = 112 << 10;

/// A dictionary has 1/`DICTIONARY_DIVISOR` of the bytes that it is trained on.
pub const DICTIONARY_DIVISOR: usize = 16;

/// Longest dictionary of LZ4, in bytes: LZ4 reads all of it for each value. It is part of the format: decompression
/// needs the same length.
pub const LZ4_DICTIONARY_BYTES: usize = 4 << 10;

/// Bytes of values that the first dictionary is trained on.
pub const EARLY_TRAINING_BYTES: usize = 256 << 10;

/// Bytes of values that later dictionaries are trained on; applications share them.
pub const TRAINING_BYTES: usize = 4 << 20;

/// Bytes of values that a later dictionary is trained on at least, however many applications there are.
pub const TRAINING_BYTES_MIN: usize = 1 << 20;

/// Fewest values for a training.
pub const TRAINING_SAMPLES_MIN: usize = 32;

/// A longer value is trained on with its beginning only.
pub const SAMPLE_BYTES_MAX: usize = 8 << 10;

/// The compression ratio is checked after this many bytes of values.
pub const RATIO_WINDOW_BYTES: u64 = 16 << 20;

/// After a training that failed, the most windows until the next attempt, as a power of two.
pub const TRAINING_WAIT_BITS_MAX: u32 = 6;

/// Dictionaries of one application that are in use, at most.
pub const CODEC_DICTIONARIES_MAX: usize = 16;

/// Idle compression contexts that are kept.
pub const SPARE_ENCODERS_MAX: usize = 4;

/// Most bytes of a kept context: its tables are as large as its longest value needed.
pub const SPARE_ENCODER_BYTES_MAX: usize = 256 << 10;

/// Idle decompression contexts that are kept.
pub const SPARE_DECODERS_MAX: usize = 16;

/// Bytes that a thread keeps of its buffer for decompressed values.
pub const DECODED_BYTES_KEPT: usize = 256 << 10;

/// Bytes of RAM of a ghost: an object that left RAM and is remembered, to learn what more RAM would save.
pub const GHOST_BYTES: u64 = 2;

/// A ghost is remembered while 1/`GHOST_WINDOW_DIVISOR` of the RAM tier's bytes leave.
pub const GHOST_WINDOW_DIVISOR: u64 = 2;

/// Expected bytes of an entry of the RAM tier, to size the ghosts.
pub const GHOST_ENTRY_BYTES: u64 = 64;

/// Blocks have at least 1/`LEAST_BLOCKS_DIVISOR` of the RAM tier: lookups that go block by block need no more.
pub const LEAST_BLOCKS_DIVISOR: u64 = 64;

/// Blocks have 1/`FIRST_BLOCKS_DIVISOR` of the RAM tier until something is measured. Entries that are found for the
/// first time fill what they may take.
pub const FIRST_BLOCKS_DIVISOR: u64 = 2;

/// Fewest blocks in the part that they have at least.
pub const LEAST_BLOCKS: u64 = 8;

/// No blocks are kept if these would be more than 1/`MOST_OF_LEAST_BLOCKS_DIVISOR` of the RAM tier.
pub const MOST_OF_LEAST_BLOCKS_DIVISOR: u64 = 8;

/// Fewest chunks of entries that each shard has room for beside blocks.
pub const LEAST_ENTRY_CHUNKS: u64 = 4;

/// Most shards that evict entries when a read block needs room.
pub const SHARDS_ASKED_FOR_ROOM: usize = 8;

/// Most parts, each with a lock of its own, that the blocks in RAM are cut into.
pub const BLOCK_SHARDS_MAX: u64 = 16;

/// The RAM tier is divided anew after 1/`DIVISION_WINDOW_DIVISOR` of its bytes were read from flash.
pub const DIVISION_WINDOW_DIVISOR: u64 = 32;

/// Lookups in a block count as one visit, of a run of keys, until 1/`BLOCK_VISIT_DIVISOR` of the blocks of its shard
/// have been replaced.
pub const BLOCK_VISIT_DIVISOR: u64 = 16;

/// The least number of blocks that have to be replaced before a lookup counts as another visit: other threads may read
/// while a run goes on.
pub const BLOCK_VISIT_REPLACED_MIN: u64 = 8;

/// One in this many finds in blocks in RAM is copied to the entries.
pub const BLOCK_FINDS_PROMOTED: u8 = 8;
