//! Visiting all entries in steps.

use crate::codec::StoredValue;
use crate::drive::{Io, LongRecord, Usable, or_by_block};
use crate::flash::Flash;
use crate::framing::{block, records_in};
use crate::limits::{SCAN_COPY_BYTES, SCAN_STEP_BYTES, SHARDS};
use crate::memory::EntryFilter;
use crate::partition_state::PartitionState;
use crate::record::{self, Record, RecordIter, newest_entries};
use granary_log::{Extent, Location};
use std::ops::Range;

/// The position of a scan, which goes on step by step and holds no lock between two steps.
#[derive(Debug)]
pub struct Scan {
    partition: usize,
    /// The next position in that partition.
    next: Position,
    /// Records copied out of RAM; those before `seen` have been visited.
    copied: Vec<u8>,
    seen: usize,
    /// The most bytes that are copied at once.
    copy_bytes: usize,
}

/// The next part of a partition to visit.
#[derive(Clone, Copy, Debug)]
enum Position {
    /// Entries in a shard's RAM whose hash has `part` in the `bits` bits below the shard's.
    Ram { shard: usize, part: u64, bits: u32 },
    /// The blocks from `block` on.
    Flash { block: u64 },
}

impl Default for Scan {
    fn default() -> Self {
        Self { partition: 0, next: Position::FIRST, copied: Vec::new(), seen: 0, copy_bytes: SCAN_COPY_BYTES }
    }
}

impl PartitionState {
    /// Takes one step of a scan: [`Cache::scan_on`](crate::Cache::scan_on).
    pub fn scan_on(
        &self,
        io: &mut Io,
        scan: &mut Scan,
        mut visit: impl FnMut(&[u8], Option<&[u8]>, u32),
    ) -> bool {
        let codecs = &self.codecs;
        let mut decoder = codecs.decoder();
        let mut visit = |key: &[u8], value: Option<StoredValue<'_>>, expires_at| match value {
            None => visit(key, None, expires_at),
            Some(stored) => {
                if let Some(value) = codecs.decode(stored, &mut decoder) {
                    visit(key, Some(value), expires_at);
                }
            }
        };
        let more = self.scan_stored(io, scan, &mut visit);
        codecs.take_back(decoder);
        more
    }

    fn scan_stored(&self, io: &mut Io, scan: &mut Scan, visit: &mut Visit<'_>) -> bool {
        if scan.visit_copied(visit) {
            return true;
        }
        match (scan.next, &self.flash) {
            (Position::Ram { shard, .. }, _) if shard < SHARDS => self.copy_part(scan),
            (Position::Ram { .. }, Some(_)) => scan.next = Position::Flash { block: 0 },
            (Position::Flash { block }, Some(flash)) if block < flash.log.geometry().blocks() => {
                let block = self.scan_blocks(flash, io, block, visit);
                scan.next = Position::Flash { block };
            }
            _ => return false,
        }
        true
    }
}

impl Position {
    const FIRST: Self = Self::Ram { shard: 0, part: 0, bits: 0 };
}

impl Scan {
    /// The partition that is being visited.
    pub(crate) fn partition(&self) -> usize {
        self.partition
    }

    /// Goes on to the next partition and returns it.
    pub(crate) fn go_to_next(&mut self) -> usize {
        (self.partition, self.next) = (self.partition + 1, Position::FIRST);
        self.partition
    }

    /// Visits the next of the entries copied out of RAM, if there are any.
    fn visit_copied(&mut self, visit: &mut Visit<'_>) -> bool {
        if self.copied.is_empty() {
            return false;
        }
        let end = self.copied.len().min(self.seen + SCAN_STEP_BYTES);
        while self.seen < end {
            let Some(Record::Entry(entry)) = record::parse(&self.copied[self.seen..]) else {
                unreachable!("the tier wrote entries there");
            };
            visit(entry.key, entry.value(), entry.expires_at);
            self.seen += entry.len();
        }
        if self.seen == self.copied.len() {
            (self.seen, self.copied) = (0, Vec::new());
        }
        true
    }
}

type Visit<'a> = dyn FnMut(&[u8], Option<StoredValue<'_>>, u32) + 'a;

impl PartitionState {
    /// Copies the next part of a shard's RAM, so that no thread that needs the shard waits for a visitor. An entry's
    /// hash determines its part, so that no entry moves to another while the parts are visited.
    fn copy_part(&self, scan: &mut Scan) {
        let Position::Ram { shard: number, part, bits } = scan.next else { return };
        let which = if self.flash.is_some() { EntryFilter::Dirty } else { EntryFilter::All };
        let shard = self.lock_shard(number);
        let bits = match part {
            0 => (shard.memory.bytes_allocated() / scan.copy_bytes).checked_ilog2().map_or(0, |log| log + 1),
            _ => bits,
        };
        shard.memory.for_each(which, |entry| {
            if bits == 0 || self.hasher.hash(entry.key).below_shard(bits) == part {
                scan.copied.extend_from_slice(entry.as_bytes());
            }
        });
        scan.next = match part + 1 == 1 << bits {
            true => Position::Ram { shard: number + 1, part: 0, bits: 0 },
            false => Position::Ram { shard: number, part: part + 1, bits },
        };
    }

    /// Visits blocks of one segment from `from` on; returns where the next step begins.
    fn scan_blocks(&self, flash: &Flash, io: &mut Io, from: u64, visit: &mut Visit<'_>) -> u64 {
        let geometry = *flash.log.geometry();
        let per_segment = u64::from(geometry.blocks_per_segment());
        let end = from - from % per_segment + per_segment;
        if flash.log.sequence_of(from) == 0 {
            return end;
        }
        let step = from..end.min(from + (SCAN_STEP_BYTES / geometry.block_size()).max(1) as u64);
        match flash.log.locate(from) {
            Location::WriteBuffer(segment) => {
                // A copy: the holder of a shard may wait for the segment, so this thread must not wait for a shard (nor
                // for the visitor) while it holds the segment. The bytes behind this step are copied, too, for an entry
                // may reach there.
                let (sequence, counts, bytes) = {
                    let segment = segment.read();
                    let counts: Vec<u16> =
                        (from..end).map_while(|p| Some(records_in(&segment, p)?.0)).collect();
                    let bytes = records_in(&segment, from).map_or(&[][..], |(_, bytes)| bytes);
                    let bytes = bytes[..counts.len() * geometry.block_size()].to_vec();
                    (segment.sequence(), counts, bytes)
                };
                for (i, (count, block_number)) in counts.into_iter().zip(step.clone()).enumerate() {
                    let bytes = &bytes[i * geometry.block_size()..];
                    self.scan_block(flash, (block_number, sequence), count, bytes, visit);
                }
            }
            Location::Device { sequence } => self.scan_device(flash, io, step.clone(), sequence, visit),
        }
        step.end
    }

    fn scan_device(
        &self,
        flash: &Flash,
        io: &mut Io,
        blocks: Range<u64>,
        sequence: u64,
        visit: &mut Visit<'_>,
    ) {
        let geometry = *flash.log.geometry();
        // Extents do not overlap: an entry that reaches beyond its extent is read separately.
        let step = granary_log::Io::extent_bytes_max(geometry.block_size()) / geometry.block_size();
        let extents: Vec<Extent> = blocks
            .clone()
            .step_by(step)
            .map(|block_number| {
                let blocks = (blocks.end - block_number).min(step as u64) as usize;
                Extent { offset: geometry.offset(block_number), len: blocks * geometry.block_size() }
            })
            .collect();
        let instance = flash.log.instance();
        let mut beyond = Vec::new();
        io.reads.read_many(flash.log.device(), &extents, |i, result| {
            let mut again = None;
            let (bytes, _) = or_by_block(&flash.log, extents[i], Usable::EachBlock, result, &mut again);
            let block_numbers = blocks.start + (i * step) as u64..;
            for (block, block_number) in bytes.chunks_exact(geometry.block_size()).zip(block_numbers) {
                let Some(header) = block::check(block, instance, block_number) else { continue };
                if header.sequence == sequence
                    && let Scanned::Beyond { len } =
                        self.scan_block(flash, (block_number, sequence), header.count, block, visit)
                {
                    beyond.push((LongRecord { block: block_number, sequence, len }, header.count));
                }
            }
        });
        let mut bytes = Vec::new();
        for (record, count) in beyond {
            io.long.read(&mut io.reads, &flash.log, [record], &mut bytes, |_, read| {
                if let Some(payload) = read {
                    self.scan_payload(flash, (record.block, sequence), count, payload, visit);
                }
            });
        }
    }

    fn scan_block(
        &self,
        flash: &Flash,
        at: (u64, u64),
        count: u16,
        bytes: &[u8],
        visit: &mut Visit<'_>,
    ) -> Scanned {
        let size = flash.log.geometry().block_size();
        let first = &block::payload(&bytes[..size]);
        if let Some(Record::Entry(entry)) = RecordIter::new(first, count).next()
            && !entry.is_whole()
        {
            if bytes.len() == size {
                return Scanned::Beyond { len: entry.len() };
            }
            let payloads = bytes.chunks_exact(size).map(block::payload);
            let whole: Vec<u8> = payloads.flatten().copied().take(entry.len()).collect();
            return self.scan_payload(flash, at, count, &whole, visit);
        }
        self.scan_payload(flash, at, count, first, visit)
    }

    /// Visits the current entries of a payload. The segment may have been overwritten since it was read.
    fn scan_payload(
        &self,
        flash: &Flash,
        (block_number, sequence): (u64, u64),
        count: u16,
        payload: &[u8],
        visit: &mut Visit<'_>,
    ) -> Scanned {
        for entry in newest_entries(payload, count) {
            let hash = self.hasher.hash(entry.key);
            let live = {
                let shard = self.shard(hash);
                flash.log.sequence_of(block_number) == sequence
                    && shard.index.at(hash, block_number).is_some()
            };
            if live && entry.is_whole() {
                visit(entry.key, entry.value(), entry.expires_at);
            }
        }
        Scanned::All
    }
}

enum Scanned {
    All,
    /// The block's only entry, of `len` bytes, reaches into following blocks, which were not read.
    Beyond {
        len: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cache, Entry, Options};
    use std::collections::HashMap;

    fn put(cache: &Cache, key: u64, value: &[u8]) {
        cache.put_many(&[Entry { key: cache.key(&key.to_le_bytes()), value: Some(value), expires_at: 0 }]);
    }

    #[test]
    fn what_stays_is_seen_once_in_parts_however_many_come_and_go() {
        let options = Options { memory_bytes: u64::MAX, ..Options::default() };
        let cache = Cache::open(options).unwrap();
        (0..20_000u64).for_each(|key| put(&cache, key, &[7; 50]));
        let mut io = Io::new();
        let mut scan = Scan { copy_bytes: 4096, ..Scan::default() };
        let mut seen: HashMap<u64, usize> = HashMap::new();
        let (mut steps, mut longest) = (0, 0);
        loop {
            let mut visited = 0;
            let more = cache.scan_on(&mut io, &mut scan, |key, value, _| {
                assert_eq!(value.map(<[u8]>::len), Some(50));
                visited += 1;
                *seen.entry(u64::from_le_bytes(key.try_into().unwrap())).or_default() += 1;
            });
            steps += 1;
            longest = longest.max(visited);
            // Nothing is locked between steps: other entries come and go, and shards grow and shrink.
            let others = 100_000 + steps * 100;
            (others..others + 100).for_each(|key| put(&cache, key, &[7; 50]));
            (others - 300..others - 200).for_each(|key| cache.delete_many(&[cache.key(&key.to_le_bytes())]));
            if !more {
                break;
            }
        }
        assert!((0..20_000).all(|key| seen.get(&key) == Some(&1)));
        assert!(longest < 20_000 / SHARDS, "a part is less than a shard: {longest}");
    }
}
