//! The algorithm of the index: a bucketised cuckoo table of bit-packed slots. Knows no lock.

use super::bucket::{Fingerprint, LINE_BYTES, Line, Slot};
use super::shape::{Capacity, Shape};
use crate::limits::{BUCKET_BYTES, EXPECTED_AHEAD_MAX, FULL_PERCENT, SAME_HASH_MAX};
use crate::prefetch::prefetch;

/// Places of one shard's entries.
///
/// Invariants, checked by `validate`:
/// 1. `len` is the number of slots that are not zero.
/// 2. Every slot lies in the home bucket of its hash or, with its "other" bit set, in the other one.
/// 3. Every place is below the number of places.
/// 4. `hot` is the number of slots marked as found.
pub(crate) struct Table {
    capacity: Capacity,
    shape: Shape,
    bytes: Vec<u8>,
    len: usize,
    hot: usize,
    /// The bucket that is cooled next.
    hand: usize,
    /// Entries that are said to come next: when the table has to grow, it grows for them at once.
    coming: usize,
}

/// What became of the entries that were in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// Places that the new entry took over: older versions of it, as far as is known.
    pub replaced: usize,
    /// Entries that look like it and stay.
    pub beside: usize,
    /// An entry that left because there was no room.
    pub evicted: Option<u64>,
}

/// A slot to be filled anew, and the bucket that its entry is in now.
struct Made {
    slot: usize,
    target: usize,
}

impl Table {
    pub fn new(capacity: Capacity) -> Self {
        Self::with_buckets(capacity, 1)
    }

    fn with_buckets(capacity: Capacity, buckets: usize) -> Self {
        let shape = Shape::new(&capacity, buckets);
        Self { capacity, shape, bytes: vec![0; shape.bytes()], len: 0, hot: 0, hand: 0, coming: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn slots(&self) -> usize {
        self.shape.buckets * self.shape.slots
    }

    pub fn bytes_allocated(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn hash_bits(&self) -> u32 {
        self.capacity.hash_bits
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// So many entries come next, new ones or not.
    pub fn expect(&mut self, entries: usize) {
        self.coming = entries;
    }

    #[inline]
    fn line(&self, bucket: usize) -> &Line {
        let at = bucket * BUCKET_BYTES;
        (&self.bytes[at..at + LINE_BYTES]).try_into().expect("sizes agree")
    }

    #[inline]
    fn line_mut(&mut self, bucket: usize) -> (&Shape, &mut Line) {
        let at = bucket * BUCKET_BYTES;
        let line = &mut self.bytes[at..at + LINE_BYTES];
        (&self.shape, line.try_into().expect("sizes agree"))
    }

    #[inline]
    fn get(&self, bucket: usize, slot: usize) -> Option<Slot> {
        self.shape.get(self.line(bucket), slot)
    }

    fn take(&mut self, bucket: usize, slot: usize) {
        let (_, recent) = self.shape.place(self.line(bucket), slot);
        self.hot -= usize::from(recent);
        let (shape, line) = self.line_mut(bucket);
        shape.remove(line, slot);
        self.len -= 1;
    }

    fn fill(&mut self, bucket: usize, slot: usize, entry: Slot) {
        let (shape, line) = self.line_mut(bucket);
        shape.set(line, slot, entry);
        self.len += 1;
        self.hot += usize::from(entry.recent);
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
        self.targets(hash).0.into_iter().for_each(|bucket| prefetch(self.line(bucket)));
    }

    /// Calls `visit(bucket, slot, place, recent)` for every slot that looks like the hash's.
    #[inline]
    fn matches(&self, hash: u64, mut visit: impl FnMut(usize, usize, u64, bool)) {
        let (buckets, tag) = self.targets(hash);
        for (other, bucket) in buckets.into_iter().enumerate() {
            let line = self.line(bucket);
            self.shape.matches(line, Fingerprint::new(tag, other == 1), |slot| {
                let (place, recent) = self.shape.place(line, slot);
                visit(bucket, slot, place, recent);
            });
        }
    }

    /// The places that may hold the entry, each with whether it was found lately; marks them as found.
    #[inline]
    pub fn find(&mut self, hash: u64, mut visit: impl FnMut(u64, bool)) {
        let mut marks = [(0, 0, 0); 4];
        let mut marked = 0;
        self.matches(hash, |bucket, slot, place, recent| {
            visit(place, recent);
            if !recent && marked < marks.len() {
                marks[marked] = (bucket, slot, place);
                marked += 1;
            }
        });
        for &(bucket, slot, place) in &marks[..marked] {
            let (shape, line) = self.line_mut(bucket);
            shape.set_place(line, slot, place, true);
        }
        self.hot += marked;
    }

    /// Forgets that entries were found, bucket after bucket, until no more than `most` are marked: a
    /// clock over all entries, whose hand moves only as far as it must.
    pub fn cool(&mut self, most: usize) {
        while self.hot > most {
            let bucket = self.hand % self.shape.buckets;
            self.hand = bucket + 1;
            for slot in 0..self.taken(bucket) {
                let (place, recent) = self.shape.place(self.line(bucket), slot);
                if recent {
                    let (shape, line) = self.line_mut(bucket);
                    shape.set_place(line, slot, place, false);
                    self.hot -= 1;
                }
            }
        }
    }

    /// Whether an entry that looks like the hash's is at a place of which `is` says so.
    pub fn any(&self, hash: u64, mut is: impl FnMut(u64) -> bool) -> bool {
        let mut any = false;
        self.matches(hash, |_, _, place, _| any = any || is(place));
        any
    }

    /// Whether an entry of this hash is at `place`; if so, whether it was found lately.
    pub fn contains(&self, hash: u64, place: u64) -> Option<bool> {
        let mut recent = None;
        self.matches(hash, |_, _, at, lately| {
            if at == place {
                recent = Some(recent.unwrap_or(false) || lately);
            }
        });
        recent
    }

    /// Removes one entry of this hash at `place`.
    pub fn remove(&mut self, hash: u64, place: u64) -> bool {
        let mut first = true;
        self.remove_where(hash, |at| at == place && std::mem::take(&mut first)) > 0
    }

    /// Removes the entries that look like the hash's and whose place `same` says is its.
    pub fn remove_where(&mut self, hash: u64, mut same: impl FnMut(u64) -> bool) -> usize {
        let mut removed = 0;
        while removed < self.slots() {
            let mut found = None;
            self.matches(hash, |bucket, slot, place, _| {
                if found.is_none() && same(place) {
                    found = Some((bucket, slot));
                }
            });
            let Some((bucket, slot)) = found else { break };
            self.take(bucket, slot);
            removed += 1;
        }
        removed
    }

    /// Drops every entry whose place is in `blocks`: a walk through the whole table.
    pub fn remove_places(&mut self, blocks: &std::ops::Range<u64>) {
        for bucket in 0..self.shape.buckets {
            // From the last: what takes a slot over has been looked at.
            for slot in (0..self.taken(bucket)).rev() {
                if self.get(bucket, slot).is_some_and(|entry| blocks.contains(&entry.place)) {
                    self.take(bucket, slot);
                }
            }
        }
    }

    /// Moves an entry that is being appended again; `false`: it is no longer at `from`.
    pub fn relocate(&mut self, hash: u64, from: u64, to: u64) -> bool {
        let mut found = None;
        self.matches(hash, |bucket, slot, place, recent| {
            if place == from {
                found = Some((bucket, slot, recent));
            }
        });
        let Some((bucket, slot, recent)) = found else { return false };
        self.hot -= usize::from(recent);
        let (shape, line) = self.line_mut(bucket);
        shape.set_place(line, slot, to, false);
        true
    }

    /// Points the hash at `place`. Whatever looks like it and is not known to be another key
    /// (`same`) is taken over, so that no older version of a key stays reachable. Without room the
    /// entry with the greatest `age` in its two buckets leaves.
    pub fn insert(
        &mut self,
        hash: u64,
        place: u64,
        mut same: impl FnMut(u64) -> bool,
        age: impl Fn(u64) -> u64,
    ) -> Inserted {
        self.coming = self.coming.saturating_sub(1);
        let mut inserted = Inserted::default();
        let mut matching = false;
        self.matches(hash, |_, _, _, _| matching = true);
        if matching {
            inserted.replaced = self.remove_where(hash, &mut same);
            (inserted.beside, inserted.evicted) = self.bound_same_hash(hash, &age);
        }
        if self.len as u64 >= self.capacity.entries {
            inserted.evicted = self.evict(hash, &age).or(inserted.evicted);
        }
        while !self.try_insert(hash, place, false) {
            if (self.slots() as u64) < self.capacity.entries.saturating_mul(2) {
                // A large batch seldom comes alone: the next one finds room, too.
                let coming = self.coming + self.coming.min(EXPECTED_AHEAD_MAX);
                let coming = (coming * 100 / FULL_PERCENT).div_ceil(self.shape.slots);
                self.resize(
                    self.shape.buckets
                        + (self.shape.buckets / self.capacity.growth.divisor()).max(1).max(coming),
                );
            } else {
                inserted.evicted = self.evict(hash, &age);
            }
        }
        inserted
    }

    /// No growth parts entries of one hash, so the oldest of too many leaves. Returns how many there are, and the place
    /// of the one that left.
    fn bound_same_hash(&mut self, hash: u64, age: &impl Fn(u64) -> u64) -> (usize, Option<u64>) {
        let (mut entries, mut oldest) = (0, None);
        self.matches(hash, |_, _, place, _| {
            entries += 1;
            oldest = oldest.max(Some((age(place), place)));
        });
        let Some((_, place)) = oldest.filter(|_| entries >= SAME_HASH_MAX) else { return (entries, None) };
        self.remove(hash, place);
        (entries - 1, Some(place))
    }

    /// Inserts where there is room or where moving one entry makes some.
    fn try_insert(&mut self, hash: u64, place: u64, recent: bool) -> bool {
        let (buckets, tag) = self.targets(hash);
        let taken = buckets.map(|bucket| self.taken(bucket));
        let other = taken[1] < taken[0];
        let (other, slot) = if taken[usize::from(other)] < self.shape.slots {
            (other, taken[usize::from(other)])
        } else {
            let made = (0..2).find_map(|i| Some((i == 1, self.make_room(buckets[i])?.slot)));
            let Some(made) = made else { return false };
            made
        };
        self.fill(buckets[usize::from(other)], slot, Slot { tag, other, recent, place });
        true
    }

    /// Moves one entry of a full bucket to its other bucket. The caller fills its slot.
    fn make_room(&mut self, bucket: usize) -> Option<Made> {
        for slot in 0..self.shape.slots {
            let Some(moved) = self.get(bucket, slot) else { break };
            let target = self.shape.other(bucket, moved.tag);
            if target != bucket && !self.shape.is_full(self.line(target)) {
                self.fill(target, self.taken(target), Slot { other: !moved.other, ..moved });
                self.len -= 1;
                self.hot -= usize::from(moved.recent);
                return Some(Made { slot, target });
            }
        }
        None
    }

    /// Takes out the oldest entry of the hash's two buckets or, where both are empty, of the next that is not.
    fn evict(&mut self, hash: u64, age: &impl Fn(u64) -> u64) -> Option<u64> {
        let ([home, other], _) = self.targets(hash);
        let pairs = (0..self.shape.buckets).map(|i| [(home + i) % self.shape.buckets, other]);
        let (_, bucket, slot) = pairs.map(|pair| self.oldest(&pair, age)).find_map(|oldest| oldest)?;
        let (place, _) = self.shape.place(self.line(bucket), slot);
        self.take(bucket, slot);
        Some(place)
    }

    fn oldest(&self, buckets: &[usize], age: &impl Fn(u64) -> u64) -> Option<(u64, usize, usize)> {
        let slots = buckets.iter().flat_map(|bucket| (0..self.shape.slots).map(|slot| (*bucket, slot)));
        slots.filter_map(|(b, s)| Some((age(self.get(b, s)?.place), b, s))).max()
    }

    fn for_each(&self, mut visit: impl FnMut(u64, Slot)) {
        for bucket in 0..self.shape.buckets {
            let line = self.line(bucket);
            for entry in (0..self.shape.slots).map_while(|slot| self.shape.get(line, slot)) {
                let home = if entry.other { self.shape.other(bucket, entry.tag) } else { bucket };
                visit(home as u64 * self.shape.stride + entry.tag, entry);
            }
        }
    }

    /// Makes room for about `entries` entries, or gives up what they do not need.
    pub fn resize_for(&mut self, entries: usize) {
        let mut buckets = 1;
        for _ in 0..4 {
            // A smaller table has longer tags, hence fewer slots: settle on both.
            let slots = Shape::new(&self.capacity, buckets).slots;
            buckets = (entries * 100 / FULL_PERCENT).div_ceil(slots).max(1);
        }
        self.resize(buckets);
    }

    /// Deals all entries out again over so many buckets, or a few more if they do not fit.
    fn resize(&mut self, mut buckets: usize) {
        loop {
            let mut resized = Self::with_buckets(self.capacity, buckets);
            // How many slots of each bucket are taken: the first ones.
            let mut taken = vec![0u8; buckets];
            let mut all = true;
            self.for_each(|hash, slot| all = all && resized.deal(hash, slot, &mut taken));
            if all {
                (resized.coming, resized.hand) = (self.coming, self.hand);
                *self = resized;
                return;
            }
            buckets += (buckets / 64).max(1);
        }
    }

    fn deal(&mut self, hash: u64, slot: Slot, taken: &mut [u8]) -> bool {
        let (home, tag) = self.shape.home(hash);
        let buckets = [home, self.shape.other(home, tag)];
        let other = taken[buckets[1]] < taken[home];
        let bucket = buckets[usize::from(other)];
        if usize::from(taken[bucket]) < self.shape.slots {
            self.fill(bucket, usize::from(taken[bucket]), Slot { tag, other, ..slot });
            taken[bucket] += 1;
            return true;
        }
        let Some((i, made)) = (0..2).find_map(|i| Some((i, self.make_room(buckets[i])?))) else {
            return false;
        };
        self.fill(buckets[i], made.slot, Slot { tag, other: i == 1, ..slot });
        taken[made.target] += 1;
        true
    }

    /// Derives everything anew and compares.
    pub fn validate(&self) {
        let (mut len, mut hot) = (0, 0);
        self.for_each(|hash, slot| {
            len += 1;
            hot += usize::from(slot.recent);
            assert!(hash < 1 << self.capacity.hash_bits, "invariant 2: hash {hash:#x}");
            assert!(slot.place < self.capacity.places, "invariant 3: place {}", slot.place);
            assert!(self.contains(hash, slot.place).is_some(), "invariant 2: hash {hash:#x}");
        });
        assert_eq!(len, self.len, "invariant 1");
        assert_eq!(hot, self.hot, "invariant 4");
    }
}
