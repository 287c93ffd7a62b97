//! DRAM first, when the log reuses a segment: entries found lately go back to RAM, where they have to earn their place
//! on flash again. The others (the paper's ghosts) leave.

use crate::drive::{LongReads, LongRecord, Usable, read_by_block};
use crate::flash::Flash;
use crate::framing::Summary;
use crate::framing::block::{self, BlockHeader};
use crate::key::{KeyHash, RecordKind, parse_summary_entry};
use crate::limits::TAKE_BACK_READ_BYTES_MAX;
use crate::memory::EntryState;
use crate::partition_state::PartitionState;
use crate::record::{EntryRecord, Record, newest_entries, parse};
use crate::stats::add;
use granary_log::sync::atomic::Ordering;
use granary_log::{AlignedBuffer, Engine, Extent, Io};

impl PartitionState {
    /// Takes back entries of a segment to RAM. Call it before the segment is forgotten.
    pub fn take_back(&self, flash: &Flash, segment: &Summary) {
        // A kill may come before the segment is overwritten. From here on the index does not know its entries, which
        // may change in RAM only: without the note a recovery would bring them back.
        let Some(tombstones) = flash.tombstones_unless_awaited() else { return };
        flash.log.writer().journal_emptied(segment.sequence);
        drop(tombstones);
        let live = self.live(segment);
        let takes_back =
            flash.dram_first.as_ref().is_some_and(|dram_first| dram_first.takes_back.load(Ordering::Acquire));
        let mut block_numbers = Vec::new();
        for live in live {
            let mut shard = self.shard(live.hash);
            if shard.index.at(live.hash, live.block_number).is_none() {
                continue;
            }
            // Entries that are in RAM anyway need not be read.
            if shard.memory.detach(live.hash) {
                shard.index.remove(live.hash, live.block_number);
            } else if takes_back && live.is_found && block_numbers.last() != Some(&live.block_number) {
                block_numbers.push(live.block_number);
            }
        }
        self.take_back_from(flash, segment.sequence, &block_numbers);
        // The entries taken back may exceed the room.
        if let Some(dram_first) = &flash.dram_first {
            dram_first.wake();
        }
    }

    /// The entries of a segment that the index still knows.
    fn live(&self, segment: &Summary) -> Vec<IndexedEntry> {
        let mut live = Vec::new();
        for (block_number, summary_entry) in segment.iter() {
            let (hash, RecordKind::Entry) = parse_summary_entry(summary_entry) else { continue };
            if let Some(is_found) = self.shard(hash).index.at(hash, block_number) {
                live.push(IndexedEntry { hash, block_number, is_found });
            }
        }
        live
    }

    /// Takes back the entries found lately that begin in `block_numbers`, which ascend.
    fn take_back_from(&self, flash: &Flash, sequence: u64, block_numbers: &[u64]) {
        let geometry = flash.log.geometry();
        let size = geometry.block_size();
        let most = (TAKE_BACK_READ_BYTES_MAX / size).max(1);
        let mut bytes = AlignedBuffer::zeroed(most * size);
        let mut next = 0;
        while let Some(first) = block_numbers.get(next).copied() {
            let blocks =
                block_numbers[next..].iter().take_while(|block_number| **block_number < first + most as u64);
            let count = blocks.clone().count();
            let last = block_numbers[next + count - 1];
            next += count;
            let read = &mut bytes[..(last - first + 1) as usize * size];
            let extent = Extent { offset: geometry.offset(first), len: read.len() };
            if flash.log.device().read_at(extent.offset, read).is_err() {
                let is_wanted =
                    |offset| blocks.clone().any(|block_number| geometry.offset(*block_number) == offset);
                read.copy_from_slice(&read_by_block(&flash.log, extent, Usable::EachBlock, is_wanted).0);
            }
            for block_number in blocks {
                let at = (block_number - first) as usize * size;
                let header = block::check(&read[at..at + size], flash.log.instance(), *block_number);
                if let Some(header) = header.filter(|header| header.sequence == sequence) {
                    self.take_back_block(flash, *block_number, header, &read[at..at + size]);
                }
            }
        }
    }

    fn take_back_block(
        &self,
        flash: &Flash,
        block_number: u64,
        BlockHeader { sequence, count }: BlockHeader,
        block: &[u8],
    ) {
        let payload = block::payload(block);
        for entry in newest_entries(payload, count) {
            if entry.is_whole() {
                self.take_back_entry(block_number, &entry);
                continue;
            }
            // The entry goes on in the following blocks. No request waits for this, so plain reads do.
            let (mut io, mut bytes) = (Io::with_engine(Engine::Plain), Vec::new());
            let record = LongRecord { block: block_number, sequence, len: entry.len() };
            LongReads::default().read(&mut io, &flash.log, [record], &mut bytes, |_, read| {
                if let Some(Record::Entry(entry)) = read.and_then(parse) {
                    self.take_back_entry(block_number, &entry);
                }
            });
        }
    }

    fn take_back_entry(&self, block_number: u64, entry: &EntryRecord<'_>) {
        let key = self.hasher.key(entry.key);
        let mut shard = self.shard(key.hash());
        let now = self.time();
        if shard.index.at(key.hash(), block_number) != Some(true) || entry.is_expired(now) {
            return;
        }
        shard.index.remove(key.hash(), block_number);
        let value = (!entry.negative).then(|| entry.value()).flatten();
        // It must earn its place on flash again.
        shard.memory.remove(key);
        let kept = shard.memory.insert(key, value, entry.expires_at, EntryState::Readmitted, 0);
        add(if kept { &self.counters.taken_back } else { &self.counters.evicted_flash }, 1);
    }
}

/// An entry that the index knows.
struct IndexedEntry {
    hash: KeyHash,
    block_number: u64,
    is_found: bool,
}
