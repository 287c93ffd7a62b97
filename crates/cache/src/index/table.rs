//! The algorithm of the index: a bucketised cuckoo table of bit-packed slots. It knows no lock.

use super::bits::Line;
use super::bucket::BucketEntry;
use super::dealing::Dealing;
use super::placing::choose;
use super::shape::{Capacity, Shape};
use crate::limits::{BUCKET_BYTES, BUCKETS_CLEARED_MAX, EXPECTED_AHEAD_MAX, FULL_PERCENT, SAME_HASH_MAX};
use granary_log::prefetch::prefetch;

/// The block of each entry of one shard.
///
/// Invariants, checked by `validate`:
/// 1. `len` is the number of entries of all buckets.
/// 2. Every entry lies in the home bucket of its hash or, with its "other" bit set, in the other one.
/// 3. Every block number is below the number of blocks.
/// 4. `found_marks` is the number of entries marked as found.
pub(crate) struct Table {
    capacity: Capacity,
    shape: Shape,
    lines: Vec<Line>,
    len: usize,
    found_marks: usize,
    /// The bucket whose found marks are cleared next.
    hand: usize,
    /// Buckets, less than one, whose found marks are still to be cleared.
    uncleared: f64,
    /// Announced entries: when the table has to grow, it grows for all of them at once.
    coming: usize,
}

/// The fate of other entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// Entries that the new one replaced: older versions of it, as far as is known.
    pub replaced: usize,
    /// Entries that look like it and stay.
    pub look_alikes: usize,
    /// The block of an entry that left because there was no room.
    pub evicted: Option<u64>,
}

impl Table {
    pub fn new(capacity: Capacity) -> Self {
        Self::with_buckets(capacity, 1)
    }

    fn with_buckets(capacity: Capacity, buckets: usize) -> Self {
        let shape = Shape::new(&capacity, buckets);
        Self {
            capacity,
            shape,
            lines: shape.lines(),
            len: 0,
            found_marks: 0,
            hand: 0,
            uncleared: 0.0,
            coming: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn slots(&self) -> usize {
        self.shape.buckets * self.shape.slots
    }

    pub fn bytes_allocated(&self) -> usize {
        self.lines.capacity() * BUCKET_BYTES
    }

    pub fn hash_bits(&self) -> u32 {
        self.capacity.hash_bits
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// Announces that `entries` entries, new or not, will be inserted next.
    pub fn announce(&mut self, entries: usize) {
        self.coming = entries;
    }

    #[inline]
    fn line(&self, bucket: usize) -> &Line {
        &self.lines[bucket]
    }

    #[inline]
    fn line_mut(&mut self, bucket: usize) -> (&Shape, &mut Line) {
        (&self.shape, &mut self.lines[bucket])
    }

    fn take(&mut self, bucket: usize, slot: usize) {
        self.found_marks -= usize::from(self.shape.is_found(self.line(bucket), slot));
        let (shape, line) = self.line_mut(bucket);
        shape.remove(line, slot);
        self.len -= 1;
    }

    fn fill(&mut self, bucket: usize, entry: BucketEntry) {
        let (shape, line) = self.line_mut(bucket);
        shape.insert(line, entry);
        self.len += 1;
        self.found_marks += usize::from(entry.is_found);
    }

    #[inline]
    fn taken(&self, bucket: usize) -> usize {
        self.shape.taken(self.line(bucket))
    }

    /// Both buckets of a hash, home first, and its tag.
    #[inline]
    fn targets(&self, hash: u64) -> ([usize; 2], u64) {
        let (home, tag) = self.shape.home(hash);
        ([home, self.shape.other(home, tag)], tag)
    }

    /// Has the processor fetch both buckets of a hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.targets(hash).0.into_iter().for_each(|bucket| prefetch(&self.line(bucket).0));
    }

    /// Calls `visit(bucket, slot, block, is_found)` for every slot that looks like the hash's.
    #[inline]
    fn matches(&self, hash: u64, mut visit: impl FnMut(usize, usize, u64, bool)) {
        let (buckets, tag) = self.targets(hash);
        for (bucket, fingerprint) in buckets.into_iter().zip(self.shape.fingerprints(tag)) {
            self.shape.matches(self.line(bucket), fingerprint, |slot, block, is_found| {
                visit(bucket, slot, block, is_found);
            });
        }
    }

    /// Visits the blocks that may hold the entry, each with its found mark; `sets_found_marks`: sets it.
    #[inline]
    pub fn find(&mut self, hash: u64, sets_found_marks: bool, mut visit: impl FnMut(u64, bool)) {
        let mut found = [(0, 0); 4];
        let mut marked = 0;
        self.matches(hash, |bucket, slot, block, is_found| {
            visit(block, is_found);
            if !is_found && sets_found_marks && marked < found.len() {
                found[marked] = (bucket, slot);
                marked += 1;
            }
        });
        for &(bucket, slot) in &found[..marked] {
            let (shape, line) = self.line_mut(bucket);
            shape.set_found(line, slot, true);
        }
        self.found_marks += marked;
    }

    /// Clears found marks, bucket after bucket, until at most `most` are left: a clock over all entries, whose hand
    /// moves only as far as necessary.
    pub fn bound_found_marks(&mut self, most: usize) {
        while self.found_marks > most {
            self.clear_bucket_marks();
        }
    }

    /// Clears the found marks of this part of all buckets, those that the hand comes to, but of a few at most.
    pub fn clear_found_marks(&mut self, part: f64) {
        self.uncleared += part * self.shape.buckets as f64;
        (0..(self.uncleared as usize).min(BUCKETS_CLEARED_MAX)).for_each(|_| self.clear_bucket_marks());
        self.uncleared = self.uncleared.fract();
    }

    fn clear_bucket_marks(&mut self) {
        let bucket = self.hand % self.shape.buckets;
        self.hand = bucket + 1;
        for slot in 0..self.taken(bucket) {
            if self.shape.is_found(self.line(bucket), slot) {
                let (shape, line) = self.line_mut(bucket);
                shape.set_found(line, slot, false);
                self.found_marks -= 1;
            }
        }
    }

    /// Whether an entry that looks like the hash's is in a block that `is` selects.
    pub fn any(&self, hash: u64, mut is: impl FnMut(u64) -> bool) -> bool {
        let mut any = false;
        self.matches(hash, |_, _, block, _| any = any || is(block));
        any
    }

    /// The found mark of this hash's entry in `block`; `None`: there is no such entry.
    pub fn contains(&self, hash: u64, block: u64) -> Option<bool> {
        let mut mark = None;
        self.matches(hash, |_, _, at, is_found| {
            if at == block {
                mark = Some(mark.unwrap_or(false) || is_found);
            }
        });
        mark
    }

    /// Removes one entry of this hash in `block`.
    pub fn remove(&mut self, hash: u64, block: u64) -> bool {
        let mut first = true;
        self.remove_where(hash, |at| at == block && std::mem::take(&mut first)) > 0
    }

    /// Removes the entries that look like the hash's and whose block `same` selects.
    pub fn remove_where(&mut self, hash: u64, mut same: impl FnMut(u64) -> bool) -> usize {
        let mut removed = 0;
        while removed < self.slots() {
            let mut found = None;
            self.matches(hash, |bucket, slot, block, _| {
                if found.is_none() && same(block) {
                    found = Some((bucket, slot));
                }
            });
            let Some((bucket, slot)) = found else { break };
            self.take(bucket, slot);
            removed += 1;
        }
        removed
    }

    /// Removes every entry whose block is in `blocks`, by a walk through the whole table.
    pub fn remove_blocks(&mut self, blocks: &std::ops::Range<u64>) {
        for bucket in 0..self.shape.buckets {
            // From the last: those that move up have been looked at.
            for slot in (0..self.taken(bucket)).rev() {
                if blocks.contains(&self.shape.get(self.line(bucket), slot).block) {
                    self.take(bucket, slot);
                }
            }
        }
    }

    /// Moves an entry that was appended again to block `to`; `false`: it is no longer at `from`.
    pub fn relocate(&mut self, hash: u64, from: u64, to: u64) -> bool {
        let mut found = None;
        self.matches(hash, |bucket, slot, block, _| {
            if block == from {
                found = Some((bucket, slot, from));
            }
        });
        found.map(|at| self.move_to(at, to)).is_some()
    }

    /// Moves the entry of a bucket's slot, which is in block `from`, to another block; it was not found lately.
    fn move_to(&mut self, (bucket, slot, from): (usize, usize, u64), to: u64) {
        self.found_marks -= usize::from(self.shape.is_found(self.line(bucket), slot));
        let (shape, line) = self.line_mut(bucket);
        shape.relocate(line, slot, from, to);
    }

    /// Points the hash at `block`. Look-alikes that `same` does not know to be another key's are replaced, so that no
    /// older version of a key stays reachable. Without room the entry with the greatest `age` in its two buckets
    /// leaves.
    pub fn insert(
        &mut self,
        hash: u64,
        block: u64,
        mut same: impl FnMut(u64) -> bool,
        age: impl Fn(u64) -> u64,
    ) -> Inserted {
        self.coming = self.coming.saturating_sub(1);
        let mut inserted = Inserted::default();
        let (mut matching, mut last) = (0, (0, 0, 0));
        self.matches(hash, |bucket, slot, at, _| (matching, last) = (matching + 1, (bucket, slot, at)));
        match matching {
            0 => (),
            1 if same(last.2) => {
                self.move_to(last, block);
                return Inserted { replaced: 1, ..inserted };
            }
            1 => inserted.look_alikes = 1,
            _ => {
                inserted.replaced = self.remove_where(hash, &mut same);
                (inserted.look_alikes, inserted.evicted) = self.bound_same_hash(hash, &age);
            }
        }
        if self.len as u64 >= self.capacity.entries {
            inserted.evicted = self.evict(hash, &age).or(inserted.evicted);
        }
        while !self.try_insert(hash, block) {
            if (self.slots() as u64) < self.capacity.entries.saturating_mul(2) {
                // Large batches seldom come alone: there is room for the next one, too.
                let coming = self.coming + self.coming.min(EXPECTED_AHEAD_MAX);
                let coming = (coming * 100 / FULL_PERCENT).div_ceil(self.shape.slots);
                let buckets = self.shape.buckets;
                self.resize(buckets + self.capacity.growth.of(buckets).max(coming));
            } else {
                inserted.evicted = self.evict(hash, &age);
            }
        }
        inserted
    }

    /// Growth cannot separate entries of one hash, so the oldest of too many leaves. Returns their number, and the
    /// block of the one that left.
    fn bound_same_hash(&mut self, hash: u64, age: &impl Fn(u64) -> u64) -> (usize, Option<u64>) {
        let (mut entries, mut oldest) = (0, None);
        self.matches(hash, |_, _, block, _| {
            entries += 1;
            oldest = oldest.max(Some((age(block), block)));
        });
        let Some((_, block)) = oldest.filter(|_| entries >= SAME_HASH_MAX) else { return (entries, None) };
        self.remove(hash, block);
        (entries - 1, Some(block))
    }

    /// Inserts if there is room, or if moving one entry makes some.
    fn try_insert(&mut self, hash: u64, block: u64) -> bool {
        let (buckets, tag) = self.targets(hash);
        let taken = buckets.map(|bucket| self.taken(bucket));
        let Some(chosen) = choose(self.shape.slots, taken, |i| self.make_room(buckets[*i])) else {
            return false;
        };
        self.fill(buckets[chosen], BucketEntry { tag, other: chosen == 1, is_found: false, block });
        true
    }

    /// Moves one entry of a full bucket to its other bucket.
    fn make_room(&mut self, bucket: usize) -> bool {
        let entries = self.shape.entries(self.line(bucket));
        let movable = self.shape.movable(bucket, entries, |target| !self.shape.is_full(self.line(target)));
        let Some((slot, entry, target)) = movable else { return false };
        self.take(bucket, slot);
        self.fill(target, entry);
        true
    }

    /// Removes the oldest entry of the hash's two buckets or, if both are empty, of the next bucket that is not.
    fn evict(&mut self, hash: u64, age: &impl Fn(u64) -> u64) -> Option<u64> {
        let ([home, other], _) = self.targets(hash);
        let pairs = (0..self.shape.buckets).map(|i| [(home + i) % self.shape.buckets, other]);
        let (_, bucket, slot) = pairs.map(|pair| self.oldest(&pair, age)).find_map(|oldest| oldest)?;
        let block = self.shape.get(self.line(bucket), slot).block;
        self.take(bucket, slot);
        Some(block)
    }

    fn oldest(&self, buckets: &[usize], age: &impl Fn(u64) -> u64) -> Option<(u64, usize, usize)> {
        let entries =
            |bucket: usize| self.shape.entries(self.line(bucket)).map(move |(s, entry)| (bucket, s, entry));
        let entries = buckets.iter().flat_map(|bucket| entries(*bucket));
        entries.map(|(bucket, slot, entry)| (age(entry.block), bucket, slot)).max()
    }

    fn for_each(&self, mut visit: impl FnMut(u64, BucketEntry)) {
        for bucket in 0..self.shape.buckets {
            for (_, entry) in self.shape.entries(self.line(bucket)) {
                // Half of the entries are in their other bucket: which ones, no branch predictor can tell.
                let home = [bucket, self.shape.other(bucket, entry.tag)][usize::from(entry.other)];
                visit(home as u64 * self.shape.stride.get() + entry.tag, entry);
            }
        }
    }

    /// Replaces all entries by `entries`, without found marks; `parts` returns the hash and the block of one. If they
    /// are too many, the ones with the greatest `age` are left out; returns how many.
    pub fn replace_all<T>(
        &mut self,
        mut entries: &mut [T],
        parts: impl Fn(&T) -> (u64, u64),
        age: impl Fn(u64) -> u64,
    ) -> usize {
        let most = usize::try_from(self.capacity.entries).unwrap_or(usize::MAX);
        let left_out = entries.len().saturating_sub(most);
        if left_out > 0 {
            (entries, ..) = entries.select_nth_unstable_by_key(most, |entry| age(parts(entry).1));
        }
        let buckets = self.buckets_for(entries.len());
        (self.shape, self.lines) = Dealing::of(&self.capacity, buckets, |dealing| {
            entries.iter().map(&parts).all(|(hash, block)| dealing.deal(hash, false, block))
        });
        (self.len, self.found_marks, self.hand) = (entries.len(), 0, 0);
        left_out
    }

    /// The number of buckets for `entries` entries.
    fn buckets_for(&self, entries: usize) -> usize {
        let mut buckets = 1;
        for _ in 0..4 {
            // A smaller table has longer tags, hence fewer slots: settle on both.
            let slots = Shape::new(&self.capacity, buckets).slots;
            buckets = (entries * 100 / FULL_PERCENT).div_ceil(slots).max(1);
        }
        buckets
    }

    /// Redistributes all entries over `buckets` buckets, or a few more if they do not fit.
    fn resize(&mut self, buckets: usize) {
        (self.shape, self.lines) = Dealing::of(&self.capacity, buckets, |dealing| {
            let mut all = true;
            self.for_each(|hash, entry| all = all && dealing.deal(hash, entry.is_found, entry.block));
            all
        });
    }

    /// Derives everything anew and compares.
    pub fn validate(&self) {
        let (mut len, mut found_marks) = (0, 0);
        self.for_each(|hash, slot| {
            len += 1;
            found_marks += usize::from(slot.is_found);
            assert!(hash < 1 << self.capacity.hash_bits, "invariant 2: hash {hash:#x}");
            assert!(slot.block < self.capacity.blocks, "invariant 3: block {}", slot.block);
            assert!(self.contains(hash, slot.block).is_some(), "invariant 2: hash {hash:#x}");
        });
        assert_eq!(len, self.len, "invariant 1");
        assert_eq!(found_marks, self.found_marks, "invariant 4");
    }
}
