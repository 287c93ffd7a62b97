//! Visiting everything that is there.

use crate::cache::{Cache, Flash, Shared};
use crate::get::Io;
use crate::key::KeyHash;
use crate::limits::SHARDS;
use crate::memory::Which;
use crate::record::{EntryRecord, Record, Records};
use granary_log::{Extent, Location, block};

impl Cache {
    /// Visits every entry, expired and negative ones too: key, value (`None`: negative), expiry.
    /// What is put or removed meanwhile may or may not be seen. No entry over several blocks is
    /// read twice; the order is that of the device, after what is in RAM only.
    pub fn scan(&self, io: &mut Io, mut visit: impl FnMut(&[u8], Option<&[u8]>, u32)) {
        for shard in 0..SHARDS {
            let shard = self.shared.lock(shard);
            let which = if self.shared.flash.is_some() { Which::Only } else { Which::All };
            shard.memory.for_each(which, |entry| visit(entry.key, entry.value(), entry.expires_at));
        }
        if let Some(flash) = &self.shared.flash {
            for slot in 0..flash.log.geometry().segments() {
                self.shared.scan_slot(flash, io, slot, &mut visit);
            }
        }
    }
}

type Visit<'a> = dyn FnMut(&[u8], Option<&[u8]>, u32) + 'a;

impl Shared {
    fn scan_slot(&self, flash: &Flash, io: &mut Io, slot: u64, visit: &mut Visit<'_>) {
        let geometry = *flash.log.geometry();
        let per_segment = u64::from(geometry.blocks_per_segment());
        let first = slot * per_segment;
        if flash.log.sequence_of(first) == 0 {
            return;
        }
        match flash.log.locate(first) {
            Location::Memory(segment) => {
                // A copy: whoever holds a shard may wait for the segment, so we must not wait for a
                // shard (nor for the visitor) while we hold the segment.
                let (counts, bytes) = {
                    let segment = segment.read();
                    let places = first..first + per_segment;
                    let counts: Vec<u16> = places.map_while(|p| Some(segment.block(p)?.0)).collect();
                    let bytes = segment.block(first).map_or(&[][..], |(_, bytes)| bytes);
                    let bytes = bytes[..counts.len() * geometry.block_size()].to_vec();
                    (counts, bytes)
                };
                for (i, (count, place)) in counts.into_iter().zip(first..).enumerate() {
                    self.scan_block(flash, place, count, &bytes[i * geometry.block_size()..], visit);
                }
            }
            Location::Device { sequence } => {
                // Stretches overlap by nothing: an entry that reaches beyond its stretch is read apart.
                let step = Io::extent_bytes_max(geometry.block_size()) / geometry.block_size();
                let extents: Vec<Extent> = (first..first + per_segment)
                    .step_by(step)
                    .map(|place| {
                        let blocks = (first + per_segment - place).min(step as u64) as usize;
                        Extent { offset: geometry.offset(place), len: blocks * geometry.block_size() }
                    })
                    .collect();
                let instance = flash.log.instance();
                let mut beyond = Vec::new();
                io.read_many(flash.log.device(), &extents, |i, result| {
                    let Ok(bytes) = result else { return };
                    let places = extents[i].offset / geometry.block_size() as u64..;
                    for (block, place) in bytes.chunks_exact(geometry.block_size()).zip(places) {
                        let Some(header) = block::check(block, instance, place) else { continue };
                        if header.sequence == sequence
                            && self.scan_block(flash, place, header.count, block, visit) == Scanned::Beyond
                        {
                            beyond.push(place);
                        }
                    }
                });
                for place in beyond {
                    let mut bytes = Vec::new();
                    if let Some(count) = io.read_record(flash, place, sequence, &mut bytes) {
                        self.scan_payload(place, count, &bytes, visit);
                    }
                }
            }
        }
    }

    fn scan_block(
        &self,
        flash: &Flash,
        place: u64,
        count: u16,
        bytes: &[u8],
        visit: &mut Visit<'_>,
    ) -> Scanned {
        let size = flash.log.geometry().block_size();
        let first = &block::payload(&bytes[..size]);
        if let Some(Record::Entry(entry)) = Records::new(first, count).next()
            && !entry.is_whole()
        {
            if bytes.len() == size {
                return Scanned::Beyond;
            }
            let payloads = bytes.chunks_exact(size).map(block::payload);
            let whole: Vec<u8> = payloads.flatten().copied().take(entry.len()).collect();
            return self.scan_payload(place, count, &whole, visit);
        }
        self.scan_payload(place, count, first, visit)
    }

    fn scan_payload(&self, place: u64, count: u16, payload: &[u8], visit: &mut Visit<'_>) -> Scanned {
        let entries = Records::new(payload, count).filter_map(|record| match record {
            Record::Entry(entry) => Some(entry),
            Record::Deletion(_) => None,
        });
        let entries: Vec<EntryRecord<'_>> = entries.collect();
        for (i, entry) in entries.iter().enumerate() {
            let hash = KeyHash::of(entry.key);
            let live = {
                let shard = self.shard(hash);
                shard.table.contains(hash.below_shard(shard.table.hash_bits()), place).is_some()
            };
            let last = entries[i + 1..].iter().all(|later| later.key != entry.key);
            if live && last && entry.is_whole() {
                visit(entry.key, entry.value(), entry.expires_at);
            }
        }
        Scanned::All
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scanned {
    All,
    /// The block's one entry reaches into the blocks that follow, which are not at hand.
    Beyond,
}
