//! The division of one budget between entries and blocks: a pure function of reads, and of reads that more RAM would
//! have saved.
//!
//! Both kinds save the same: a read of a block. What left RAM lately is remembered as ghosts, for the same number of
//! bytes of either kind. So a byte of RAM is worth more for the kind whose ghosts are looked up more often.

use std::ops::Add;

/// Reads of flash, and those that more RAM would have saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Blocks read.
    pub reads: u64,
    /// Reads of a block that had left RAM lately, except those that entries would have saved.
    pub ghost_blocks: u64,
    /// Reads that evicted entries alone would have saved. Reads counted earlier whose block turned out to serve other
    /// entries are subtracted, so it may be negative.
    pub ghost_entries: i64,
}

impl Add for Misses {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            ghost_blocks: self.ghost_blocks + other.ghost_blocks,
            ghost_entries: self.ghost_entries + other.ghost_entries,
        }
    }
}

/// The bytes that blocks have, with their bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The least bytes for blocks.
    pub least: u64,
    /// The most bytes for blocks.
    pub most: u64,
    /// Bytes for blocks now.
    pub blocks: u64,
    /// Misses since the division was last changed.
    pub misses: Misses,
    /// `misses` are forgotten after this many reads.
    pub reads_remembered: u64,
}

/// A difference between the ghosts of the two kinds is significant from this many standard deviations on.
const SIGNIFICANT: f64 = 2.0;

/// It is worth a change if it is more than this share of all reads: RAM that changes hands loses its content.
const LEAST_SAVING: f64 = 1.0 / 32.0;

/// The share of `most` that moves if all ghosts are of one kind,
const GAIN: f64 = 0.25;

/// and the least share that moves.
const LEAST_GAIN: f64 = 1.0 / 32.0;

impl Division {
    /// Returns the division after more misses: changed if the misses since the last change are significant.
    pub fn after(self, misses: Misses) -> Self {
        let misses = self.misses + misses;
        let (blocks, entries) = (misses.ghost_blocks as f64, misses.ghost_entries.max(0) as f64);
        let (all, difference) = (blocks + entries, blocks - entries);
        let least = (SIGNIFICANT * all.sqrt()).max(LEAST_SAVING * misses.reads as f64);
        if difference.abs() <= least {
            // Old misses may be of another workload.
            let misses = if misses.reads > self.reads_remembered { Misses::default() } else { misses };
            return Self { misses, ..self };
        }
        let part = (difference / all * GAIN).abs().max(LEAST_GAIN).copysign(difference);
        let blocks = self.blocks.saturating_add_signed((part * self.most as f64) as i64);
        Self { blocks: blocks.clamp(self.least, self.most), misses: Misses::default(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Division =
        Division { least: 10, most: 1000, blocks: 500, misses: NONE, reads_remembered: 10_000 };
    const NONE: Misses = Misses { reads: 0, ghost_blocks: 0, ghost_entries: 0 };

    fn after(ghost_blocks: u64, ghost_entries: i64) -> u64 {
        EVEN.after(Misses { reads: 100, ghost_blocks, ghost_entries }).blocks
    }

    #[test]
    fn ram_goes_to_the_kind_that_would_have_saved_more_reads() {
        assert!(after(30, 10) > 500 && after(10, 30) < 500);
        assert!(after(60, 10) > after(30, 10), "the more, the faster");
    }

    #[test]
    fn what_may_be_chance_changes_nothing_until_there_is_more_of_it() {
        assert_eq!([after(0, 0), after(20, 20), after(20, 15), after(0, -3)], [500; 4]);
        let seen =
            |division: Division| division.after(Misses { reads: 100, ghost_blocks: 20, ghost_entries: 15 });
        let changed = std::iter::successors(Some(EVEN), |division| Some(seen(*division)));
        let windows = changed.take_while(|division| division.blocks == 500).count();
        assert!((2..10).contains(&windows), "{windows}");
        let short = Division { reads_remembered: 150, ..EVEN };
        assert_eq!((0..100).fold(short, |division, _| seen(division)).blocks, 500, "forgotten too soon");
    }

    #[test]
    fn either_kind_keeps_its_least() {
        let all = |misses: Misses| (0..1000).fold(EVEN, |division, _| division.after(misses)).blocks;
        assert_eq!(all(Misses { reads: 10, ghost_blocks: 10, ghost_entries: 0 }), 1000);
        assert_eq!(all(Misses { reads: 10, ghost_blocks: 0, ghost_entries: 10 }), 10);
    }
}
