//! Replays a workload on a model, and counts.

use super::{Clock, Model, NEVER, Object, Place, Step, Workload};
use crate::trace::Operation;

/// Counts of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Reads by clients.
    pub reads: u64,
    /// Bytes of the objects read.
    pub read_bytes: u64,
    /// Reads that found their object.
    pub hits: u64,
    /// Bytes of the objects found.
    pub hit_bytes: u64,
    /// Reads that found their object on flash.
    pub flash_hits: u64,
    /// Reads of flash. A model reads flash only where the object is.
    pub flash_reads: u64,
    /// Bytes of the objects that clients stored: by sets, and after misses.
    pub stored_bytes: u64,
    /// Bytes written to flash.
    pub flash_bytes_written: u64,
    /// Maximum DRAM that objects took.
    pub dram_bytes: u64,
    /// Maximum DRAM that the index took.
    pub index_bytes: u64,
}

impl Tally {
    /// Hits, of all reads.
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.reads)
    }

    /// Bytes of the objects found, of all bytes asked for.
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes, self.read_bytes)
    }

    /// Cache-level write amplification: bytes written to flash for each byte of an object that clients store, by a set
    /// or after a miss. At the end of the replay some bytes are still unwritten in DRAM.
    pub fn clwa(&self) -> f64 {
        ratio(self.flash_bytes_written, self.stored_bytes)
    }

    /// Bytes written to flash for each byte asked for. Unlike [`Self::clwa`] it does not fall when a policy
    /// finds less and clients therefore store more.
    pub fn written_per_read(&self) -> f64 {
        ratio(self.flash_bytes_written, self.read_bytes)
    }

    /// Reads of flash for each hit.
    pub fn flash_reads_per_hit(&self) -> f64 {
        ratio(self.flash_reads, self.hits)
    }

    /// Every count with its name, for the columns of a CSV file.
    pub fn counts(&self) -> [(&'static str, u64); 10] {
        [
            ("reads", self.reads),
            ("hits", self.hits),
            ("flash_hits", self.flash_hits),
            ("flash_reads", self.flash_reads),
            ("read_bytes", self.read_bytes),
            ("hit_bytes", self.hit_bytes),
            ("stored_bytes", self.stored_bytes),
            ("flash_bytes_written", self.flash_bytes_written),
            ("dram_bytes", self.dram_bytes),
            ("index_bytes", self.index_bytes),
        ]
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Requests between two reports of progress, and samples of DRAM.
const CHECK_EVERY: usize = 1 << 14;

/// The object that the clients stored last.
#[derive(Clone, Copy)]
struct StoredObject {
    bytes: u32,
    expires: u32,
}

/// Replays a workload. `next_reads` is [`Workload::next_reads`], or empty for models that do not need it. `progress` is
/// called with the number of requests done.
pub fn replay(
    model: &mut dyn Model,
    workload: &Workload,
    next_reads: &[u32],
    mut progress: impl FnMut(usize),
) -> Tally {
    let mut stored = vec![StoredObject { bytes: 0, expires: NEVER }; workload.keys as usize];
    let mut tally = Tally::default();
    for (position, step) in workload.steps.iter().enumerate() {
        if position % CHECK_EVERY == 0 {
            progress(position);
            tally.dram_bytes = tally.dram_bytes.max(model.dram_bytes());
            tally.index_bytes = tally.index_bytes.max(model.index_bytes());
        }
        let clock = Clock { position: position as u32, seconds: step.seconds };
        let object = object(step, workload, next_reads.get(position).copied().unwrap_or(NEVER));
        let known = &mut stored[step.key as usize];
        // Every cache notices the end of a lifetime when the object is requested. A different size means a different
        // object: the source changed it, and the trace does not tell when.
        if known.expires <= step.seconds || step.operation == Operation::Get && known.bytes != object.bytes {
            model.remove(step.key);
        }
        let stores = match step.operation {
            Operation::Get => {
                tally.reads += 1;
                tally.read_bytes += u64::from(object.bytes);
                let place = model.read(&Object { expires: known.expires, ..object }, clock);
                if place != Place::Absent {
                    tally.hits += 1;
                    tally.hit_bytes += u64::from(object.bytes);
                    tally.flash_hits += u64::from(place == Place::Flash);
                }
                place == Place::Absent
            }
            Operation::Set => true,
            Operation::Add => model.place(step.key) == Place::Absent,
            Operation::Delete => {
                model.remove(step.key);
                false
            }
        };
        if stores {
            *known = StoredObject { bytes: object.bytes, expires: object.expires };
            tally.stored_bytes += u64::from(object.bytes);
            model.store(&object, clock);
        }
    }
    progress(workload.steps.len());
    tally.dram_bytes = tally.dram_bytes.max(model.dram_bytes());
    tally.index_bytes = tally.index_bytes.max(model.index_bytes());
    tally.flash_reads = tally.flash_hits;
    tally.flash_bytes_written = model.flash_bytes_written();
    tally
}

fn object(step: &Step, workload: &Workload, next_read: u32) -> Object {
    let expires = step.end();
    // A read after the end of the lifetime finds nothing.
    let useful = next_read != NEVER && workload.steps[next_read as usize].seconds < expires;
    Object { key: step.key, bytes: step.bytes, expires, next_read: if useful { next_read } else { NEVER } }
}
