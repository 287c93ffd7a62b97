//! Reading the summaries of all segments, and choosing the segments whose records count.

use crate::buffer::AlignedBuffer;
use crate::framing::{Framing, Sealed, SegmentId, Source};
use crate::journal;
use crate::limits::{
    READ_BY_THREAD_BYTES_MIN, SLOTS_READ_TOGETHER, TRANSFER_BYTES_MAX, WIPE_TRIES_MAX, WRITE_QUEUE_BYTES_MAX,
};
use crate::parallel::each_in_parallel;
use crate::sync::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// What may be served again, for the consumer to take in.
pub struct Recovered<F: Framing> {
    /// In order of sequence number.
    pub segments: Vec<F::Summary>,
    /// (sequence number, journal entries) of changes whose segments never reached the device, but for those that later
    /// segments replace ([`Framing::forget_replaced`]): older records with these entries are void.
    pub lost: BTreeMap<u64, Vec<u64>>,
    /// The sequence number up to which the state file said that everything was on the device.
    pub on_record: u64,
    /// How many segments there are if none is missing.
    pub expected: u64,
}

impl<F: Framing> Recovered<F> {
    /// The sequence numbers of segments that are missing behind the first that was found, in ascending order.
    pub(crate) fn gaps(&self, head: u64) -> Vec<u64> {
        let found: BTreeSet<u64> = self.segments.iter().map(|segment| F::position(segment).0).collect();
        let behind_first = found.first().map_or(0..0, |first| *first..head + 1);
        behind_first.filter(|sequence| !found.contains(sequence)).collect()
    }
}

/// A log with what it found.
pub type Opened<F> = (crate::Log<F>, Recovered<F>);

impl<F: Framing> Default for Recovered<F> {
    fn default() -> Self {
        Self { segments: Vec::new(), lost: BTreeMap::new(), on_record: 0, expected: 0 }
    }
}

/// The summaries of all slots, by sequence number, `step` slots at a time.
fn read_all<F: Framing>(framing: &F, source: &Source<'_>, step: u64) -> BTreeMap<u64, F::Summary> {
    let found = Mutex::new(BTreeMap::new());
    let segments = source.geometry.segments();
    // A thread that has less to read is not worth starting.
    let by_thread = (READ_BY_THREAD_BYTES_MIN / source.geometry.segment_bytes()).max(step);
    let first_slots = (0..segments).step_by(by_thread as usize).collect();
    each_in_parallel(first_slots, |first| {
        let end = (first + by_thread).min(segments);
        for slot in (first..end).step_by(step as usize) {
            let summaries = framing.read_to_recover(source, slot..(slot + step).min(end));
            let numbered = summaries.into_iter().flatten().map(|summary| (F::position(&summary).0, summary));
            let valid = numbered.filter(|(sequence, _)| *sequence > 0);
            found.lock().expect("no panic under the lock").extend(valid);
        }
    });
    found.into_inner().expect("no panic under the lock")
}

/// Everything that is found, of a log whose slots are used in any order. Gives the newest sequence number with it.
pub(crate) fn table<F: Framing>(framing: &F, source: &Source<'_>, known_head: u64) -> (Recovered<F>, u64) {
    let found = read_all(framing, source, SLOTS_READ_TOGETHER);
    let head = found.last_key_value().map_or(0, |(sequence, _)| *sequence).max(known_head);
    (Recovered { segments: found.into_values().collect(), ..Recovered::default() }, head)
}

/// The greatest sequence number that the first or the last block of a slot carries: that of the newest segment that was
/// begun there, or of the one before where a loss of power took that block, whether the rest of it is there or not.
pub(crate) fn newest_begun<F: Framing>(framing: &F, source: &Source<'_>) -> u64 {
    let geometry = source.geometry;
    let mut bytes = AlignedBuffer::zeroed(geometry.block_size());
    let mut sequence_of = |block| match source.device.read_at(geometry.offset(block), &mut bytes) {
        Ok(()) => framing.sequence_of_block(source, block, &bytes),
        // It may be any: that it cannot be read is told of by whoever needs it.
        Err(_) => Some(u64::MAX),
    };
    (0..geometry.segments())
        .map(|slot| geometry.first_block_of_slot(slot))
        .flat_map(|first| [first, first + u64::from(geometry.blocks_per_segment()) - 1])
        .filter_map(&mut sequence_of)
        .max()
        .unwrap_or(0)
}

/// Sequence numbers after `head` are given out again, so no block may be left that carries one:
/// if the block that is written in its place got lost, it would pass for that. `lost`: how many segments a loss of power
/// can have taken, beside those that were being written.
pub(crate) fn wipe_behind_head<F: Framing>(
    framing: &F,
    source: &Source<'_>,
    head: u64,
    lost: u64,
) -> io::Result<()> {
    let geometry = source.geometry;
    let queued = geometry.share(WRITE_QUEUE_BYTES_MAX) / geometry.segment_bytes() + 2 + lost;
    let size = geometry.block_size();
    let per_read = (TRANSFER_BYTES_MAX as usize / size).min(geometry.blocks_per_segment() as usize);
    let mut bytes = AlignedBuffer::zeroed(per_read * size);
    let zeros = AlignedBuffer::zeroed(size);
    for sequence in head + 1..=head + queued.min(geometry.segments()) {
        let first = geometry.first_block(sequence);
        let end = first + u64::from(geometry.blocks_per_segment());
        let mut left = WIPE_TRIES_MAX;
        let mut start = first;
        while start < end {
            let part = &mut bytes[..((end - start) as usize).min(per_read) * size];
            source.device.read_at(geometry.offset(start), part)?;
            let mut found = false;
            for (block, number) in part.chunks_exact(size).zip(start..) {
                if framing.sequence_of_block(source, number, block).is_some_and(|sequence| sequence > head) {
                    found = true;
                    source.device.write_at(geometry.offset(number), &[&zeros])?;
                }
            }
            if !found {
                start += per_read as u64;
                continue;
            }
            // Look again: this is no place to believe a write.
            left -= 1;
            if left == 0 {
                return Err(io::Error::other("blocks do not go away"));
            }
        }
    }
    Ok(())
}

/// Writes empty segments in place of those that are missing among others that were found. What they held is void already,
/// and what is older than they are must not be taken for void at the next start.
pub(crate) fn fill_gaps<F: Framing>(framing: &F, source: &Source<'_>, gaps: &[u64]) -> io::Result<()> {
    let (geometry, instance) = (*source.geometry, source.instance);
    for sequence in gaps.iter().copied() {
        let first_block = geometry.first_block(sequence);
        let id = SegmentId { geometry, instance, sequence, first_block };
        let mut blocks = AlignedBuffer::zeroed(geometry.segment_bytes() as usize);
        let mut builder = framing.begin(&id);
        let Sealed { data, summary } = framing.seal(&id, &mut builder, &mut blocks);
        for range in [data, summary].into_iter().filter(|range| !range.is_empty()) {
            let offset = geometry.offset(first_block + range.start as u64);
            let bytes = range.start * geometry.block_size()..range.end * geometry.block_size();
            source.device.write_at(offset, &[&blocks[bytes]])?;
        }
    }
    Ok(())
}

/// Chooses what may be served again. See docs/format.md, "Recovery".
///
/// Of a log whose slots are used in order. Gives the newest sequence number with it.
pub(crate) fn fifo<F: Framing>(
    framing: &F,
    source: &Source<'_>,
    journal: journal::Content,
    known_head: u64,
) -> (Recovered<F>, u64) {
    let journal::Content { changes: records, emptied } = journal;
    let geometry = source.geometry;
    let step = (TRANSFER_BYTES_MAX / geometry.segment_bytes()).max(1);
    let mut found = read_all(framing, source, step);
    found.retain(|sequence, summary| geometry.first_block(*sequence) == F::position(summary).1);
    let newest = found.last_key_value().map_or(0, |(sequence, _)| *sequence);
    // What was appended to segments after this one is in the journal.
    let floor = records.iter().map(|r| r.durable).fold(known_head, u64::max);
    let head = newest.max(floor);
    // What was emptied for others holds nothing, whether or not they were written since.
    let oldest = (head + 1).saturating_sub(geometry.segments()).max(1).max(emptied + 1);
    // A segment that ought to be there and is not may have held newer versions, or deletions, of
    // anything older, unless the journal still lists what it held.
    let hole = (oldest..=head.min(floor)).rev().find(|sequence| !found.contains_key(sequence));
    let from = hole.map_or(oldest, |hole| hole + 1);
    if let Some(hole) = hole
        && found.range(..hole).next().is_some()
        && hole != oldest
    {
        tracing::warn!(segment = hole, "a segment is missing: what is older than it is not served");
    }
    let mut recovered = Recovered { expected: (head + 1).saturating_sub(oldest), ..Recovered::default() };
    for record in records {
        // The journal keeps entries long after their segment is on the device; the ring may have passed
        // it since. Where nothing older is served, there is nothing to invalidate.
        let is_lost = record.sequence >= from && !found.contains_key(&record.sequence);
        if is_lost && !record.entries.is_empty() {
            recovered.lost.entry(record.sequence).or_default().extend(record.entries);
        }
    }
    // Keys that newer segments wrote again stay valid.
    for (lost, entries) in &mut recovered.lost {
        found.range(lost + 1..).for_each(|(_, later)| framing.forget_replaced(entries, later));
    }
    recovered.lost.retain(|_, entries| !entries.is_empty());
    recovered.segments =
        found.into_iter().filter(|(s, _)| (from..=head).contains(s)).map(|(_, s)| s).collect();
    (recovered, head)
}
