//! The second step for blocks on the device: the reads are planned. Neighbouring blocks share one.

use super::begun_reads::BegunReads;
use super::probe::{OnDevice, PlannedRead, Probe};
use super::scratch::Scratch;
use super::{Lookup, Outcome};
use crate::flash::Flash;
use crate::stats::add;
use granary_log::Extent;

/// The blocks that one read may span.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadSpan {
    /// Over neighbouring segments.
    Segments,
    /// To the end of a segment.
    OneSegment,
}

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    /// Lists the reads for the probes on the device, those already begun first; the others go as far as `span` allows,
    /// and are at most `longest` bytes long.
    pub fn plan_reads(
        &self,
        flash: &Flash,
        begun: &BegunReads,
        (span, longest): (ReadSpan, usize),
        scratch: &mut Scratch,
    ) {
        let geometry = flash.log.geometry();
        let size = geometry.block_size();
        let Scratch { probes, on_device, reads, extents, .. } = scratch;
        let first = |extent: &Extent| {
            let probe = probes.partition_point(|probe| geometry.offset(probe.block) < extent.offset);
            let segment = on_device.partition_point(|segment| segment.range.end <= probe);
            PlannedRead { probe, segment }
        };
        reads.clear();
        reads.extend(begun.extents.iter().map(first));
        extents.clear();
        extents.extend_from_slice(&begun.extents);
        let mut blocks = begun.blocks() as u64;
        for (s, OnDevice { range, sequence }) in on_device.iter().enumerate() {
            let mut at = range.start;
            for same in probes[range.clone()].chunk_by(|a, b| a.block == b.block) {
                let (offset, probe) = (geometry.offset(same[0].block), at);
                at += same.len();
                if begun.covers(offset, *sequence) || same.iter().all(|probe| self.is_resolved(probe.key)) {
                    continue;
                }
                blocks += 1;
                let is_within_span =
                    span == ReadSpan::Segments || reads.last().is_some_and(|read| read.segment == s);
                match extents[begun.extents.len()..].last_mut() {
                    Some(last)
                        if is_within_span
                            && last.offset + last.len as u64 == offset
                            && last.len + size <= longest =>
                    {
                        last.len += size;
                    }
                    _ => {
                        extents.push(Extent { offset, len: size });
                        reads.push(PlannedRead { probe, segment: s });
                    }
                }
            }
        }
        let counters = &self.shared.counters;
        add(&counters.block_reads, blocks);
        add(&counters.reads, extents.len() as u64);
        add(&counters.bytes_read, blocks * size as u64);
    }
}

/// The blocks of a read that have probes, each with its probes and the segment that it should be of.
pub(super) struct BlocksOfRead<'a> {
    probes: &'a [Probe],
    on_device: &'a [OnDevice],
    at: PlannedRead,
}

impl<'a> BlocksOfRead<'a> {
    pub fn new(probes: &'a [Probe], on_device: &'a [OnDevice], at: PlannedRead) -> Self {
        Self { probes, on_device, at }
    }

    /// The probes of the block at `offset`, and its segment; call it in ascending order. `None`: the block has no
    /// probes, or no longer any.
    pub fn take_probes(&mut self, flash: &Flash, offset: u64) -> Option<(&'a [Probe], u64)> {
        let geometry = flash.log.geometry();
        let start = self.at.probe;
        let is_there = |probe: &&Probe| geometry.offset(probe.block) == offset;
        self.at.probe += self.probes[start..].iter().take_while(is_there).count();
        let is_before = |segment: &&OnDevice| segment.range.end <= start;
        self.at.segment += self.on_device[self.at.segment..].iter().take_while(is_before).count();
        let probes = &self.probes[start..self.at.probe];
        let segment = self.on_device.get(self.at.segment).filter(|segment| segment.range.contains(&start))?;
        (!probes.is_empty()).then_some((probes, segment.sequence))
    }
}
