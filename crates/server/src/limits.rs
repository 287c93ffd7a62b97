//! Every bound of the servers, in one file.

/// Bytes of a request's body. The keys of a ClickHouse block, 65 409, take half a megabyte as numbers.
pub const BODY_BYTES_MAX: usize = 256 << 20;

/// Bytes of an answer that are gathered before they are sent.
pub const CHUNK_BYTES: usize = 64 << 10;

/// Chunks of an answer that wait for a slow client, before its query waits, too.
pub const CHUNKS_AHEAD: usize = 4;

/// Keys that one look into a dictionary takes.
pub const KEYS_PER_LOOKUP: usize = 1 << 17;

/// Threads that look keys up, run queries and wait for sources. Each has a ring and its buffers.
pub const LOOKUP_THREADS: usize = 64;

/// Seconds that requests under way have to end in when the server stops.
pub const STOP_SECONDS: u64 = 10;

const _: () = assert!(KEYS_PER_LOOKUP <= granary_dict::limits::KEYS_PER_LOOKUP_MAX);
