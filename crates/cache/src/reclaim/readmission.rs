//! DRAM first, when the log reuses a segment: what was found lately goes back to RAM, where it has to
//! earn its place on flash again. What was not (the paper's ghosts) leaves.

use crate::drive::{Io, Usable, read_by_block};
use crate::flash::Flash;
use crate::framing::Summary;
use crate::framing::block::{self, Header};
use crate::key::{KeyHash, RecordKind, parse_summary_entry};
use crate::limits::TAKE_BACK_READ_BYTES_MAX;
use crate::memory::EntryState;
use crate::record::{EntryRecord, Record, newest_entries, parse};
use crate::shared::Shared;
use crate::stats::add;
use granary_log::sync::sync::atomic::Ordering;
use granary_log::{AlignedBuffer, Engine, Extent};

impl Shared {
    /// To be called before the segment is forgotten.
    pub fn take_back(&self, flash: &Flash, segment: &Summary) {
        let live = self.live(segment);
        // A kill may come before the segment is overwritten. What is live in it and changes from here on
        // changes in RAM only, for the index will not know it: without these summary entries it would come back.
        let summary_entries: Vec<u64> =
            live.iter().map(|live| live.hash.summary_entry(RecordKind::Deletion)).collect();
        let Some(_putting) = flash.putting_unless_awaited() else { return };
        let overwritten_by = segment.sequence + flash.log.geometry().segments();
        flash.log.writer().journal(overwritten_by, &summary_entries);
        drop(_putting);
        let takes_back =
            flash.dram_first.as_ref().is_some_and(|dram_first| dram_first.takes_back.load(Ordering::Acquire));
        let mut places = Vec::new();
        for live in live {
            let mut shard = self.shard(live.hash);
            if shard.places.at(live.hash, live.place).is_none() {
                continue;
            }
            // Those that are in RAM anyway need not be read.
            if shard.memory.orphan(live.hash) {
                shard.places.remove(live.hash, live.place);
            } else if takes_back && live.recent && places.last() != Some(&live.place) {
                places.push(live.place);
            }
        }
        self.take_back_from(flash, segment.sequence, &places);
        // What came back may be more than there was room for.
        if let Some(dram_first) = &flash.dram_first {
            dram_first.wake();
        }
    }

    /// What the index still knows of a segment.
    fn live(&self, segment: &Summary) -> Vec<Live> {
        let mut live = Vec::new();
        for (place, summary_entry) in segment.iter() {
            let (hash, RecordKind::Entry) = parse_summary_entry(summary_entry) else { continue };
            if let Some(recent) = self.shard(hash).places.at(hash, place) {
                live.push(Live { hash, place, recent });
            }
        }
        live
    }

    /// Takes back the entries found lately that begin in these blocks, in ascending order.
    fn take_back_from(&self, flash: &Flash, sequence: u64, places: &[u64]) {
        let geometry = flash.log.geometry();
        let size = geometry.block_size();
        let most = (TAKE_BACK_READ_BYTES_MAX / size).max(1);
        let mut bytes = AlignedBuffer::zeroed(most * size);
        let mut next = 0;
        while let Some(first) = places.get(next).copied() {
            let blocks = places[next..].iter().take_while(|place| **place < first + most as u64);
            let count = blocks.clone().count();
            let last = places[next + count - 1];
            next += count;
            let read = &mut bytes[..(last - first + 1) as usize * size];
            let extent = Extent { offset: geometry.offset(first), len: read.len() };
            if flash.log.device().read_at(extent.offset, read).is_err() {
                let is_wanted = |offset| blocks.clone().any(|place| geometry.offset(*place) == offset);
                read.copy_from_slice(&read_by_block(&flash.log, extent, Usable::EachBlock, is_wanted).0);
            }
            for place in blocks {
                let at = (place - first) as usize * size;
                let header = block::check(&read[at..at + size], flash.log.instance(), *place);
                if let Some(header) = header.filter(|header| header.sequence == sequence) {
                    self.take_back_block(flash, *place, header, &read[at..at + size]);
                }
            }
        }
    }

    fn take_back_block(&self, flash: &Flash, place: u64, Header { sequence, count }: Header, block: &[u8]) {
        let payload = block::payload(block);
        for entry in newest_entries(payload, count) {
            if entry.is_whole() {
                self.take_back_entry(place, &entry);
                continue;
            }
            // It goes on in the blocks that follow: nobody waits for this, so the plainest reads do.
            let mut record = Vec::new();
            let read = Io::with_engine(Engine::Plain).read_record(&flash.log, place, sequence, &mut record);
            if let (Some(_), Some(Record::Entry(entry))) = (read, parse(&record)) {
                self.take_back_entry(place, &entry);
            }
        }
    }

    fn take_back_entry(&self, place: u64, entry: &EntryRecord<'_>) {
        let key = self.hasher.key(entry.key);
        let mut shard = self.shard(key.hash());
        let now = self.time();
        if shard.places.at(key.hash(), place) != Some(true) || entry.is_expired(now) {
            return;
        }
        shard.places.remove(key.hash(), place);
        let value = (!entry.negative).then(|| entry.value()).flatten();
        // It must earn its place on flash again.
        shard.memory.remove(key);
        let kept = shard.memory.insert(key, value, entry.expires_at, EntryState::Returned, 0);
        add(if kept { &self.counters.taken_back } else { &self.counters.evicted_flash }, 1);
    }
}

/// An entry that the index knows.
struct Live {
    hash: KeyHash,
    place: u64,
    recent: bool,
}
