//! Every bound of the log, in one place.

use std::time::Duration;

/// The smallest block: the smallest unit of O_DIRECT.
pub const BLOCK_SIZE_MIN: u64 = 512;
/// The largest block.
pub const BLOCK_SIZE_MAX: u64 = 1 << 20;

/// Largest segment: two of them are in RAM.
pub const SEGMENT_BYTES_MAX: u64 = 4 << 30;

/// The most logs that one file is divided into.
pub const PARTITIONS_MAX: u64 = 64;

/// Sequence numbers take 48 bits on the device.
pub const SEQUENCE_MAX: u64 = (1 << 48) - 1;

/// The greatest entry of a summary, and so of the journal: 48 bits.
pub const SUMMARY_ENTRY_MAX: u64 = (1 << 48) - 1;

/// Bytes of sealed segments that may wait for the device before appends are refused, of all logs of a file.
pub const WRITE_QUEUE_BYTES_MAX: u64 = 64 << 20;

/// Bytes of segments that are written before a sync, of all logs of a file that is served after a loss of power.
pub const UNSYNCED_BYTES_MAX: u64 = 64 << 20;

/// Bytes of segments that are emptied ahead of the writers, of all logs of a file.
pub const RECLAIM_AHEAD_BYTES_MAX: u64 = 16 << 20;

/// Bytes that the flusher writes, and recovery reads, in one system call.
pub const TRANSFER_BYTES_MAX: u64 = 1 << 20;

/// Bytes of segments whose summaries a thread of a recovery reads, at least.
pub const READ_BY_THREAD_BYTES_MIN: u64 = 16 << 20;

/// Buffers that one system call may gather (below the kernel's IOV_MAX of 1024).
pub const TRANSFER_BUFFERS_MAX: usize = 512;

/// The number of attempts of a recovery to erase the half-written blocks of a segment.
pub const WIPE_TRIES_MAX: u32 = 8;

/// Reads in flight on one thread.
pub const READ_DEPTH: usize = 64;

/// Longest read that neighbouring blocks are merged into (a block may be longer).
pub const READ_BYTES_MAX: usize = 128 << 10;

/// The frames that the longest read takes, of the [`READ_DEPTH`] frames of an arena.
pub const READ_FRAMES_MAX: usize = 4;

/// Arenas, of `READ_DEPTH * READ_BYTES_MAX / READ_FRAMES_MAX` bytes each, that are kept for the next batch of reads.
pub const SPARE_ARENAS_MAX: usize = 16;

/// The most rings of a process. Further threads read through the pool.
pub const RINGS_MAX: usize = 96;

/// Threads of the pread pool, used where io_uring is refused and by threads beyond `RINGS_MAX`.
pub const POOL_THREADS: usize = 16;

/// The size of a journal file from which on the other of the two is written.
pub const JOURNAL_BYTES_MAX: u64 = 4 << 20;

const _: () = assert!(READ_BYTES_MAX as u64 <= TRANSFER_BYTES_MAX);
const _: () = assert!(BLOCK_SIZE_MAX <= TRANSFER_BYTES_MAX);
const _: () = assert!(RECLAIM_AHEAD_BYTES_MAX <= WRITE_QUEUE_BYTES_MAX);

/// The longest sleep of a thread that waits for room before it looks again.
pub const WAIT_FOR_ROOM: Duration = Duration::from_millis(2);

/// The rest of the flusher before it writes a segment again that the device refused.
pub const WRITE_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Sequence numbers skipped after an unclean stop, where slots are used in any order: more than the last process can
/// have had in flight.
pub const SEQUENCES_SKIPPED: u64 = 1 << 20;

/// Slots whose summaries are read at once, where the consumer frees slots itself.
pub const SLOTS_READ_TOGETHER: u64 = 1024;
