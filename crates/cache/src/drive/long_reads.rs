//! Entries over several blocks, which are read all at once.

use super::by_block::{Usable, or_by_block};
use crate::framing::Log;
use crate::framing::block::{self, blocks_spanned, payload_size};
use granary_log::{Extent, Io};

/// The place of an entry over several blocks.
#[derive(Clone, Copy)]
pub(crate) struct LongRecord {
    /// The number of its first block.
    pub block: u64,
    /// The sequence number of its segment.
    pub sequence: u64,
    /// The bytes of its record.
    pub len: usize,
}

/// The scratch space of reads of entries over several blocks.
#[derive(Default)]
pub(crate) struct LongReads {
    entries: Vec<Progress>,
    extents: Vec<Extent>,
    parts: Vec<Part>,
}

/// An entry, of which some blocks are read.
struct Progress {
    record: LongRecord,
    /// The number of its blocks; 0: no segment can hold so many.
    blocks: usize,
    /// The number of its valid blocks.
    good: usize,
}

/// The part of an entry that one extent holds.
#[derive(Clone, Copy)]
struct Part {
    /// The entry's index.
    entry: usize,
    /// The number of the part's first block.
    block: u64,
    /// The offset for that block's payload.
    at: usize,
}

impl LongReads {
    /// Reads entries into `bytes` and passes each, with its index, to `done`; `None`: a block is invalid.
    pub fn read(
        &mut self,
        io: &mut Io,
        log: &Log,
        records: impl IntoIterator<Item = LongRecord>,
        bytes: &mut Vec<u8>,
        mut done: impl FnMut(usize, Option<&[u8]>),
    ) {
        let geometry = log.geometry();
        let (size, payload, instance) = (geometry.block_size(), payload_size(geometry), log.instance());
        let step = Io::extent_bytes_max(size) / size;
        let Self { entries, extents, parts } = self;
        entries.clear();
        extents.clear();
        parts.clear();
        let mut end = 0;
        for (entry, record) in records.into_iter().enumerate() {
            let blocks = blocks_spanned(geometry, record.len);
            let blocks = if blocks > geometry.blocks_per_segment() as usize { 0 } else { blocks };
            for i in (0..blocks).step_by(step) {
                let block = record.block + i as u64;
                let len = (blocks - i).min(step) * size;
                extents.push(Extent { offset: geometry.offset(block), len });
                parts.push(Part { entry, block, at: end + i * payload });
            }
            end += blocks * payload;
            entries.push(Progress { record, blocks, good: 0 });
        }
        bytes.resize(end, 0);
        io.read_many(log.device(), extents, |part, result| {
            let Part { entry, block, at } = parts[part];
            let Progress { record, good, .. } = &mut entries[entry];
            let mut again = None;
            let (read, _) = or_by_block(log, extents[part], Usable::AllOrNothing, result, &mut again);
            *good +=
                block::copy_payloads(geometry, read, (instance, block, record.sequence), &mut bytes[at..]);
        });
        let mut rest = &bytes[..];
        for (i, Progress { record, blocks, good }) in entries.iter().enumerate() {
            let (read, others) = rest.split_at(blocks * payload);
            rest = others;
            let is_whole = *blocks > 0 && good == blocks;
            done(i, is_whole.then(|| &read[..record.len]));
        }
    }
}
