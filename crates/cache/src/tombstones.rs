//! Deletions that wait for room in the log.

use crate::framing::{Placed, Records, append};
use crate::key::{Key, RecordKind, parse_summary_entry};
use crate::limits::PUT_CHUNK;
use crate::record::HeaderBytes;
use granary_log::Writer;
use std::collections::BTreeSet;

/// The summary entries of deletions that found no room in the log yet.
///
/// The thread that appends to the log holds its lock.
#[derive(Default)]
pub(crate) struct TombstoneQueue {
    /// Invariant whenever the lock is free: either the set is empty, or no segment is open and the journal has all of
    /// its entries for the next segment, which will begin with them.
    summary_entries: BTreeSet<u64>,
    /// The segment for which the journal has them.
    journalled_for: u64,
    /// Whether deletions waited while the lock was free: then they may have been acknowledged, and synced.
    have_waited: bool,
}

impl TombstoneQueue {
    /// Makes the changes of a chunk survive a kill, before any reader can see them. Keys without a
    /// place become deletions.
    pub fn journal<'a>(
        &mut self,
        writer: &mut Writer<'_, Records>,
        changes: impl Iterator<Item = (Key<'a>, Option<Placed>)>,
    ) {
        let mut summary_entries = Vec::with_capacity(PUT_CHUNK);
        let mut sequence = 0;
        let next = writer.next_sequence();
        for (key, placed) in changes {
            let summary_entry = key.hash().summary_entry(RecordKind::Deletion);
            let goes_to = placed.map_or(next, |placed| placed.sequence);
            if placed.is_none() && !self.summary_entries.insert(summary_entry) && self.journalled_for == next
            {
                // It waits already, and the journal has it: a put without room may be repeated many times.
                continue;
            }
            if goes_to != sequence {
                writer.journal(sequence, &summary_entries);
                summary_entries.clear();
                sequence = goes_to;
            }
            summary_entries.push(summary_entry);
        }
        writer.journal(sequence, &summary_entries);
    }

    /// Replaces the waiting deletions by `summary_entries`, which the journal has already.
    pub fn replace(&mut self, summary_entries: Vec<u64>) {
        self.summary_entries = summary_entries.into_iter().collect();
        self.have_waited = true;
    }

    /// Forgets the waiting deletions: the whole content is given up.
    pub fn clear(&mut self) {
        self.summary_entries.clear();
    }

    pub fn len(&self) -> usize {
        self.summary_entries.len()
    }

    /// Appends the waiting deletions as far as there is room; `false`: some still wait.
    pub fn retry(&mut self, writer: &mut Writer<'_, Records>) -> bool {
        let mut sequence = 0;
        let mut summary_entries = Vec::new();
        // A segment that is found voids the journal's entries for it. The journal has all waiting deletions for the
        // first segment, but some may go to later ones.
        writer.defer_flush();
        let mut segments = 0;
        while let Some(summary_entry) = self.summary_entries.first().copied() {
            let header = HeaderBytes::deletion(parse_summary_entry(summary_entry).0);
            let Some(placed) = append(writer, summary_entry, &[header.as_slice()]) else { break };
            if placed.sequence != sequence {
                writer.journal(sequence, &summary_entries);
                summary_entries.clear();
                sequence = placed.sequence;
                segments += 1;
            }
            summary_entries.push(summary_entry);
            self.summary_entries.pop_first();
        }
        writer.journal(sequence, &summary_entries);
        let next = writer.next_sequence();
        if !self.summary_entries.is_empty() && self.journalled_for < next {
            writer.journal(next, &self.summary_entries.iter().copied().collect::<Vec<_>>());
            self.journalled_for = next;
            segments += 1;
        }
        if self.have_waited && segments > 1 {
            // The journal had them all for the first of these, perhaps synced. A loss of power that leaves that segment
            // must leave in the journal what it does not have. Where it cannot be synced, the log starts empty.
            let _ = writer.sync_journal();
        }
        self.have_waited = !self.summary_entries.is_empty();
        writer.resume_flush();
        self.summary_entries.is_empty()
    }
}
