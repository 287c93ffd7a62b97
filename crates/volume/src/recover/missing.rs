//! Segments that ought to be there and are not.

use crate::framing::Summary;
use granary_log::limits::SEQUENCES_SKIPPED;

/// Looks for sequence numbers that are missing behind the checkpoint, which has all segments before `from`: no slot of a
/// later one is used again, and a start leaves out [`SEQUENCES_SKIPPED`] numbers or several times as many. `segments` are
/// in order. Returns whether some are missing that were not synced: a loss of power took them.
///
/// # Errors
/// A segment up to `synced` is missing: it is damaged, or what is in its slot is an older copy.
pub(super) fn check(segments: &[Summary], from: u64, synced: u64) -> Result<bool, String> {
    let behind = &segments[segments.partition_point(|segment| segment.sequence < from)..];
    // Older versions used slots again earlier. The start that finds such segments writes a checkpoint.
    if behind.iter().any(|segment| !segment.reuse_waits) {
        return Ok(true);
    }
    let mut last = from.saturating_sub(1);
    let mut is_first = true;
    let mut any_lost = false;
    for segment in behind {
        let left_out = segment.sequence.saturating_sub(last + 1);
        let missing = left_out % SEQUENCES_SKIPPED;
        // The start before may not have found the last segment that the checkpoint has, and have counted from one before.
        let counted_from_before = is_first && missing > SEQUENCES_SKIPPED / 2;
        if missing > 0 && !counted_from_before {
            if last < synced {
                return Err(format!("segment {}, which was synced, is not there", last + 1));
            }
            any_lost = true;
        }
        (last, is_first) = (segment.sequence, false);
    }
    Ok(any_lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(numbers: &[u64], reuse_waits: bool) -> Vec<Summary> {
        let segment = |sequence: &u64| Summary {
            sequence: *sequence,
            first_block: 0,
            entries: Vec::new(),
            synced: 0,
            checkpoint: 0,
            reuse_waits,
            is_sealed: true,
            is_read: true,
        };
        numbers.iter().map(segment).collect()
    }

    #[test]
    fn numbers_are_missing_where_no_start_left_them_out() {
        const SKIP: u64 = SEQUENCES_SKIPPED;
        let check = |numbers: &[u64], synced| check(&segments(numbers, true), 10, synced);
        for whole in [
            &[][..],
            &[10],
            &[2, 7, 10, 11, 12],
            &[10 + SKIP],
            &[10, 11 + SKIP, 12 + SKIP],
            &[9, 10 + 3 * SKIP, 11 + 3 * SKIP],
            &[10 + SKIP - 2, 10 + SKIP - 1],
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
        assert_eq!(super::check(&segments(&[10, 12], false), 10, u64::MAX), Ok(true), "an older version's");
    }
}
