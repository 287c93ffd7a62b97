//! Every bound of the NBD server, in one place.

/// Longest name, description, query or message, in bytes: the protocol's own bound of strings.
pub const STRING_BYTES_MAX: usize = 4096;

/// Options of one handshake; a client that sends more is disconnected. Clients that list exports send several options
/// for each.
pub const OPTIONS_MAX: u32 = 4096;

/// Longest data of an option that is kept while it arrives; longer data is skipped, and the option refused.
pub const OPTION_BYTES_MAX: usize = 64 << 10;

/// Queries for metadata contexts in one option.
pub const META_QUERIES_MAX: u32 = 1024;

/// Bytes of replies to options that are gathered before they are sent. While more wait, no option is answered, and an
/// answer to LIST pauses.
pub const HANDSHAKE_OUTPUT_BYTES_SOFT: usize = 64 << 10;

/// Most bytes that a READ or a WRITE transfers.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// A longer WRITE is begun in parts of this many bytes while it arrives. Parts end at multiples of it, and so between
/// blocks.
pub const WRITE_PART_BYTES: u32 = 128 << 10;

/// Commands of one connection in flight at once, counting each part of a WRITE; further ones wait in the socket.
pub const COMMANDS_IN_FLIGHT_MAX: usize = 256;

/// Bytes that the READs and WRITEs of one connection in flight may transfer together. One command is always begun.
pub const BYTES_IN_FLIGHT_MAX: u64 = 64 << 20;

/// Longest range of a volume's device that is read at once for a connection (a block may be longer). The buffers take
/// 16 times as much.
pub const FLIGHT_BYTES_MAX: usize = 64 << 10;

/// Bytes of replies that are gathered before they are sent; no command is begun while more of them wait.
pub const OUTPUT_BYTES_SOFT: usize = 256 << 10;

/// Size of a connection's input buffer, and the most that an idle connection keeps of the buffer of its replies.
pub const BUFFER_BYTES: usize = 256 << 10;

/// Bytes by which a connection's buffer of replies grows beyond [`BUFFER_BYTES`].
pub const OUTPUT_STEP_BYTES: usize = 1 << 20;

/// Bytes that replies and commands in flight may take, over all connections, beyond the first [`BUFFER_BYTES`] of each.
pub const LARGE_BUFFER_BYTES_MAX: usize = 1 << 30;

/// Extents in one answer to BLOCK_STATUS; the client asks again for the rest.
pub const EXTENTS_MAX: usize = 64 << 10;

/// Blocks with content that one answer to BLOCK_STATUS of a volume looks at; the client asks again for the rest.
pub const STATUS_BLOCKS_MAX: u64 = 64 << 10;

/// BLOCK_STATUSes that are answered before a connection looks at what else there is, such as the server's stop.
pub const STATUSES_TOGETHER_MAX: usize = 16;

/// Shortest run of zeroes that a structured READ sends as a hole: its chunk takes 32 bytes.
pub const HOLE_BYTES_MIN: u32 = 512;

/// Largest minimum block size that the protocol knows.
pub const MINIMUM_BLOCK_MAX: u32 = 64 << 10;

/// Default bound on simultaneous connections; others are closed at once.
pub const CONNECTIONS_DEFAULT: usize = 256;

/// Default seconds that a client has for its handshake, including TLS.
pub const HANDSHAKE_SECONDS_DEFAULT: u64 = 30;

/// Default seconds without progress after which a client is disconnected that takes no replies, or that stopped in the
/// middle of a request.
pub const STALL_SECONDS_DEFAULT: u64 = 30;

/// Bytes that count as progress in that time, for a client whose replies and commands take more than [`BUFFER_BYTES`]:
/// others may wait for that memory. For other clients a single byte is progress.
pub const STALL_BYTES_MIN: usize = 1 << 20;

/// Seconds that commands in flight have to complete when the server stops.
pub const STOP_SECONDS: u64 = 30;

/// Milliseconds after which a stopping server disconnects a client that asks for nothing.
pub const STOP_LINGER_MILLISECONDS: u64 = 100;

/// Milliseconds that a stopping server refuses commands before it disconnects a client that keeps sending.
pub const STOP_REFUSAL_MILLISECONDS: u64 = 1000;

/// Milliseconds between polls of a session with commands in flight and no event, and of memory that other connections
/// hold.
pub const LOOK_MILLISECONDS: u64 = 2;

/// Milliseconds that a connection's thread itself waits for room in a volume before it leaves the change to another
/// thread.
pub const ROOM_WAIT_MILLISECONDS: u64 = 5;

/// Most microseconds that a thread polls for the next request before it sleeps, while requests come that soon.
pub const POLL_MICROSECONDS_MAX: u64 = 20;

/// Milliseconds without requests after which a connection gives large buffers back.
pub const IDLE_MILLISECONDS: u64 = 1000;

/// Milliseconds that accepting rests when the process has no file descriptors or threads left.
pub const ACCEPT_PAUSE_MILLISECONDS: u64 = 50;

/// Most unread bytes that are searched for a goodbye when a client has closed its side.
pub const PEEKED_BYTES_MAX: u64 = 2 << 20;

const _: () =
    assert!(WRITE_PART_BYTES as usize + 28 <= BUFFER_BYTES, "a part, or a WRITE that is none, fits");
const _: () = assert!(WRITE_PART_BYTES.is_multiple_of(MINIMUM_BLOCK_MAX));
const _: () = assert!(BUFFER_BYTES.is_power_of_two() && OUTPUT_STEP_BYTES >= BUFFER_BYTES);
const _: () = assert!(HANDSHAKE_OUTPUT_BYTES_SOFT <= OUTPUT_BYTES_SOFT);
const _: () = assert!(OPTION_BYTES_MAX + 16 <= BUFFER_BYTES && 2 * STRING_BYTES_MAX < OPTION_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX as u64 <= BYTES_IN_FLIGHT_MAX);
const _: () = assert!(EXTENTS_MAX <= 1 << 20, "the protocol's bound");
const _: () = assert!(COMMANDS_IN_FLIGHT_MAX <= u32::MAX as usize);
