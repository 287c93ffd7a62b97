//! Reading summaries again, whose entries recovery could not all keep at the same time.

use crate::flash::Flash;
use crate::framing::Summary;
use crate::key::parse_summary_entry;
use granary_log::Framing;
use std::ops::Range;

/// The summaries of `segments`, which are in order, with the entries of `shards`. If one can no longer be read, it may
/// have had newer versions of any key: then only those after it.
pub(super) fn read(flash: &Flash, segments: &[Summary], shards: &Range<usize>) -> Vec<Summary> {
    let mut found = Vec::with_capacity(segments.len());
    for segment in segments {
        match whole(flash, segment) {
            Some(mut summary) => {
                summary.retain(|entry| shards.contains(&parse_summary_entry(entry).0.shard()));
                found.push(summary);
            }
            None => {
                let sequence = segment.sequence;
                tracing::warn!(sequence, "a segment cannot be read again: what is older is not served");
                flash.note_unindexed();
                found.clear();
            }
        }
    }
    found
}

/// A summary with all of its entries; `None`: they cannot be read.
pub(super) fn whole(flash: &Flash, segment: &Summary) -> Option<Summary> {
    let slot = flash.log.geometry().slot_of_block(segment.first_block);
    let read = flash.log.framing().read(&flash.log.summary_source(), slot..slot + 1).pop().flatten()?;
    let is_same = (read.sequence, read.records) == (segment.sequence, segment.records);
    is_same.then_some(read)
}
