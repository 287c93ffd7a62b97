//! Reading the summaries of all segments, and choosing the segments whose records count.

use crate::buffer::AlignedBuffer;
use crate::framing::{Framing, SealedBlocks, SegmentId, SummarySource};
use crate::journal;
use crate::limits::{
    READ_BY_THREAD_BYTES_MIN, SLOTS_READ_TOGETHER, TRANSFER_BYTES_MAX, WIPE_TRIES_MAX, WRITE_QUEUE_BYTES_MAX,
};
use crate::parallel::each_in_parallel;
use crate::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The content that may be served again, for the consumer to index.
pub struct Recovered<F: Framing> {
    /// The segments that were found, in order of their sequence numbers.
    pub segments: Vec<F::Summary>,
    /// Journal entries, by sequence number, of changes whose segments never reached the device, except entries that
    /// later segments replace ([`Framing::remove_replaced`]). Older records with these entries are void.
    pub lost: BTreeMap<u64, Vec<u64>>,
    /// The sequence number up to which, by the state file, everything was on the device.
    pub durable_sequence: u64,
    /// The number of segments if none is missing.
    pub expected: u64,
}

impl<F: Framing> Recovered<F> {
    /// The sequence numbers of segments missing behind the first one found, in ascending order.
    pub(crate) fn missing(&self, head: u64) -> Vec<u64> {
        let found: BTreeSet<u64> = self.segments.iter().map(|segment| F::position(segment).0).collect();
        let behind_first = found.first().map_or(0..0, |first| *first..head + 1);
        behind_first.filter(|sequence| !found.contains(sequence)).collect()
    }
}

/// A log and its recovered content.
pub type Opened<F> = (crate::Log<F>, Recovered<F>);

impl<F: Framing> Default for Recovered<F> {
    fn default() -> Self {
        Self { segments: Vec::new(), lost: BTreeMap::new(), durable_sequence: 0, expected: 0 }
    }
}

/// The summaries of all slots, by sequence number, `step` slots at a time.
fn read_all<F: Framing>(framing: &F, source: &SummarySource<'_>, step: u64) -> BTreeMap<u64, F::Summary> {
    let found = Mutex::new(BTreeMap::new());
    let segments = source.geometry.segments();
    // For less than this a thread is not worth starting.
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

/// All segments found, for a log whose slots are used in any order, and the newest sequence number.
pub(crate) fn table<F: Framing>(
    framing: &F,
    source: &SummarySource<'_>,
    known_head: u64,
) -> (Recovered<F>, u64) {
    let found = read_all(framing, source, SLOTS_READ_TOGETHER);
    let head = found.last_key_value().map_or(0, |(sequence, _)| *sequence).max(known_head);
    (Recovered { segments: found.into_values().collect(), ..Recovered::default() }, head)
}

/// The greatest sequence number in the first or the last block of any slot, whether the rest of its segment is there or
/// not. It is that of the newest segment begun, or of an earlier one in that slot if a loss of power took the blocks.
pub(crate) fn newest_begun<F: Framing>(framing: &F, source: &SummarySource<'_>) -> u64 {
    let geometry = source.geometry;
    let mut bytes = AlignedBuffer::zeroed(geometry.block_size());
    let mut sequence_of = |block| match source.device.read_at(geometry.offset(block), &mut bytes) {
        Ok(()) => framing.sequence_of_block(source, block, &bytes),
        // An unreadable block may carry any number; a reader that needs it reports the error.
        Err(_) => Some(u64::MAX),
    };
    (0..geometry.segments())
        .map(|slot| geometry.first_block_of_slot(slot))
        .flat_map(|first| [first, first + u64::from(geometry.blocks_per_segment()) - 1])
        .filter_map(&mut sequence_of)
        .max()
        .unwrap_or(0)
}

/// Zeroes blocks that carry a sequence number after `head`. These numbers are used again: if the new block in such a
/// place got lost, the old one would count as it. `lost`: segments that a loss of power can have taken, beside those
/// that were being written.
pub(crate) fn wipe_behind_head<F: Framing>(
    framing: &F,
    source: &SummarySource<'_>,
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
            // Read it again: here a write is not trusted.
            left -= 1;
            if left == 0 {
                return Err(io::Error::other("blocks do not go away"));
            }
        }
    }
    Ok(())
}

/// Writes empty segments with these numbers in the places of missing ones, whose former content is void already.
/// Otherwise the next start would treat everything older as void.
pub(crate) fn write_empty<F: Framing>(
    framing: &F,
    source: &SummarySource<'_>,
    sequences: &[u64],
) -> io::Result<()> {
    let (geometry, instance) = (*source.geometry, source.instance);
    for sequence in sequences.iter().copied() {
        let first_block = geometry.first_block(sequence);
        let id = SegmentId { geometry, instance, sequence, first_block };
        let mut blocks = AlignedBuffer::zeroed(geometry.segment_bytes() as usize);
        let mut builder = framing.begin(&id);
        let SealedBlocks { data, summary } = framing.seal(&id, &mut builder, &mut blocks);
        for range in [data, summary].into_iter().filter(|range| !range.is_empty()) {
            let offset = geometry.offset(first_block + range.start as u64);
            let bytes = range.start * geometry.block_size()..range.end * geometry.block_size();
            source.device.write_at(offset, &[&blocks[bytes]])?;
        }
    }
    Ok(())
}

/// Chooses the segments that may be served again, for a log whose slots are used in order, and returns the newest
/// sequence number with them. See docs/format.md, "Recovery".
pub(crate) fn fifo<F: Framing>(
    framing: &F,
    source: &SummarySource<'_>,
    journal: journal::JournalContent,
    known_head: u64,
) -> (Recovered<F>, u64) {
    let journal::JournalContent { changes: records, emptied } = journal;
    let geometry = source.geometry;
    let step = (TRANSFER_BYTES_MAX / geometry.segment_bytes()).max(1);
    let mut found = read_all(framing, source, step);
    found.retain(|sequence, summary| geometry.first_block(*sequence) == F::position(summary).1);
    let newest = found.last_key_value().map_or(0, |(sequence, _)| *sequence);
    // Entries of segments after `floor` are in the journal.
    let floor = records.iter().map(|r| r.durable).fold(known_head, u64::max);
    let head = newest.max(floor);
    // Emptied segments hold nothing, whether or not they were overwritten since.
    let oldest = (head + 1).saturating_sub(geometry.segments()).max(1).max(emptied + 1);
    // A missing segment may have held newer versions, or deletions, of any older record, unless the journal still lists
    // its entries.
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
        found.range(lost + 1..).for_each(|(_, later)| framing.remove_replaced(entries, later));
    }
    recovered.lost.retain(|_, entries| !entries.is_empty());
    recovered.segments =
        found.into_iter().filter(|(s, _)| (from..=head).contains(s)).map(|(_, s)| s).collect();
    (recovered, head)
}
