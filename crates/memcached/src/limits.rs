//! Every bound of the memcached server, in one place.

/// Longest key, in bytes, as in memcached.
pub const KEY_BYTES_MAX: usize = 250;

/// Longest line except those of `get` and `gets`, in bytes: a longer one ends the connection, as in memcached.
pub const LINE_BYTES_MAX: usize = 2048;

/// Longest line of `get` and `gets`, in bytes; memcached has no bound.
pub const GET_LINE_BYTES_MAX: usize = 1 << 20;

/// Blanks that may come before a `get` that is longer than [`LINE_BYTES_MAX`].
pub const GET_BLANKS_MAX: usize = 100;

/// Words of a line that memcached looks at, apart from the keys of a `get`.
pub const WORDS_MAX: usize = 23;

/// Most words of a line of a meta command, the command and its key included.
pub const META_WORDS_MAX: usize = 19;

/// Longest opaque token, in bytes, its `O` included.
pub const OPAQUE_BYTES_MAX: usize = 32;

/// Exptimes up to this many seconds are relative to now; greater ones are Unix time.
pub const RELATIVE_EXPTIME_MAX: i32 = 60 * 60 * 24 * 30;

/// The bytes that memcached adds to key and value before it compares an item with its size limit: the header, and the
/// value's line end. So this server takes exactly the values that memcached takes.
pub const ITEM_OVERHEAD_BYTES: usize = 48 + 8 + 1 + 2;
/// Bytes that memcached adds for client flags other than 0.
pub const ITEM_FLAGS_BYTES: usize = 4;

/// Fewest bytes of an item's header, which is stored before its data.
pub const ITEM_HEADER_BYTES: usize = 1 + 4 + 8;

/// Default item size limit, in bytes, as in memcached.
pub const ITEM_BYTES_DEFAULT: usize = 1 << 20;
/// Least item size limit, in bytes, as in memcached.
pub const ITEM_BYTES_MIN: usize = 1024;
/// Greatest item size limit, in bytes: a connection buffers a whole item, and a segment holds a few.
pub const ITEM_BYTES_MAX: usize = 64 << 20;

/// Shortest segment of the cache, in bytes: it holds an item of the default limit, and others.
pub const SEGMENT_BYTES_MIN: u64 = 4 << 20;
/// Fewest segments of a cache.
pub const SEGMENTS_MIN: u64 = 4;

/// Default limit of connections, as in memcached.
pub const CONNECTIONS_DEFAULT: usize = 1024;

/// Bytes that one turn reads from a connection at most, so that other connections have their turn.
pub const READ_BYTES: usize = 64 << 10;

/// Bytes of unsent replies from which on a slow client's further requests wait.
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Buffers of a connection that are longer than this, in bytes, are freed when they are empty.
pub const BUFFER_BYTES_KEPT: usize = 16 << 10;

/// Most keys of one lookup of the cache, from all connections of a thread.
pub const KEYS_PER_BATCH: usize = 512;

/// The keys of a batch that are looked up first: the lengths of their values tell how many more find room.
pub const KEYS_PROBED: usize = 64;

/// The keys of a client that are looked up at once at first, when nothing is known of the lengths of their values.
pub const KEYS_PER_BATCH_FIRST: usize = 128;

/// Keys of reads that one connection looks up in a turn at most, so that other connections have their turn.
pub const KEYS_PER_TURN: usize = 16 * KEYS_PER_BATCH;

/// Requests other than reads that are carried out one after the other for a connection, before another connection's
/// turn.
pub const STEPS_IN_A_ROW: usize = 32;

/// Most requests other than reads that a connection has carried out in a turn, before replies are sent.
pub const STEPS_PER_TURN: usize = 2048;

/// Bytes of replies, roughly, that a turn makes before they are sent.
pub const REPLY_BYTES_PER_TURN: usize = 4 << 20;

/// Bytes of values that one lookup of the cache gathers at most; keys that find no room are looked up again.
pub const BATCH_BYTES_MAX: usize = 4 << 20;

/// Bytes of values that wait until all reads of their client have come, at most; keys that find no room are looked up
/// again.
pub const PENDING_BYTES_MAX: usize = OUTPUT_BYTES_MAX;

/// Batches of reads of a connection that wait for the device at once: pipelined requests, as they come in.
pub const PENDING_READS_MAX: usize = 8;

/// Most keys of a batch that is answered key by key as they come: a longer one would be parsed too often.
pub const PARTLY_ANSWERED_KEYS_MAX: usize = 64;

/// Number of locks that order the changes of each key; flushing takes all of them.
pub const STRIPES: usize = 1024;

/// The number of keys whose last reads are remembered, for the flags `h` and `l`: 8 bytes each.
pub const READS_REMEMBERED: usize = 1 << 17;

/// Numbers (cas) that are reserved at once: the file that records it is written once for as many changes.
pub const CAS_RESERVED: u64 = 1 << 20;

/// Seconds by which the clock may have been set back between two processes, as leap seconds and corrections do: time then
/// goes on from where it was. If it was set back by more, the store starts empty.
pub const CLOCK_SET_BACK_SECONDS_MAX: u32 = 60;

/// Milliseconds that a client's changes wait for write buffers at most, where each is written at once.
pub const WRITE_STALL_MILLISECONDS: u64 = 1000;

/// Milliseconds after which a thread looks again whether there are write buffers for stalled changes.
pub const WRITE_STALL_POLL_MILLISECONDS: u64 = 1;

/// Bytes of items that are put into the cache together, at most: far fewer than a write buffer has.
pub const WRITTEN_BATCH_BYTES_MAX: usize = 1 << 20;

/// Users of an authentication file, as in memcached.
pub const USERS_MAX: usize = 8;

/// Milliseconds that clients have to take their last replies when the server stops.
pub const STOP_MILLISECONDS: u64 = 2000;

const _: () = assert!(STRIPES.is_power_of_two() && READS_REMEMBERED.is_power_of_two());
const _: () = assert!(WRITTEN_BATCH_BYTES_MAX as u64 * 4 <= SEGMENT_BYTES_MIN);
const _: () = assert!(LINE_BYTES_MAX < GET_LINE_BYTES_MAX && READ_BYTES < GET_LINE_BYTES_MAX);

/// Default block size: the least that is read from flash, in bytes, where RAM allows the number of partitions that such
/// short blocks need. A device answers the shortest reads soonest.
pub const BLOCK_BYTES: u64 = 4 << 10;

/// Block size in bytes where RAM does not allow that: half as many blocks need half as many partitions.
pub const MIDDLE_BLOCK_BYTES: u64 = 8 << 10;

/// Flash of up to this many bytes has blocks of one of the two sizes above.
pub const SMALL_FLASH_BYTES: u64 = 16 << 30;

/// Block size of larger flash, in bytes, where RAM does not allow [`BLOCK_BYTES`].
pub const LARGE_BLOCK_BYTES: u64 = 16 << 10;

/// Least block size that may be chosen, a power of two in bytes.
pub const BLOCK_BYTES_MIN: u64 = 4 << 10;
/// Greatest block size that may be chosen, a power of two in bytes.
pub const BLOCK_BYTES_MAX: u64 = 64 << 10;

/// Most blocks of a partition: block numbers up to this fit an index entry of 4 bytes.
pub const PARTITION_BLOCKS_MAX: u64 = 1 << 17;

/// A partition has RAM for the items of at least this many segments, of which up to three are in write buffers.
pub const PARTITION_MEMORY_SEGMENTS_MIN: u64 = 8;

/// Most lists of all items under way at the same time: each has a copy of a part of the items, up to 64 MiB.
pub const DUMPS_MAX: usize = 4;
