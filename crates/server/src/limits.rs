//! Every bound of the servers, in one file.

use std::time::Duration;

/// Bytes of a request's body. The keys of a ClickHouse block, 65 409, take half a megabyte as numbers.
pub const BODY_BYTES_MAX: usize = 256 << 20;

/// Sum of the longest blocks that the frames of an LZ4 body may declare: the decoder allocates one for each frame.
pub const LZ4_BLOCK_BYTES_ALL_MAX: usize = 16 * BODY_BYTES_MAX;

/// Bytes of a body that are read or unpacked between two checks of memory.
pub const BODY_STEP_BYTES: usize = 1 << 20;

/// Bytes per second that a client must send of a body, after the first [`BODY_TIMEOUT_SECONDS`].
pub const BODY_BYTES_PER_SECOND_MIN: f64 = 1024.0;

/// Minimum bytes of an answer that are held back before it begins: an error before that replaces the answer. As in
/// ClickHouse.
pub const ANSWER_BYTES_HELD_MIN: usize = 1 << 20;

/// Maximum bytes of an answer that are held back, if a request wants more held, or all until its end.
pub const ANSWER_BYTES_HELD_MAX: usize = 256 << 20;

/// Bytes that one compressed block of an answer holds.
pub const BLOCK_BYTES: usize = 1 << 20;

/// Bytes that one compressed block of a request may hold, as in ClickHouse.
pub const BLOCK_BYTES_MAX: usize = 1 << 30;

/// Seconds that a named session is kept after its last request, unless the request says.
pub const SESSION_SECONDS: u64 = 60;

/// Maximum of [`SESSION_SECONDS`] that a request may set, as in ClickHouse.
pub const SESSION_SECONDS_MAX: u64 = 3600;

/// How often sessions whose time is over are dropped.
pub const SESSION_CHECK_SECONDS: u64 = 10;

/// Named sessions kept at once. A further one takes the place of an idle one.
pub const SESSIONS_MAX: usize = 10_000;

/// Bytes of an answer that are gathered before they are sent.
pub const CHUNK_BYTES: usize = 64 << 10;

/// Chunks of an answer that wait for a slow client before its query waits, too.
pub const CHUNKS_AHEAD: usize = 4;

/// Maximum length of an error's text in the middle of an answer: clients look at the last 16 KiB.
pub const EXCEPTION_BYTES_MAX: usize = 15 << 10;

/// How long an answer's connection stays after an error in the middle, to send the bytes before it.
pub const BREAK_OFF_PAUSE: Duration = Duration::from_millis(500);

/// Keys that are looked up together. A block of ClickHouse's (65 409 keys) is one request to the source.
pub const KEYS_PER_LOOKUP: usize = 1 << 16;

/// Rows of an answer that are made and written at once.
pub const ROWS_PER_WRITE: usize = 1 << 13;

/// Bytes of keys that are looked up together, where keys are long.
pub const KEY_BYTES_PER_LOOKUP: usize = 8 << 20;

/// Bytes of keys buffered while those before them are looked up and answered. A client that reads no answer before it
/// has sent all its keys can send at most this much, in which each piece that it sends counts 256 bytes more;
/// ClickHouse is one, and sends half a megabyte.
pub const KEY_BYTES_AHEAD: u32 = 16 << 20;

/// Bytes of keys that must have arrived, or all of them, before a thread looks them up.
pub const KEY_BYTES_AT_FIRST: usize = 512 << 10;

/// Bytes that one piece of a body counts of [`KEY_BYTES_AHEAD`], however long it is: less than [`KEY_BYTES_AT_FIRST`]
/// are in its way before a thread takes them.
pub const PIECE_BYTES_MAX: u32 = KEY_BYTES_AHEAD - KEY_BYTES_AT_FIRST as u32;

/// Threads that wait for further keys at once. Further requests with that many keys wait for one of them.
pub const LONG_BODIES_MAX: usize = 256;

/// Queries that run at once per core, and as many lookups: some wait for the device.
pub const TURNS_PER_CORE: usize = 4;

/// Minimum and maximum of the turns by [`TURNS_PER_CORE`].
pub const TURNS_MIN: usize = 16;
/// See [`TURNS_MIN`].
pub const TURNS_MAX: usize = 256;

/// Minimum of passwords checked at once, by half of the cores: each takes tens of milliseconds and 19 MiB.
pub const LOGINS_MIN: usize = 2;
/// See [`LOGINS_MIN`].
pub const LOGINS_MAX: usize = 8;

/// Answers that may wait for slow clients without limit. While there are more, an answer whose client takes no chunk
/// for [`HURRIED_TIMEOUT`] is broken off.
pub const ANSWERS_WAITING_MAX: usize = 256;

/// See [`ANSWERS_WAITING_MAX`].
pub const HURRIED_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum threads that look keys up, run queries and wait for sources and clients: they are started on demand. A query
/// that waits for a source holds two, its own and the one that takes over the runtime's other tasks.
pub const LOOKUP_THREADS: usize = 1536;

/// Seconds that a TLS handshake may take.
pub const HANDSHAKE_SECONDS: u64 = 10;

/// Seconds that a client may take for the next bytes of a request's head or body, for the next request of a connection,
/// or to take more of an answer.
pub const BODY_TIMEOUT_SECONDS: u64 = 60;

/// Bytes read of a request's body after the request was answered with an error.
pub const UNREAD_BYTES_MAX: usize = 64 << 20;

/// Pause before the next accept, after the system refused a connection.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections served at once, unless the configuration says.
pub const CONNECTIONS: usize = 4096;

/// Seconds between two checks of the files that configure dictionaries, as in ClickHouse.
pub const CONFIGURATION_SECONDS: u64 = 5;

/// Seconds between two samples for the dashboard, and the number of samples it draws: an hour.
pub const HISTORY_SECONDS: u64 = 10;
/// See [`HISTORY_SECONDS`].
pub const HISTORY_SAMPLES: usize = 360;

/// Failures of a dictionary's source that the dashboard lists.
pub const HISTORY_FAILURES: usize = 8;

/// Seconds that requests under way may take to end when the server stops.
pub const STOP_SECONDS: u64 = 10;

const _: () = assert!(KEYS_PER_LOOKUP <= granary_dict::limits::KEYS_PER_LOOKUP_MAX);
const _: () = assert!(KEYS_PER_LOOKUP <= granary_dict::limits::KEYS_PER_REQUEST_MAX);
const _: () = assert!(
    2 * WAITING_MAX + LONG_BODIES_MAX + ANSWERS_WAITING_MAX + 2 * TURNS_MAX + LOGINS_MAX < LOOKUP_THREADS
);
const _: () = assert!(CHUNK_BYTES <= ANSWER_BYTES_HELD_MIN && ANSWER_BYTES_HELD_MIN <= ANSWER_BYTES_HELD_MAX);
const _: () = assert!(KEY_BYTES_AT_FIRST < KEY_BYTES_AHEAD as usize);
/// Lookups that wait for sources, and queries that sleep.
const WAITING_MAX: usize = granary_dict::limits::LOOKUPS_WAITING_MAX + granary_sql::limits::SLEEPERS_MAX;
