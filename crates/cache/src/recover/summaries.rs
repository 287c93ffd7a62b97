//! What recovery asks of all summaries at the same time.

use crate::framing::Summary;
use crate::key::{KeyHash, RecordKind};
use granary_log::Geometry;
use std::ops::Range;

/// Summaries with what is needed to ask which summary entries a block holds.
pub(super) struct Summaries<'a> {
    pub geometry: Geometry,
    /// Of each slot the summary, and where the summary entries of each of its blocks begin.
    of_slots: Vec<Option<(&'a Summary, Vec<u32>)>>,
}

impl<'a> Summaries<'a> {
    pub fn new(geometry: Geometry, segments: &'a [Summary]) -> Self {
        let starts = |summary: &Summary| {
            let ends = summary.counts.iter().scan(0, |sum, count| {
                *sum += u32::from(*count);
                Some(*sum)
            });
            std::iter::once(0).chain(ends).collect()
        };
        let mut of_slots = Vec::new();
        of_slots.resize_with(geometry.segments() as usize, || None);
        for summary in segments {
            of_slots[geometry.slot(summary.sequence) as usize] = Some((summary, starts(summary)));
        }
        Self { geometry, of_slots }
    }

    /// The summary that tells the summary entries of a block, and which of its they are.
    fn of_block(&self, place: u64) -> Option<(&Summary, Range<usize>)> {
        let (summary, starts) = self.of_slots[self.geometry.slot_of_block(place) as usize].as_ref()?;
        let i = (place - summary.first_block) as usize;
        Some((summary, starts[i] as usize..starts[i + 1] as usize))
    }

    /// Whether an entry with this hash lies in the block.
    pub fn holds(&self, place: u64, hash: KeyHash) -> bool {
        let wanted = hash.summary_entry(RecordKind::Entry);
        self.of_block(place).is_some_and(|(summary, range)| summary.entries.has_in(range, wanted))
    }

    /// Has the processor fetch what [`holds`](Self::holds) reads.
    pub fn prefetch(&self, place: u64) {
        if let Some((summary, range)) = self.of_block(place) {
            summary.entries.prefetch(range);
        }
    }
}
