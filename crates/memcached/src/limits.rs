//! Every bound of the memcached server, in one place.

/// Longest key, in bytes, as in memcached.
pub const KEY_BYTES_MAX: usize = 250;

/// Longest line but for `get` and `gets`, in bytes: a longer one ends the connection, as in memcached.
pub const LINE_BYTES_MAX: usize = 2048;

/// Longest line of `get` and `gets`; memcached knows no bound.
pub const GET_LINE_BYTES_MAX: usize = 1 << 20;

/// Blanks that may come before a `get` that is longer than [`LINE_BYTES_MAX`].
pub const GET_BLANKS_MAX: usize = 100;

/// Words of a line that memcached looks at, but for the keys of a `get`.
pub const WORDS_MAX: usize = 23;

/// Words of a line of a meta command, the command and its key among them.
pub const META_WORDS_MAX: usize = 19;

/// Longest opaque token, its `O` included.
pub const OPAQUE_BYTES_MAX: usize = 32;

/// Exptimes up to this are seconds from now; greater ones are Unix time.
pub const RELATIVE_EXPTIME_MAX: i32 = 60 * 60 * 24 * 30;

/// What memcached adds to key and value before it compares an item with its size limit: the header, and
/// the value's line end. A value that memcached takes is taken here, and the other way round.
pub const ITEM_OVERHEAD_BYTES: usize = 48 + 8 + 1 + 2;
/// Client flags other than 0 cost memcached this more.
pub const ITEM_FLAGS_BYTES: usize = 4;

/// Bytes that are kept of an item with its value, at least.
pub const ITEM_HEADER_BYTES: usize = 1 + 4 + 8;

/// Item size limit unless told otherwise, as in memcached.
pub const ITEM_BYTES_DEFAULT: usize = 1 << 20;
/// Least item size limit, as in memcached.
pub const ITEM_BYTES_MIN: usize = 1024;
/// Greatest item size limit: a connection buffers a whole item, and a segment holds a few.
pub const ITEM_BYTES_MAX: usize = 64 << 20;

/// Shortest segment of the cache: the longest item, and others beside it.
pub const SEGMENT_BYTES_MIN: u64 = 4 << 20;
/// Fewest segments of a cache.
pub const SEGMENTS_MIN: u64 = 4;

/// Connections unless told otherwise, as in memcached.
pub const CONNECTIONS_DEFAULT: usize = 1024;

/// Bytes that one turn reads from a connection, so that others have theirs.
pub const READ_BYTES: usize = 64 << 10;

/// Bytes of replies that wait for a slow client before its requests wait, too.
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Buffers of a connection that are longer than this are given back when they are empty.
pub const BUFFER_BYTES_KEPT: usize = 16 << 10;

/// Keys that one look into the cache takes, from all connections of a thread.
pub const KEYS_PER_BATCH: usize = 512;

/// The first keys of a batch that are looked up: how long their values are tells how many more find room.
pub const KEYS_PROBED: usize = 64;

/// How many keys of a client are looked up at once at first, when nothing is known of the lengths of their values.
pub const KEYS_PER_BATCH_FIRST: usize = 128;

/// Keys of reads that one connection looks up in a turn, so that others have theirs.
pub const KEYS_PER_TURN: usize = 16 * KEYS_PER_BATCH;

/// Requests other than reads that are carried out one after the other for a connection, before it is another's turn.
pub const STEPS_IN_A_ROW: usize = 32;

/// Such requests of a connection that are carried out in a turn, before replies are sent.
pub const STEPS_PER_TURN: usize = 2048;

/// Bytes of replies that a turn makes, more or less, before they are sent.
pub const REPLY_BYTES_PER_TURN: usize = 4 << 20;

/// Bytes of values that one look into the cache gathers; keys beyond are looked up again.
pub const BATCH_BYTES_MAX: usize = 4 << 20;

/// Bytes of values that wait until all reads of their client have come; keys beyond are looked up again.
pub const PENDING_BYTES_MAX: usize = OUTPUT_BYTES_MAX;

/// Batches of reads of a connection that wait for the device at once: pipelined requests, as they come in.
pub const PENDING_READS_MAX: usize = 8;

/// Keys of a batch that is answered bit by bit as they come: a longer one would be parsed too often.
pub const PARTLY_ANSWERED_KEYS_MAX: usize = 64;

/// Locks that order the changes of one key; flushing takes them all.
pub const STRIPES: usize = 1024;

/// Keys of which the time of the last read is remembered, for the flags `h` and `l`: 8 bytes each.
pub const READS_REMEMBERED: usize = 1 << 17;

/// Numbers (cas) that are reserved at once: the file that says so is written once for as many changes.
pub const CAS_RESERVED: u64 = 1 << 20;

/// Seconds by which the clock may have been set back between two processes, as leap seconds and corrections do: time then
/// goes on from where it was. If it was set back by more, the store starts empty.
pub const CLOCK_SET_BACK_SECONDS_MAX: u32 = 60;

/// Milliseconds that a client's changes wait for write buffers at most, where each is written at once.
pub const WRITE_STALL_MILLISECONDS: u64 = 1000;

/// Milliseconds after which a thread looks again whether there are write buffers for stalled changes.
pub const WRITE_STALL_POLL_MILLISECONDS: u64 = 1;

/// Bytes of items that are put into the cache together: far fewer than a write buffer has.
pub const WRITTEN_BATCH_BYTES_MAX: usize = 1 << 20;

/// Users of an authentication file, as in memcached.
pub const USERS_MAX: usize = 8;

/// Milliseconds that clients have to take their last replies when the server stops.
pub const STOP_MILLISECONDS: u64 = 2000;

const _: () = assert!(STRIPES.is_power_of_two() && READS_REMEMBERED.is_power_of_two());
const _: () = assert!(WRITTEN_BATCH_BYTES_MAX as u64 * 4 <= SEGMENT_BYTES_MIN);
const _: () = assert!(LINE_BYTES_MAX < GET_LINE_BYTES_MAX && READ_BYTES < GET_LINE_BYTES_MAX);

/// What is read from flash at the least, where RAM allows the partitions that so short blocks want: a device answers the
/// shortest reads soonest.
pub const BLOCK_BYTES: u64 = 4 << 10;

/// The same where it does not: half as many blocks want half as many partitions.
pub const MIDDLE_BLOCK_BYTES: u64 = 8 << 10;

/// Flash up to here is cut into those two.
pub const SMALL_FLASH_BYTES: u64 = 16 << 30;

/// What larger flash is cut into.
pub const LARGE_BLOCK_BYTES: u64 = 16 << 10;

/// Blocks that may be chosen, powers of two.
pub const BLOCK_BYTES_MIN: u64 = 4 << 10;
/// See above.
pub const BLOCK_BYTES_MAX: u64 = 64 << 10;

/// Most blocks of a partition: their numbers, in the index, leave an object its 4 bytes of RAM.
pub const PARTITION_BLOCKS_MAX: u64 = 1 << 17;

/// A partition has RAM for items of at least so many of its segments, of which up to three are in write buffers.
pub const PARTITION_MEMORY_SEGMENTS_MIN: u64 = 8;

/// Lists of all items that are under way at the same time: each has a copy of a part of the items, up to 64 MiB.
pub const DUMPS_MAX: usize = 4;

/// How often in a row a change waits for its key to come from the device, where others change keys of its stripe
/// meanwhile. Then it is read once while nobody can.
pub const FETCHES_MAX: usize = 16;
