//! Reads for keys that begin to wait.

use super::fetch::OnDevice;
use super::room::Scratch;
use super::waiting::Tables;
use super::{FalsePositive, Io, Lookup, Outcome, Probe};
use crate::limits::LOOKUP_ROUNDS_MAX;
use crate::partition::{Flash, Shared};
use crate::stats::add;
use granary_log::Extent;

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    /// Answers what lies in write buffers, and opens reads of what lies on the device, for keys that begin to
    /// wait (`admit`).
    pub(super) fn open_reads(
        &mut self,
        flash: &Flash,
        scratch: &mut Scratch,
        tables: &mut Tables,
        opened: &mut Vec<u32>,
        first_round: usize,
        mut admit: impl FnMut(&mut Tables, u32) -> u32,
    ) {
        let mut ids = std::mem::take(&mut scratch.ids);
        ids.clear();
        ids.resize(self.keys.len(), None);
        for round in first_round.. {
            let (probes, on_device) = self.fetch_from_buffers(flash, scratch);
            for OnDevice { range, sequence } in on_device {
                let probes = probes[range].iter().filter(|want| !self.is_resolved(want.key));
                let mut of_segment = Opening { shared: self.shared, flash, sequence, read: None };
                for want in probes {
                    let id = *ids[want.key as usize].get_or_insert_with(|| admit(tables, want.key));
                    tables.waiting[id as usize].reads += 1;
                    tables.waiting[id as usize].round = round;
                    of_segment.add(Probe { key: id, ..*want }, tables, opened);
                }
            }
            scratch.probes = probes;
            // Those that wait are planned again when their reads have come; the others now.
            scratch.false_positives.retain(|false_positives| match ids[false_positives.key as usize] {
                Some(id) => {
                    tables.waiting[id as usize]
                        .false_positives
                        .push(FalsePositive { key: 0, ..*false_positives });
                    false
                }
                None => true,
            });
            self.plan_again(scratch, round == LOOKUP_ROUNDS_MAX);
            if scratch.probes.is_empty() {
                break;
            }
        }
        scratch.ids = ids;
    }
}

/// Reads of one segment that are being opened: neighbouring blocks share one.
struct Opening<'a> {
    shared: &'a Shared,
    flash: &'a Flash,
    sequence: u64,
    read: Option<u32>,
}

impl Opening<'_> {
    /// Adds a want; their places ascend.
    fn add(&mut self, want: Probe, tables: &mut Tables, opened: &mut Vec<u32>) {
        let geometry = self.flash.log.geometry();
        let (offset, size) = (geometry.offset(want.place), geometry.block_size());
        let counters = &self.shared.counters;
        if let Some(read) = self.read.map(|id| &mut tables.reads[id as usize]) {
            let end = read.extent.offset + read.extent.len as u64;
            let is_next = end == offset && read.extent.len + size <= Io::extent_bytes_max(size);
            if is_next || end == offset + size as u64 {
                read.probes.push(want);
                if is_next {
                    read.extent.len += size;
                    add(&counters.block_reads, 1);
                    add(&counters.bytes_read, size as u64);
                }
                return;
            }
        }
        let id = tables.open(Extent { offset, len: size }, self.sequence, self.flash.log.instance());
        tables.reads[id as usize].probes.push(want);
        self.read = Some(id);
        opened.push(id);
        add(&counters.reads, 1);
        add(&counters.block_reads, 1);
        add(&counters.bytes_read, size as u64);
    }
}
