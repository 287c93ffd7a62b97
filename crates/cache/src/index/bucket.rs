//! The bits of one bucket: how many entries each group has, in unary, then a field for each entry, group after group.
//!
//! A group has the entries whose fingerprints have the same quotient, so that the quotient is not kept with each entry:
//! it costs one bit for each entry and one for each group. Groups are written as a one for each entry and a zero at the
//! end.

use super::bits::{Line, close_gap, load, low_bits, open_gap, store};
use super::shape::{GROUPS_MAX, SLOTS_MAX, Shape};
use crate::limits::BUCKET_BYTES;

/// An entry of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketEntry {
    pub tag: u64,
    /// The entry is in the other one of its two buckets, not in its home bucket.
    pub other: bool,
    /// The entry was found lately.
    pub is_found: bool,
    pub block: u64,
}

/// The group and the field bits that entries of one fingerprint share.
#[derive(Clone, Copy)]
pub(super) struct Fingerprint {
    group: usize,
    /// The field of an entry in block 0 that was not found lately.
    least: u64,
}

impl Shape {
    #[inline]
    fn fingerprint(&self, tag: u64, other: bool) -> Fingerprint {
        let (group, rest) = self.rests.divide(tag << 1 | u64::from(other));
        Fingerprint { group: group as usize, least: (rest * self.blocks.get()) << 1 }
    }

    /// The fingerprints of a tag in its home bucket and in its other one, by one division.
    #[inline]
    pub fn fingerprints(&self, tag: u64) -> [Fingerprint; 2] {
        let home = self.fingerprint(tag, false);
        let least = home.least + (self.blocks.get() << 1);
        let is_next_group = least == self.group_size.get() << 1;
        let group = home.group + usize::from(is_next_group);
        [home, Fingerprint { group, least: if is_next_group { 0 } else { least } }]
    }

    /// The entry as a number, by which a bucket is ordered.
    pub fn number(&self, entry: BucketEntry) -> u64 {
        let fingerprint = entry.tag << 1 | u64::from(entry.other);
        (fingerprint * self.blocks.get() + entry.block) << 1 | u64::from(entry.is_found)
    }

    /// The entry that has this number.
    pub fn entry(&self, number: u64) -> BucketEntry {
        let (fingerprint, block) = self.blocks.divide(number >> 1);
        BucketEntry { tag: fingerprint >> 1, other: fingerprint & 1 == 1, is_found: number & 1 == 1, block }
    }

    /// The number of entries of each group, in unary.
    #[inline]
    fn groups(&self, line: &Line) -> u64 {
        load(line, 0) & self.groups_mask
    }

    fn set_groups(&self, line: &mut Line, groups: u64) {
        store(line, 0, self.groups_mask, groups);
    }

    /// The first slot of a group, and the number of its slots.
    #[inline]
    fn slots_of(&self, line: &Line, group: usize) -> (usize, usize) {
        let groups = self.groups(line);
        // After the zero that ends the group before it.
        let begin = if group == 0 { 0 } else { self.select.find(!groups, group - 1) + 1 };
        (begin - group, (groups >> begin).trailing_ones() as usize)
    }

    #[inline]
    fn field_at(&self, slot: usize) -> usize {
        self.groups_bits + slot * self.field_bits as usize
    }

    #[inline]
    fn field(&self, line: &Line, slot: usize) -> u64 {
        load(line, self.field_at(slot)) & self.field_mask
    }

    #[inline]
    fn set_field(&self, line: &mut Line, slot: usize, field: u64) {
        store(line, self.field_at(slot), self.field_mask, field);
    }

    /// Calls `visit(slot, block, is_found)` for each entry that has this fingerprint.
    #[inline]
    pub fn matches(
        &self,
        line: &Line,
        Fingerprint { group, least }: Fingerprint,
        mut visit: impl FnMut(usize, u64, bool),
    ) {
        let (first, slots) = self.slots_of(line, group);
        let block = |slot: usize| self.field(line, slot).wrapping_sub(least) >> 1;
        let looks_alike = |i: usize| u64::from(block(first + i) < self.blocks.get()) << i;
        // Most groups have at most two entries: these cases take no branch.
        let mut alike = (looks_alike(0) | looks_alike(1)) & low_bits(slots.min(2));
        for i in 2..slots {
            alike |= looks_alike(i);
        }
        while alike != 0 {
            let slot = first + alike.trailing_zeros() as usize;
            visit(slot, block(slot), self.is_found(line, slot));
            alike &= alike - 1;
        }
    }

    /// The number of the bucket's entries.
    #[inline]
    pub fn taken(&self, line: &Line) -> usize {
        self.groups(line).count_ones() as usize
    }

    #[inline]
    pub fn is_full(&self, line: &Line) -> bool {
        self.taken(line) == self.slots
    }

    /// The slots of the bucket with their entries.
    pub fn entries<'a>(&'a self, line: &'a Line) -> impl Iterator<Item = (usize, BucketEntry)> + 'a {
        let mut groups = self.groups(line);
        (0..self.taken(line)).map(move |slot| {
            let group = groups.trailing_zeros() as usize - slot;
            groups &= groups - 1;
            (slot, self.decode(group, self.field(line, slot)))
        })
    }

    /// The entry in a taken slot.
    pub fn get(&self, line: &Line, slot: usize) -> BucketEntry {
        let group = self.select.find(self.groups(line), slot) - slot;
        self.decode(group, self.field(line, slot))
    }

    fn decode(&self, group: usize, field: u64) -> BucketEntry {
        self.entry(field + group as u64 * (self.group_size.get() << 1))
    }

    /// Whether the entry of a slot was found lately.
    #[inline]
    pub fn is_found(&self, line: &Line, slot: usize) -> bool {
        self.field(line, slot) & 1 == 1
    }

    #[inline]
    pub fn set_found(&self, line: &mut Line, slot: usize, is_found: bool) {
        store(line, self.field_at(slot), 1, u64::from(is_found));
    }

    /// Moves the entry of a slot from one block to another; it was not found lately.
    pub fn relocate(&self, line: &mut Line, slot: usize, from: u64, to: u64) {
        let least = (self.field(line, slot) >> 1) - from;
        self.set_field(line, slot, (least + to) << 1);
    }

    /// Inserts an entry as the last of its group. The bucket must not be full.
    pub fn insert(&self, line: &mut Line, entry: BucketEntry) {
        let Fingerprint { group, least } = self.fingerprint(entry.tag, entry.other);
        let (first, slots) = self.slots_of(line, group);
        let slot = first + slots;
        let (groups, bit) = (self.groups(line), slot + group);
        open_gap(line, self.field_at(slot), self.field_bits);
        let below = groups & low_bits(bit);
        self.set_groups(line, below | 1 << bit | (groups ^ below) << 1);
        self.set_field(line, slot, least + (entry.block << 1 | u64::from(entry.is_found)));
    }

    /// Removes an entry; those after it move up.
    pub fn remove(&self, line: &mut Line, slot: usize) {
        let groups = self.groups(line);
        let bit = self.select.find(groups, slot);
        close_gap(line, self.field_at(slot), self.field_bits);
        let below = groups & low_bits(bit);
        self.set_groups(line, below | (groups ^ below ^ (1 << bit)) >> 1);
    }

    /// Writes a bucket of the entries with these numbers, in any order.
    pub fn write(&self, line: &mut Line, numbers: &[u64]) {
        // Where the next entry of each group goes: first, how many the group before has.
        let mut next = [0u8; GROUPS_MAX + 1];
        let mut groups = [(0u8, 0u64); SLOTS_MAX];
        for (number, group) in numbers.iter().zip(&mut groups) {
            let (quotient, rest) = self.group_size.divide(number >> 1);
            *group = (quotient as u8, rest << 1 | number & 1);
            next[quotient as usize + 1] += 1;
        }
        for group in 1..GROUPS_MAX {
            next[group] += next[group - 1];
        }
        let mut words = [0u64; BUCKET_BYTES / 8 + 1];
        for (group, field) in &groups[..numbers.len()] {
            let group = usize::from(*group);
            let slot = usize::from(next[group]);
            next[group] += 1;
            words[0] |= 1 << (slot + group);
            let bit = self.field_at(slot);
            words[bit / 64] |= field << (bit % 64);
            // The bits that go beyond that word, if any.
            words[bit / 64 + 1] |= field >> 1 >> (63 - bit % 64);
        }
        for (bytes, word) in line.0.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Capacity, Growth};

    /// The entries in the order of a bucket's fields: by group, and within a group in the order of insertion.
    fn sorted(shape: &Shape, model: &[BucketEntry]) -> Vec<BucketEntry> {
        let mut sorted = model.to_vec();
        sorted.sort_by_key(|entry| shape.fingerprint(entry.tag, entry.other).group);
        sorted
    }

    #[test]
    fn slots_do_not_touch_each_other() {
        for (blocks, hash_bits, buckets) in [
            (1 << 18, 24, 1000),
            (98_303, 26, 6177),
            (3, 12, 1),
            (2, 1, 2),
            (1 << 34, 40, 7),
            (1 << 40, 41, 1),
        ] {
            let capacity = Capacity { blocks, entries: u64::MAX, hash_bits, growth: Growth::Quick };
            let shape = Shape::new(&capacity, buckets);
            let mut line = Line([0; BUCKET_BYTES]);
            let mut random = 5u64;
            let mut model: Vec<BucketEntry> = Vec::new();
            let mut full = 0;
            for _ in 0..5000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let stride = shape.stride.get();
                let entry = BucketEntry {
                    // Including the ends of the range.
                    tag: [(random >> 8) % stride, 0, stride - 1][(random >> 30) as usize % 3],
                    other: random >> 1 & 1 == 1,
                    is_found: random >> 2 & 1 == 1,
                    block: [(random >> 16) % blocks, blocks - 1, 0][(random >> 34) as usize % 3],
                };
                let slot = (random >> 40) as usize;
                if model.len() < shape.slots && random >> 60 < 10 {
                    shape.insert(&mut line, entry);
                    model.push(entry);
                } else if !model.is_empty() {
                    let slot = slot % model.len();
                    shape.remove(&mut line, slot);
                    model.remove(slot);
                }
                model = sorted(&shape, &model);
                if let Some(slot) = slot.checked_rem(model.len()) {
                    shape.relocate(&mut line, slot, model[slot].block, entry.block);
                    shape.set_found(&mut line, slot, entry.is_found);
                    model[slot] = BucketEntry { block: entry.block, is_found: entry.is_found, ..model[slot] };
                    assert_eq!(
                        (shape.get(&line, slot), shape.is_found(&line, slot)),
                        (model[slot], entry.is_found)
                    );
                }
                let held: Vec<(usize, BucketEntry)> = shape.entries(&line).collect();
                assert_eq!(held, Vec::from_iter(model.iter().copied().enumerate()));
                assert_eq!(
                    (shape.taken(&line), shape.is_full(&line)),
                    (model.len(), model.len() == shape.slots)
                );
                full += usize::from(model.len() == shape.slots);
                let mut put = model.clone();
                put.sort_by_key(|entry| entry.block.wrapping_mul(random));
                let numbers = Vec::from_iter(put.iter().map(|entry| shape.number(*entry)));
                let mut written = Line([0; BUCKET_BYTES]);
                shape.write(&mut written, &numbers);
                let entries = Vec::from_iter(shape.entries(&written).map(|(_, entry)| entry));
                assert_eq!(entries, sorted(&shape, &put));
                let mut found = Vec::new();
                let fingerprint = shape.fingerprints(entry.tag)[usize::from(entry.other)];
                shape.matches(&line, fingerprint, |slot, block, is_found| {
                    assert_eq!((block, is_found), (model[slot].block, model[slot].is_found));
                    found.push(slot);
                });
                let same = |slot: &usize| (model[*slot].tag, model[*slot].other) == (entry.tag, entry.other);
                assert_eq!(found, Vec::from_iter((0..model.len()).filter(same)));
            }
            assert!(full > 100, "full {full} times");
        }
    }
}
