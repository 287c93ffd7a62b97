//! Counters of a volume.

use granary_metrics::{Latency, Stopwatch};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The kind of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// To read.
    Read,
    /// To write.
    Write,
    /// To make everything durable.
    Flush,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub reads: AtomicU64,
    pub bytes_read: AtomicU64,
    pub writes: AtomicU64,
    pub bytes_written: AtomicU64,
    pub commits: AtomicU64,
    pub blocks_trimmed: AtomicU64,
    pub blocks_moved: AtomicU64,
    pub segments_cleaned: AtomicU64,
    pub checkpoints: AtomicU64,
    pub checksum_loads: AtomicU64,
    pub damaged: AtomicU64,
    pub waits: AtomicU64,
    pub read_latency: Stopwatch,
    pub write_latency: Stopwatch,
    pub flush_latency: Stopwatch,
}

impl Counters {
    /// Adds the time from a client's request to its answer.
    pub fn note_answered(&self, operation: Operation, took: Duration) {
        let latency = match operation {
            Operation::Read => &self.read_latency,
            Operation::Write => &self.write_latency,
            Operation::Flush => &self.flush_latency,
        };
        latency.add(took);
    }
}

/// Counters since the volume was opened, and its state now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that read.
    pub reads: u64,
    /// Bytes read by clients.
    pub bytes_read: u64,
    /// Successful write requests.
    pub writes: u64,
    /// Bytes that they wrote.
    pub bytes_written: u64,
    /// The times of clients' reads, from the request to the answer.
    pub read_latency: Latency,
    /// The times of clients' writes.
    pub write_latency: Latency,
    /// The times of clients' flushes.
    pub flush_latency: Latency,
    /// Commits, for clients or for cleaning.
    pub commits: u64,
    /// Blocks whose space was given back.
    pub blocks_trimmed: u64,
    /// Blocks that cleaning moved.
    pub blocks_moved: u64,
    /// Segments that cleaning emptied.
    pub segments_cleaned: u64,
    /// Checkpoints of the map.
    pub checkpoints: u64,
    /// Reads of checksums from the device.
    pub checksum_loads: u64,
    /// Reads of blocks that are damaged on the device.
    pub damaged: u64,
    /// Writes that waited for room. One that gave up and was retried counts once.
    pub waits: u64,
    /// Bytes written to the device, including summaries and moved blocks, but not checkpoints.
    pub device_bytes_written: u64,
    /// Logical blocks that have content.
    pub blocks_mapped: u64,
    /// Logical blocks.
    pub blocks: u64,
    /// Segments of the log.
    pub segments: u64,
    /// The blocks of a segment.
    pub blocks_per_segment: u64,
    /// Segments that are free.
    pub segments_free: u64,
    /// Segments that the next start would read: those written since the last checkpoint.
    pub segments_since_checkpoint: u64,
    /// Bytes of memory of the map.
    pub map_bytes: u64,
    /// Bytes of memory of checksums.
    pub checksum_bytes: u64,
    /// Bytes of memory of write buffers.
    pub buffer_bytes: u64,
}
