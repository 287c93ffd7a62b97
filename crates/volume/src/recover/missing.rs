//! Segments that should exist and are missing.

use crate::framing::Summary;
use granary_log::limits::SEQUENCES_SKIPPED;

/// Looks for missing sequence numbers behind the checkpoint, which has all segments before `from`: slots of later ones
/// are not reused, and starts skip multiples of [`SEQUENCES_SKIPPED`] numbers. `segments` are in order; `on_record` is
/// the newest number in the state file. Returns whether unsynced segments are missing, which a loss of power took, or
/// whether the next segment's number will not reveal how many are missing before it: then a checkpoint has to come
/// first.
///
/// # Errors
/// A segment up to `synced` is missing: it is damaged, or its slot has an older copy.
pub(super) fn check(segments: &[Summary], from: u64, synced: u64, on_record: u64) -> Result<bool, String> {
    let behind = &segments[segments.partition_point(|segment| segment.sequence < from)..];
    // Older versions reused slots earlier. A start that finds such segments writes a checkpoint.
    if behind.iter().any(|segment| !segment.reuse_after_checkpoint) {
        return Ok(true);
    }
    let mut last = from.saturating_sub(1);
    let mut any_lost = false;
    for segment in behind {
        if !is_left_out_by_starts(segment.sequence.saturating_sub(last + 1)) {
            // Starts of older versions counted all numbers that they skipped after `last` as synced.
            if last < synced && !is_left_out_by_starts(synced + 1 - last) {
                return Err(format!("segment {}, which was synced, is not there", last + 1));
            }
            any_lost = true;
        }
        last = segment.sequence;
    }
    // This start counts from the newest number found or on record. The segment on record may be lost, although an
    // earlier start found it.
    let newest = segments.last().map_or(0, |segment| segment.sequence).max(on_record);
    let counts_from_last = newest.checked_sub(last).is_some_and(is_left_out_by_starts);
    Ok(any_lost || !counts_from_last)
}

/// Whether `numbers` missing numbers in a row are what starts skip.
fn is_left_out_by_starts(numbers: u64) -> bool {
    numbers.is_multiple_of(SEQUENCES_SKIPPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(numbers: &[u64], reuse_after_checkpoint: bool) -> Vec<Summary> {
        let segment = |sequence: &u64| Summary {
            sequence: *sequence,
            first_block: 0,
            entries: Vec::new(),
            synced: 0,
            checkpoint: 0,
            reuse_after_checkpoint,
            synced_position: 0,
            is_sealed: true,
            is_read: true,
        };
        numbers.iter().map(segment).collect()
    }

    #[test]
    fn numbers_are_missing_where_no_start_left_them_out() {
        const SKIP: u64 = SEQUENCES_SKIPPED;
        let check = |numbers: &[u64], synced| {
            check(&segments(numbers, true), 10, synced, numbers.last().map_or(9, |last| (*last).max(9)))
        };
        for whole in [
            &[][..],
            &[10],
            &[2, 7, 10, 11, 12],
            &[10 + SKIP],
            &[10, 11 + SKIP, 12 + SKIP],
            &[9, 10 + 3 * SKIP, 11 + 3 * SKIP],
        ] {
            assert_eq!(check(whole, u64::MAX), Ok(false), "{whole:?}");
        }
        for (damaged, missing) in
            [(&[11][..], 10), (&[10, 12], 11), (&[10, 12 + SKIP], 11), (&[10, 11, 10 + SKIP], 12)]
        {
            let error = check(damaged, missing).unwrap_err();
            assert!(error.contains(&format!("segment {missing},")), "{damaged:?}: {error}");
            assert_eq!(check(damaged, missing - 1), Ok(true), "{damaged:?}: it was not synced");
        }
        // The start that found segment 11 counted the numbers it skipped as synced, or knows one segment more.
        for left_out in [SKIP, 3 * SKIP] {
            assert_eq!(check(&[10, 11, 13 + left_out], 11 + left_out - 1), Ok(true));
            assert!(check(&[10, 11, 13 + left_out], 12 + left_out - 1).is_err());
        }
        let after = |numbers, on_record| super::check(&segments(numbers, true), 10, 12, on_record);
        for (numbers, on_record) in
            [(&[10, 11][..], 11), (&[10, 11], 3), (&[10, 11], 11 + 2 * SKIP), (&[9], 9 + SKIP)]
        {
            assert_eq!(after(numbers, on_record), Ok(false), "{numbers:?}, {on_record}");
        }
        // A segment that the previous start found is lost, or the last one in the checkpoint.
        for (numbers, on_record) in [(&[10, 11][..], 12), (&[10, 11], 12 + SKIP), (&[], 11 + SKIP), (&[7], 7)]
        {
            assert_eq!(after(numbers, on_record), Ok(true), "{numbers:?}, {on_record}");
        }
        let older = segments(&[10, 12], false);
        assert_eq!(super::check(&older, 10, u64::MAX, 12), Ok(true), "an older version's");
    }
}
