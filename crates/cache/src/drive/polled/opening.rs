//! Reads for keys that begin to wait.

use super::waiting::Tables;
use crate::flash::Flash;
use crate::limits::LOOKUP_ROUNDS_MAX;
use crate::lookup::{BegunReads, FalsePositive, Lookup, Outcome, Probe, ReadSpan, Scratch};
use granary_log::Io;

/// Answers keys from write buffers, and opens reads for the keys on the device, which begin to wait (`admit`).
pub(super) fn open_reads<S: FnMut(usize, Outcome<'_>)>(
    lookup: &mut Lookup<'_, S>,
    flash: &Flash,
    scratch: &mut Scratch,
    tables: &mut Tables,
    opened: &mut Vec<u32>,
    first_round: usize,
    mut admit: impl FnMut(&mut Tables, u32) -> u32,
) {
    let geometry = flash.log.geometry();
    let mut ids = std::mem::take(&mut scratch.ids);
    ids.clear();
    ids.resize(lookup.keys.len(), None);
    for round in first_round.. {
        lookup.fetch_buffered(flash, scratch);
        let longest = Io::extent_bytes_max(geometry.block_size());
        lookup.plan_reads(flash, &BegunReads::default(), (ReadSpan::OneSegment, longest), scratch);
        for (read, extent) in scratch.reads.iter().zip(&scratch.extents) {
            let sequence = scratch.on_device[read.segment].sequence;
            let opening = tables.open(*extent, sequence, flash.log.instance());
            tables.reads[opening as usize].blocks = lookup.read_blocks;
            opened.push(opening);
            let end = extent.offset + extent.len as u64;
            let of_read = scratch.probes[read.probe..].iter();
            for probe in of_read.take_while(|probe| geometry.offset(probe.block) < end) {
                if lookup.is_resolved(probe.key) {
                    continue;
                }
                let id = *ids[probe.key as usize].get_or_insert_with(|| admit(tables, probe.key));
                let waiting = &mut tables.waiting[id as usize];
                (waiting.reads, waiting.round) = (waiting.reads + 1, round);
                tables.reads[opening as usize].probes.push(Probe { key: id, ..*probe });
            }
        }
        // Waiting keys are planned again when their reads have completed, the others now.
        scratch.false_positives.retain(|false_positive| match ids[false_positive.key as usize] {
            Some(id) => {
                let waiting = &mut tables.waiting[id as usize];
                waiting.false_positives.push(FalsePositive { key: 0, ..*false_positive });
                false
            }
            None => true,
        });
        lookup.plan_again(scratch, round == LOOKUP_ROUNDS_MAX);
        if scratch.probes.is_empty() {
            break;
        }
    }
    scratch.ids = ids;
}
