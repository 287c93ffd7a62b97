//! Reading the summaries of segments on the device.

use super::entry::Entry;
use super::footer::{self, FooterHeader, Kind};
use crate::limits::DAMAGED_SEARCHED_MAX;
use granary_log::{AlignedBuffer, Engine, Extent, Io, SummarySource};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The summary of a segment on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The sequence number.
    pub sequence: u64,
    /// The first block, counted from the log's beginning.
    pub first_block: u64,
    /// The entries in order, each with the position of its block in the segment. They are omitted if not requested.
    pub entries: Vec<(u32, Entry)>,
    /// The sequence number up to which everything was synced when the newest part was written.
    pub synced: u64,
    /// When the segment was begun, the checkpoint had everything in segments before this one; 0: there was no
    /// checkpoint, or the segment does not tell.
    pub checkpoint: u64,
    /// Whether the program that wrote it reuses a slot only once the checkpoint covers its former segment.
    pub reuse_after_checkpoint: bool,
    /// For a segment without a summary: the blocks before this position were synced.
    pub synced_position: u32,
    /// Whether the segment was sealed: all its entries are here.
    pub is_sealed: bool,
    /// Whether all reads succeeded; otherwise entries may be missing.
    pub is_read: bool,
}

impl Summary {
    /// The logical blocks that lie in the segment, each with its block of the log and its checksum.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.entries.iter().filter_map(|(position, entry)| match entry {
            Entry::Block { lba, checksum } => {
                Some((*lba, self.first_block + u64::from(*position), *checksum))
            }
            _ => None,
        })
    }
}

/// Whether summaries are read with their entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    Included,
    /// They are checked and dropped: those of many segments would take too much RAM.
    CheckedOnly,
}

/// Faults of segments that a recovery has found: any of them refuses the start.
#[derive(Debug, Default)]
pub struct Faults {
    /// The number of reads of summaries that failed.
    pub unreadable: AtomicU64,
    /// The newest segment with a damaged header or footer that was synced; 0: there is none.
    pub damaged: AtomicU64,
    /// The number of slots searched for such a segment.
    searched: AtomicU64,
}

/// The first or the last block of a slot, as it was read.
#[derive(Clone, Copy, Debug)]
struct SlotEnd {
    /// Its header, if it is valid and of the kind that belongs there.
    header: Option<FooterHeader>,
    is_read: bool,
    /// It has our mark, valid or not.
    is_marked: bool,
}

/// Reads the summaries of slots. Segments before `from` are only recognised, not read.
pub(super) fn read(
    source: &SummarySource<'_>,
    slots: Range<u64>,
    from: u64,
    entries: Entries,
    faults: &Faults,
) -> Vec<Option<Summary>> {
    let ends = read_ends(source, &slots, faults);
    let mut buffer = None;
    let mut read_slot = |(slot, ends): (u64, &[SlotEnd])| {
        let (first, last) = (ends[0], ends[1]);
        let first_block = source.geometry.first_block_of_slot(slot);
        let header = first.header;
        // A lost header may be that of a segment with synced parts.
        let may_be_damaged = header.is_none() && (first.is_marked || last.header.is_some());
        // On a reused device every slot looks damaged: only the first DAMAGED_SEARCHED_MAX of them are searched.
        let is_wanted = || faults.searched.fetch_add(1, Ordering::Relaxed) < DAMAGED_SEARCHED_MAX;
        if may_be_damaged && entries == Entries::CheckedOnly && is_wanted() {
            let newer = last.header.map_or(0, |summary| summary.sequence + 1);
            let damaged = follows_damage(source, first_block, from.max(newer), &mut buffer);
            faults.damaged.fetch_max(damaged.unwrap_or(0), Ordering::Relaxed);
        }
        // A summary of an older segment than the header's does not count: only a part of the newer segment may be
        // there.
        let is_newest =
            |summary: &FooterHeader| header.is_none_or(|header| summary.sequence >= header.sequence);
        let summary = last.header.filter(is_newest);
        let newest = summary.or(header)?;
        let header = header.filter(|header| header.sequence == newest.sequence);
        let checkpoint = header.map_or(0, |header| header.checkpoint());
        let known = |summary: Summary| match entries {
            Entries::Included => Summary { checkpoint, ..summary },
            Entries::CheckedOnly => Summary { checkpoint, entries: Vec::new(), ..summary },
        };
        if newest.sequence < from {
            return Some(known(bare(newest, first_block)));
        }
        let mut is_read = last.is_read;
        let whole = summary.and_then(|summary| {
            let read = read_summary(source, summary, first_block);
            read.unwrap_or_else(|Unreadable| {
                faults.unreadable.fetch_add(1, Ordering::Relaxed);
                is_read = false;
                None
            })
        });
        // A summary of several blocks may be incomplete; commits before it are found without it.
        let commits = || {
            let commits = read_commits(source, header?, first_block, &mut buffer, faults)?;
            // If an unreadable summary may exist, the commits may not be everything.
            Some(Summary { is_read: is_read && commits.is_read, ..commits })
        };
        whole.or_else(commits).map(known)
    };
    slots.zip(ends.chunks_exact(2)).map(&mut read_slot).collect()
}

/// Reads the first and the last block of each slot.
fn read_ends(source: &SummarySource<'_>, slots: &Range<u64>, faults: &Faults) -> Vec<SlotEnd> {
    let size = source.geometry.block_size();
    let blocks_of = |slot: u64| {
        let first = source.geometry.first_block_of_slot(slot);
        [first, first + u64::from(source.geometry.blocks_per_segment()) - 1]
    };
    let extent = |block: u64| Extent { offset: source.geometry.offset(block), len: size };
    let extents: Vec<Extent> = slots.clone().flat_map(|slot| blocks_of(slot).map(extent)).collect();
    let mut ends = vec![SlotEnd { header: None, is_read: true, is_marked: false }; extents.len()];
    // A ring is worth making only for many slots.
    let engine = if slots.end - slots.start > 1 { Engine::Ring } else { Engine::Plain };
    Io::with_engine(engine).read_many(source.device, &extents, |i, bytes| {
        let block = blocks_of(slots.start + i as u64 / 2)[i % 2];
        let wanted = if i % 2 == 0 { Kind::Header } else { Kind::Summary };
        if bytes.is_err() {
            ends[i].is_read = false;
            faults.unreadable.fetch_add(1, Ordering::Relaxed);
        }
        ends[i].is_marked = bytes.as_ref().is_ok_and(|bytes| footer::is_marked(bytes));
        let header = bytes.ok().and_then(|bytes| footer::check(bytes, source.instance, block));
        ends[i].header = header.filter(|header| header.kind == wanted);
    });
    ends
}

fn bare(header: FooterHeader, first_block: u64) -> Summary {
    Summary {
        sequence: header.sequence,
        first_block,
        entries: Vec::new(),
        synced: header.synced,
        checkpoint: 0,
        reuse_after_checkpoint: header.reuse_after_checkpoint,
        synced_position: 0,
        is_sealed: false,
        is_read: true,
    }
}

/// A read failed.
struct Unreadable;

/// Reads a summary, whose last block has its length; `None`: it is incomplete.
fn read_summary(
    source: &SummarySource<'_>,
    last: FooterHeader,
    first_block: u64,
) -> Result<Option<Summary>, Unreadable> {
    let all = source.geometry.blocks_per_segment();
    let size = source.geometry.block_size();
    if last.blocks > all || last.index + 1 != last.blocks {
        return Ok(None);
    }
    let first = first_block + u64::from(all - last.blocks);
    let mut bytes = AlignedBuffer::zeroed(last.blocks as usize * size);
    source.device.read_at(source.geometry.offset(first), &mut bytes).map_err(|_| Unreadable)?;
    let mut summary = Summary { is_sealed: true, ..bare(last, first_block) };
    let is_whole = read_footer(source, &bytes, first, last.sequence, Kind::Summary, &mut summary.entries);
    Ok(is_whole.map(|()| summary))
}

/// In a slot without a valid header, looks for a commit of segment `from` or a later one that proves that its header
/// was synced; returns that segment.
fn follows_damage(
    source: &SummarySource<'_>,
    first_block: u64,
    from: u64,
    buffer: &mut Option<AlignedBuffer>,
) -> Option<u64> {
    let buffer = segment_buffer(source, buffer);
    // Unreadable blocks refuse the start only where they may be needed: other slots may be worn out.
    read_blocks(source, first_block, buffer);
    let blocks = buffer.chunks_exact(source.geometry.block_size()).zip(first_block..);
    let found = blocks.filter_map(|(bytes, block)| footer::check(bytes, source.instance, block));
    let synced = found.filter(|found| found.kind == Kind::Commit && found.follows_synced);
    synced.map(|found| found.sequence).filter(|sequence| *sequence >= from).max()
}

/// A buffer for a segment, allocated once.
fn segment_buffer<'a>(
    source: &SummarySource<'_>,
    buffer: &'a mut Option<AlignedBuffer>,
) -> &'a mut AlignedBuffer {
    buffer.get_or_insert_with(|| AlignedBuffer::zeroed(source.geometry.segment_bytes() as usize))
}

/// Recovers the commits of a segment that has no summary. Each footer is independent: unsynced commits may be missing.
/// If a footer states that everything before it was synced, no earlier one may be missing. `None`: the slot was being
/// overwritten by a newer segment whose header never reached the device.
fn read_commits(
    source: &SummarySource<'_>,
    header: FooterHeader,
    first_block: u64,
    buffer: &mut Option<AlignedBuffer>,
    faults: &Faults,
) -> Option<Summary> {
    let buffer = segment_buffer(source, buffer);
    let size = source.geometry.block_size();
    let mut summary = bare(header, first_block);
    let mut at = 1;
    let all = source.geometry.blocks_per_segment() as usize;
    let mut lost = read_blocks(source, first_block, buffer);
    // (End of the blocks that found footers describe, whether none is missing so far, whether no synced one is
    // missing).
    let (mut known_until, mut is_chain, mut is_whole) = (1, true, true);
    while at < all {
        let found =
            footer::check(&buffer[at * size..(at + 1) * size], source.instance, first_block + at as u64);
        if found.is_some_and(|found| found.sequence > header.sequence) {
            return None;
        }
        let found = found.filter(|found| {
            let ours = found.sequence == header.sequence && found.kind == Kind::Commit && found.index == 0;
            ours && at + found.blocks as usize <= all
        });
        let Some(found) = found else {
            at += 1;
            continue;
        };
        let end = at + found.blocks as usize;
        let mut entries = Vec::new();
        let bytes = &buffer[at * size..end * size];
        let first = first_block + at as u64;
        if read_footer(source, bytes, first, header.sequence, Kind::Commit, &mut entries).is_some() {
            summary.entries.append(&mut entries);
            summary.synced = summary.synced.max(found.synced);
            is_chain &= found.position == known_until;
            if found.follows_synced {
                is_whole &= is_chain;
                summary.synced_position = found.position;
            }
            known_until = end as u32;
            // Blocks that a footer describes are content, and cannot be lost footers.
            lost.retain(|lost| !(found.position as usize..at).contains(lost));
            at = end;
        } else {
            at += 1;
        }
    }
    if !lost.is_empty() {
        // Any of them may be the footer of a synced commit.
        faults.unreadable.fetch_add(1, Ordering::Relaxed);
        summary.is_read = false;
    }
    if !is_whole {
        faults.damaged.fetch_max(header.sequence, Ordering::Relaxed);
    }
    Some(summary)
}

/// Reads a segment, and returns the positions of unreadable blocks, which are zeros in `buffer`.
fn read_blocks(source: &SummarySource<'_>, first_block: u64, buffer: &mut AlignedBuffer) -> Vec<usize> {
    if source.device.read_at(source.geometry.offset(first_block), buffer).is_ok() {
        return Vec::new();
    }
    let mut lost = Vec::new();
    let blocks = buffer.chunks_exact_mut(source.geometry.block_size()).enumerate();
    for ((position, bytes), block) in blocks.zip(first_block..) {
        if source.device.read_at(source.geometry.offset(block), bytes).is_err() {
            bytes.fill(0);
            lost.push(position);
        }
    }
    lost
}

/// Reads the entries of a footer, each with the position of its block; `None`: it is incomplete.
fn read_footer(
    source: &SummarySource<'_>,
    bytes: &[u8],
    first: u64,
    sequence: u64,
    kind: Kind,
    entries: &mut Vec<(u32, Entry)>,
) -> Option<()> {
    let size = source.geometry.block_size();
    let blocks = (bytes.len() / size) as u32;
    let mut position = None;
    for ((index, block), bytes) in (0..).zip(first..).zip(bytes.chunks_exact(size)) {
        let header = footer::check(bytes, source.instance, block)?;
        let ours =
            (header.sequence, header.kind, header.index, header.blocks) == (sequence, kind, index, blocks);
        // The first block is the segment's header.
        if !ours || header.position == 0 {
            return None;
        }
        let position = position.get_or_insert(header.position);
        for entry in footer::entries(bytes, &header) {
            let entry = entry?;
            let end = position.checked_add(entry.blocks())?;
            if end > source.geometry.blocks_per_segment() {
                return None;
            }
            entries.push((*position, entry));
            *position = end;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::{Blocks, SegmentBuilder};
    use super::*;
    use granary_log::device::{Device, MemoryDevice};
    use granary_log::{Framing, Geometry, SealedBlocks, SegmentId};

    const BLOCK: usize = 512;
    const BLOCKS: usize = 64;
    const INSTANCE: u64 = 9;

    /// A segment full of content, and the blocks of its summary.
    fn segment(geometry: &Geometry, sequence: u64) -> (AlignedBuffer, Range<usize>) {
        let id = SegmentId { geometry: *geometry, instance: INSTANCE, sequence, first_block: 0 };
        let (mut blocks, mut builder) = (AlignedBuffer::zeroed(BLOCKS * BLOCK), SegmentBuilder::default());
        for lba in 0.. {
            if builder.push(&id, &mut blocks, lba, sequence, &[sequence as u8; BLOCK]).is_none() {
                break;
            }
        }
        let SealedBlocks { summary, .. } = Blocks::default().seal(&id, &mut builder, &mut blocks);
        (blocks, summary)
    }

    fn read_slot(geometry: &Geometry, bytes: &[u8]) -> Option<Summary> {
        let device = MemoryDevice::new((BLOCKS * BLOCK) as u64);
        device.write_at(0, &[bytes]).unwrap();
        let source = SummarySource { geometry, instance: INSTANCE, salt: 0, device: &device };
        read(&source, 0..1, 0, Entries::CheckedOnly, &Faults::default()).pop().unwrap()
    }

    /// A slot was reused, and a loss of power took any part of the new segment. The former segment, which has nothing
    /// live, must be found complete or not at all: half of it would count as damage.
    #[test]
    fn what_a_lost_segment_lies_over_does_not_pass_for_damage() {
        let bytes = (BLOCKS * BLOCK) as u64;
        let geometry = Geometry::new(bytes, bytes, BLOCK as u64).unwrap();
        let ((older, summary), (newer, _)) = (segment(&geometry, 5), segment(&geometry, 6));
        assert!(summary.len() > 1);
        assert!(read_slot(&geometry, &older).is_some_and(|found| found.sequence == 5 && found.is_sealed));
        // Any subset of the summary's blocks was written; all of the content was.
        for came in 0..1u32 << summary.len() {
            let mut left = newer.to_vec();
            left[..BLOCK].copy_from_slice(&older[..BLOCK]);
            for (i, block) in summary.clone().enumerate() {
                if came >> i & 1 == 0 {
                    let at = block * BLOCK..(block + 1) * BLOCK;
                    left[at.clone()].copy_from_slice(&older[at]);
                }
            }
            let found = read_slot(&geometry, &left);
            let expected = match came.count_ones() as usize {
                0 => Some((5, true)),
                all if all == summary.len() => Some((6, true)),
                _ => None,
            };
            assert_eq!(found.map(|found| (found.sequence, found.is_sealed)), expected, "{came:b}");
        }
    }
}
