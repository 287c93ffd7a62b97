//! The algorithm of the index: a bucketised cuckoo table of bit-packed slots. Knows no lock.

use super::shape::{Capacity, Shape};
use crate::limits::{BUCKET_BYTES, GROWTH_DIVISOR, SAME_HASH_MAX};

/// Places of one shard's entries.
///
/// Invariants, checked by `validate`:
/// 1. `len` is the number of slots that are not zero.
/// 2. Every slot lies in the home bucket of its hash or, with its "other" bit set, in the other one.
/// 3. Every place is below the number of places.
pub(crate) struct Table {
    capacity: Capacity,
    shape: Shape,
    bytes: Vec<u8>,
    len: usize,
}

/// What became of the entries that were in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// Places that the new entry took over: older versions of it, as far as is known.
    pub replaced: usize,
    /// An entry that left because there was no room.
    pub evicted: Option<u64>,
}

const LINE_BYTES: usize = BUCKET_BYTES + 8;

/// The 57 or more bits that begin at `bit`, which lies in the bucket.
#[inline]
fn load(line: &[u8; LINE_BYTES], bit: usize) -> u64 {
    // The mask says what is so anyway, for the compiler.
    let at = (bit / 8) & (BUCKET_BYTES - 1);
    u64::from_le_bytes(line[at..at + 8].try_into().expect("8 bytes")) >> (bit % 8)
}

/// Bit masks over the slots of a bucket.
#[derive(Clone, Copy)]
struct Scan {
    free: u64,
    matching: u64,
}

/// Whether the other bucket has more free slots than the home bucket; `None`: neither has any.
fn roomier([home, other]: [u64; 2]) -> Option<bool> {
    (home | other != 0).then(|| other.count_ones() > home.count_ones())
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot {
    tag: u64,
    other: bool,
    recent: bool,
    place: u64,
}

impl Table {
    pub fn new(capacity: Capacity) -> Self {
        let shape = Shape::new(&capacity, Shape::buckets_min(&capacity));
        Self { capacity, shape, bytes: vec![0; shape.bytes()], len: 0 }
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

    /// A bucket and the 8 bytes after it, which a load of its last slot may touch.
    #[inline]
    fn line(&self, bucket: usize) -> &[u8; LINE_BYTES] {
        let at = bucket * BUCKET_BYTES;
        (&self.bytes[at..at + LINE_BYTES]).try_into().expect("sizes agree")
    }

    #[inline]
    fn load(&self, bucket: usize, slot: usize) -> u64 {
        load(self.line(bucket), slot * self.shape.slot_bits as usize) & self.shape.slot_mask()
    }

    fn store(&mut self, bucket: usize, slot: usize, value: u64) {
        let bit = slot * self.shape.slot_bits as usize;
        let at = bucket * BUCKET_BYTES + bit / 8;
        let bytes: &mut [u8; 8] = (&mut self.bytes[at..at + 8]).try_into().expect("8 bytes");
        let mask = self.shape.slot_mask() << (bit % 8);
        *bytes = (u64::from_le_bytes(*bytes) & !mask | value << (bit % 8)).to_le_bytes();
    }

    #[inline]
    fn parse(&self, value: u64) -> Slot {
        let bits = self.shape.place_bits;
        Slot {
            place: (value & ((1 << bits) - 1)) - 1,
            recent: value >> bits & 1 == 1,
            other: value >> (bits + 1) & 1 == 1,
            tag: value >> (bits + 2),
        }
    }

    fn pack(&self, slot: Slot) -> u64 {
        let bits = self.shape.place_bits;
        slot.tag << (bits + 2)
            | u64::from(slot.other) << (bits + 1)
            | u64::from(slot.recent) << bits
            | (slot.place + 1)
    }

    /// (bucket, what the top of a matching slot is) for both buckets of a hash.
    #[inline]
    fn targets(&self, hash: u64) -> [(usize, u64); 2] {
        let (home, tag) = self.shape.home(hash);
        [(home, tag << 1), (self.shape.other(home, tag), tag << 1 | 1)]
    }

    /// Calls `visit(bucket, slot, value)` for every slot that looks like the hash's.
    #[inline]
    fn matches(&self, hash: u64, mut visit: impl FnMut(usize, usize, u64)) {
        for (bucket, top) in self.targets(hash) {
            let mut matching = self.scan(bucket, top).matching;
            while matching != 0 {
                let slot = matching.trailing_zeros() as usize;
                visit(bucket, slot, self.load(bucket, slot));
                matching &= matching - 1;
            }
        }
    }

    /// The places that may hold the entry, each with whether it was found lately; marks them as found.
    #[inline]
    pub fn find(&mut self, hash: u64, mut visit: impl FnMut(u64, bool)) {
        let mut marks = [(0, 0, 0); 4];
        let mut marked = 0;
        self.matches(hash, |bucket, slot, value| {
            let found = self.parse(value);
            visit(found.place, found.recent);
            if !found.recent && marked < marks.len() {
                marks[marked] = (bucket, slot, value | 1 << self.shape.place_bits);
                marked += 1;
            }
        });
        for (bucket, slot, value) in &marks[..marked] {
            self.store(*bucket, *slot, *value);
        }
    }

    /// Whether an entry of this hash is at `place`; if so, whether it was found lately.
    pub fn contains(&self, hash: u64, place: u64) -> Option<bool> {
        let mut recent = None;
        self.matches(hash, |_, _, value| {
            let found = self.parse(value);
            if found.place == place {
                recent = Some(recent.unwrap_or(false) || found.recent);
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
            self.matches(hash, |bucket, slot, value| {
                if found.is_none() && same(self.parse(value).place) {
                    found = Some((bucket, slot));
                }
            });
            let Some((bucket, slot)) = found else { break };
            self.store(bucket, slot, 0);
            self.len -= 1;
            removed += 1;
        }
        removed
    }

    /// Drops every entry whose place is in `blocks`: a walk through the whole table.
    pub fn remove_places(&mut self, blocks: &std::ops::Range<u64>) {
        for bucket in 0..self.shape.buckets {
            for slot in 0..self.shape.slots {
                let value = self.load(bucket, slot);
                if value != 0 && blocks.contains(&self.parse(value).place) {
                    self.store(bucket, slot, 0);
                    self.len -= 1;
                }
            }
        }
    }

    /// Moves an entry that is being appended again; `false`: it is no longer at `from`.
    pub fn relocate(&mut self, hash: u64, from: u64, to: u64) -> bool {
        let mut found = None;
        self.matches(hash, |bucket, slot, value| {
            if self.parse(value).place == from {
                found = Some((bucket, slot, value));
            }
        });
        let Some((bucket, slot, value)) = found else { return false };
        let moved = Slot { place: to, recent: false, ..self.parse(value) };
        self.store(bucket, slot, self.pack(moved));
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
        let mut inserted = Inserted::default();
        let targets = self.targets(hash);
        let scans = targets.map(|(bucket, top)| self.scan(bucket, top));
        if scans[0].matching | scans[1].matching != 0 {
            inserted.replaced = self.remove_where(hash, &mut same);
            inserted.evicted = self.bound_same_hash(hash, &age);
        } else if (self.len as u64) < self.capacity.entries
            && let Some(other) = roomier(scans.map(|scan| scan.free))
        {
            let slot = scans[usize::from(other)].free.trailing_zeros() as usize;
            let tag = targets[0].1 >> 1;
            self.fill(targets[usize::from(other)].0, slot, Slot { tag, other, recent: false, place });
            return inserted;
        }
        if self.len as u64 >= self.capacity.entries {
            inserted.evicted = self.evict(hash, &age).or(inserted.evicted);
        }
        while !self.try_insert(hash, place, false) {
            if (self.slots() as u64) < self.capacity.entries.saturating_mul(2) {
                self.resize(self.shape.buckets + (self.shape.buckets / GROWTH_DIVISOR).max(1));
            } else {
                inserted.evicted = self.evict(hash, &age);
            }
        }
        inserted
    }

    /// No growth parts entries of one hash, so the oldest of too many leaves.
    fn bound_same_hash(&mut self, hash: u64, age: &impl Fn(u64) -> u64) -> Option<u64> {
        let (mut entries, mut oldest) = (0, None);
        self.matches(hash, |_, _, value| {
            let place = self.parse(value).place;
            entries += 1;
            oldest = oldest.max(Some((age(place), place)));
        });
        let (_, place) = oldest.filter(|_| entries >= SAME_HASH_MAX)?;
        self.remove(hash, place);
        Some(place)
    }

    fn fill(&mut self, bucket: usize, slot: usize, value: Slot) {
        let value = self.pack(value);
        self.store(bucket, slot, value);
        self.len += 1;
    }

    /// Which slots of a bucket are free, and which begin with `top`.
    #[inline]
    fn scan(&self, bucket: usize, top: u64) -> Scan {
        let line = self.line(bucket);
        let (shift, mask) = (self.shape.place_bits + 1, self.shape.slot_mask());
        let mut scan = Scan { free: 0, matching: 0 };
        let mut bit = 0;
        for slot in 0..self.shape.slots {
            let value = load(line, bit) & mask;
            scan.free |= u64::from(value == 0) << slot;
            scan.matching |= u64::from(value >> shift == top) << slot;
            bit += self.shape.slot_bits as usize;
        }
        // An empty slot looks like tag 0.
        scan.matching &= !scan.free;
        scan
    }

    fn free(&self, bucket: usize) -> u64 {
        self.scan(bucket, u64::MAX).free
    }

    /// Inserts where there is room or where moving one entry makes some.
    fn try_insert(&mut self, hash: u64, place: u64, recent: bool) -> bool {
        let tag = self.shape.home(hash).1;
        let buckets = self.targets(hash).map(|(bucket, _)| bucket);
        let other = roomier(buckets.map(|bucket| self.free(bucket)));
        let other =
            other.or_else(|| buckets.iter().position(|b| self.make_room(*b).is_some()).map(|i| i == 1));
        let Some(other) = other else { return false };
        let bucket = buckets[usize::from(other)];
        let slot = self.free(bucket).trailing_zeros() as usize;
        self.fill(bucket, slot, Slot { tag, other, recent, place });
        true
    }

    /// Moves one entry of a full bucket to its other bucket; says which.
    fn make_room(&mut self, bucket: usize) -> Option<usize> {
        for slot in 0..self.shape.slots {
            let moved = self.parse(self.load(bucket, slot));
            let target = self.shape.other(bucket, moved.tag);
            let free = if target == bucket { 0 } else { self.free(target) };
            if free != 0 {
                let value = self.pack(Slot { other: !moved.other, ..moved });
                self.store(target, free.trailing_zeros() as usize, value);
                self.store(bucket, slot, 0);
                return Some(target);
            }
        }
        None
    }

    /// Takes out the oldest entry of the hash's two buckets or, where both are empty, of the next that is not.
    fn evict(&mut self, hash: u64, age: &impl Fn(u64) -> u64) -> Option<u64> {
        let [(home, _), (other, _)] = self.targets(hash);
        let pairs = (0..self.shape.buckets).map(|i| [(home + i) % self.shape.buckets, other]);
        let (_, bucket, slot) = pairs.map(|pair| self.oldest(&pair, age)).find_map(|oldest| oldest)?;
        let place = self.parse(self.load(bucket, slot)).place;
        self.store(bucket, slot, 0);
        self.len -= 1;
        Some(place)
    }

    fn oldest(&self, buckets: &[usize], age: &impl Fn(u64) -> u64) -> Option<(u64, usize, usize)> {
        let slots = buckets.iter().flat_map(|bucket| (0..self.shape.slots).map(|slot| (*bucket, slot)));
        let taken = slots.map(|(b, s)| (self.load(b, s), b, s)).filter(|(value, ..)| *value != 0);
        taken.map(|(value, b, s)| (age(self.parse(value).place), b, s)).max()
    }

    fn for_each(&self, mut visit: impl FnMut(u64, Slot)) {
        for bucket in 0..self.shape.buckets {
            for slot in 0..self.shape.slots {
                let value = self.load(bucket, slot);
                if value != 0 {
                    let slot = self.parse(value);
                    let home = if slot.other { self.shape.other(bucket, slot.tag) } else { bucket };
                    visit(home as u64 * self.shape.stride + slot.tag, slot);
                }
            }
        }
    }

    /// Makes room for about `entries` entries, or gives up what they do not need.
    pub fn resize_for(&mut self, entries: usize) {
        let least = Shape::buckets_min(&self.capacity);
        let mut buckets = least;
        for _ in 0..4 {
            // A smaller table has longer tags, hence fewer slots: settle on both.
            let slots = Shape::new(&self.capacity, buckets).slots;
            buckets = (entries * 100 / 95).div_ceil(slots).max(least);
        }
        self.resize(buckets);
    }

    /// Deals all entries out again over so many buckets, or a few more if they do not fit.
    fn resize(&mut self, mut buckets: usize) {
        loop {
            let shape = Shape::new(&self.capacity, buckets);
            let mut resized = Self { capacity: self.capacity, shape, bytes: vec![0; shape.bytes()], len: 0 };
            // How many slots of each bucket are taken: the first ones.
            let mut taken = vec![0u8; buckets];
            let mut all = true;
            self.for_each(|hash, slot| all = all && resized.deal(hash, slot, &mut taken));
            if all {
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
        let Some((i, target)) = (0..2).find_map(|i| Some((i, self.make_room(buckets[i])?))) else {
            return false;
        };
        let free = self.free(buckets[i]).trailing_zeros() as usize;
        self.fill(buckets[i], free, Slot { tag, other: i == 1, ..slot });
        taken[target] += 1;
        true
    }

    /// Derives everything anew and compares.
    pub fn validate(&self) {
        let mut len = 0;
        self.for_each(|hash, slot| {
            len += 1;
            assert!(hash < 1 << self.capacity.hash_bits, "invariant 2: hash {hash:#x}");
            assert!(slot.place < self.capacity.places, "invariant 3: place {}", slot.place);
            assert!(self.contains(hash, slot.place).is_some(), "invariant 2: hash {hash:#x}");
        });
        assert_eq!(len, self.len, "invariant 1");
    }
}
