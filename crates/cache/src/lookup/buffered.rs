//! The second step, for what lies in write buffers: it is looked through at once.

use super::Lookup;
use super::deliver::search_block;
use super::order::order;
use super::outcome::{Outcome, Tier};
use super::probe::{FalsePositive, OnDevice, Probe};
use super::scratch::Scratch;
use crate::flash::Flash;
use crate::framing::block::{self, payload_size};
use crate::framing::{Records, is_settled, records_in};
use crate::record::{Record, parse};
use granary_log::{Location, Segment};

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    /// Sorts the probes by place, and answers those that lie in write buffers; notes which are on the device.
    pub fn fetch_buffered(&mut self, flash: &Flash, scratch: &mut Scratch) {
        let geometry = flash.log.geometry();
        order(&mut scratch.probes, &mut scratch.spare);
        scratch.on_device.clear();
        let probes = std::mem::take(&mut scratch.probes);
        let mut start = 0;
        for same in probes.chunk_by(|a, b| geometry.slot_of_block(a.place) == geometry.slot_of_block(b.place))
        {
            let range = start..start + same.len();
            start = range.end;
            match flash.log.locate(same[0].place) {
                Location::Memory(segment) => {
                    for same in same.chunk_by(|a, b| a.place == b.place) {
                        self.search_buffer(flash, &segment, same, scratch);
                        self.deliver_answers(scratch);
                    }
                }
                Location::Device { sequence } => scratch.on_device.push(OnDevice { range, sequence }),
            }
        }
        scratch.probes = probes;
    }

    /// Copies what a block of a write buffer has of the keys that are looked for there, while the buffer is locked.
    fn search_buffer(
        &self,
        flash: &Flash,
        segment: &Segment<Records>,
        probes: &[Probe],
        scratch: &mut Scratch,
    ) {
        let geometry = flash.log.geometry();
        let (size, payload) = (geometry.block_size(), payload_size(geometry));
        let Scratch { answers, false_positives, record, search, .. } = scratch;
        let place = probes[0].place;
        let segment = segment.read();
        let Some((count, bytes)) = records_in(&segment, place) else {
            let untrue = |probe: &Probe| FalsePositive { key: probe.key, place, sequence: 0 };
            return false_positives.extend(probes.iter().map(untrue));
        };
        // What the block that is being filled does not hold, it may hold a moment later: that is no collision.
        let sequence = if is_settled(&segment, place) { segment.sequence() } else { 0 };
        let payload = &block::payload(bytes)[..payload];
        let block = search_block(self.keys, payload, count, probes, search);
        for (i, probe) in probes.iter().enumerate() {
            let Some(entry) = block.found(i) else {
                false_positives.push(FalsePositive { key: probe.key, place, sequence });
                continue;
            };
            if !self.resolve(probe.key) {
                continue;
            }
            if entry.is_whole() {
                answers.entry(probe.key, Tier::Buffer, entry.value(), entry.expires_at);
                continue;
            }
            record.clear();
            let payloads = bytes.chunks_exact(size).map(block::payload);
            payloads
                .take(entry.len().div_ceil(payload.len()))
                .for_each(|part| record.extend_from_slice(part));
            match parse(record) {
                Some(Record::Entry(entry)) => {
                    answers.entry(probe.key, Tier::Buffer, entry.value(), entry.expires_at);
                }
                _ => answers.miss(probe.key),
            }
        }
    }
}
