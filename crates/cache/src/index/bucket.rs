//! The bits of one bucket: lanes, compared eight at a time, then the slots' fields. The first slots are taken, the
//! rest are free.

use super::shape::{LANE_VALUES, Shape};
use crate::limits::BUCKET_BYTES;

/// A bucket and the 8 bytes after it, which a load of its last bits may touch.
pub(super) type Line = [u8; LINE_BYTES];

pub(super) const LINE_BYTES: usize = BUCKET_BYTES + 8;

/// An entry, as a bucket keeps it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub tag: u64,
    /// It is in the other one of its two buckets.
    pub other: bool,
    /// It was found lately.
    pub recent: bool,
    pub place: u64,
}

/// What a slot keeps of an entry's hash; `LANE_VALUES` and `Shape` say how.
#[derive(Clone, Copy)]
pub(super) struct Fingerprint {
    lane: u8,
    rest: u64,
}

impl Fingerprint {
    #[inline]
    pub fn new(tag: u64, other: bool) -> Self {
        let fingerprint = tag << 1 | u64::from(other);
        Self { lane: (fingerprint % LANE_VALUES) as u8 + 1, rest: fingerprint / LANE_VALUES }
    }

    /// The tag, and whether the entry is in its other bucket.
    #[inline]
    fn parts(self) -> (u64, bool) {
        let fingerprint = self.rest * LANE_VALUES + u64::from(self.lane) - 1;
        (fingerprint >> 1, fingerprint & 1 == 1)
    }
}

/// The lowest bit of each lane of a load, and the highest.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const TOP_BITS: u64 = LOW_BITS << 7;

/// The lanes of a load that are zero have their top bit set, and no other bit is.
///
/// A lane without its top bit, plus a lane of ones without the top bit, carries into the top bit
/// unless it is zero; and never out of the lane.
#[inline]
fn zeros(lanes: u64) -> u64 {
    !(((lanes & !TOP_BITS) + !TOP_BITS) | lanes) & TOP_BITS
}

/// The 57 or more bits that begin at `bit`, which lies in the bucket.
#[inline]
fn load(line: &Line, bit: usize) -> u64 {
    // The mask says what is so anyway, for the compiler.
    let at = (bit / 8) & (BUCKET_BYTES - 1);
    u64::from_le_bytes(line[at..at + 8].try_into().expect("8 bytes")) >> (bit % 8)
}

/// Replaces `bits` bits that begin at `bit`; both fit one load.
#[inline]
fn store(line: &mut Line, bit: usize, bits: u32, value: u64) {
    let at = (bit / 8) & (BUCKET_BYTES - 1);
    let mask = ((1 << bits) - 1) << (bit % 8);
    let old = u64::from_le_bytes(line[at..at + 8].try_into().expect("8 bytes"));
    line[at..at + 8].copy_from_slice(&(old & !mask | value << (bit % 8)).to_le_bytes());
}

impl Shape {
    /// The lanes, and in the last load some bytes more.
    #[inline]
    fn loads<'a>(&self, line: &'a Line) -> impl Iterator<Item = (usize, u64)> + 'a {
        let (loads, _) = line.as_chunks::<8>();
        loads[..self.loads].iter().enumerate().map(|(i, lanes)| (i * 8, u64::from_le_bytes(*lanes)))
    }

    /// Calls `visit` with each slot that has this print.
    #[inline]
    pub fn matches(&self, line: &Line, fingerprint: Fingerprint, mut visit: impl FnMut(usize)) {
        let wanted = LOW_BITS * u64::from(fingerprint.lane);
        for (first, lanes) in self.loads(line) {
            let mut equal = zeros(lanes ^ wanted);
            while equal != 0 {
                let slot = first + equal.trailing_zeros() as usize / 8;
                if slot < self.slots && self.rest(line, slot) == fingerprint.rest {
                    visit(slot);
                }
                equal &= equal - 1;
            }
        }
    }

    /// How many slots are taken: the first ones.
    #[inline]
    pub fn taken(&self, line: &Line) -> usize {
        for (first, lanes) in self.loads(line) {
            let free = zeros(lanes);
            if free != 0 {
                return self.slots.min(first + free.trailing_zeros() as usize / 8);
            }
        }
        self.slots
    }

    #[inline]
    pub fn is_full(&self, line: &Line) -> bool {
        line[self.slots - 1] != 0
    }

    /// What a slot holds.
    #[inline]
    pub fn get(&self, line: &Line, slot: usize) -> Option<Slot> {
        let lane = line[slot];
        if lane == 0 {
            return None;
        }
        let (tag, other) = Fingerprint { lane, rest: self.rest(line, slot) }.parts();
        let (place, recent) = self.place(line, slot);
        Some(Slot { tag, other, recent, place })
    }

    /// The place of an entry, and whether it was found lately.
    #[inline]
    pub fn place(&self, line: &Line, slot: usize) -> (u64, bool) {
        let bits = load(line, self.place_at(slot)) & ((1 << (self.place_bits + 1)) - 1);
        (bits >> 1, bits & 1 == 1)
    }

    #[inline]
    fn rest(&self, line: &Line, slot: usize) -> u64 {
        load(line, self.rest_at(slot)) & ((1 << self.rest_bits) - 1)
    }

    #[inline]
    fn place_at(&self, slot: usize) -> usize {
        self.slots * 8 + slot * (self.place_bits + 1 + self.rest_bits) as usize
    }

    #[inline]
    fn rest_at(&self, slot: usize) -> usize {
        self.place_at(slot) + self.place_bits as usize + 1
    }

    #[inline]
    pub fn set_place(&self, line: &mut Line, slot: usize, place: u64, recent: bool) {
        store(line, self.place_at(slot), self.place_bits + 1, place << 1 | u64::from(recent));
    }

    #[inline]
    pub fn set(&self, line: &mut Line, slot: usize, entry: Slot) {
        let Fingerprint { lane, rest } = Fingerprint::new(entry.tag, entry.other);
        line[slot] = lane;
        store(line, self.rest_at(slot), self.rest_bits, rest);
        self.set_place(line, slot, entry.place, entry.recent);
    }

    /// Takes an entry out; the last one takes its slot.
    pub fn remove(&self, line: &mut Line, slot: usize) {
        let last = self.taken(line) - 1;
        if let Some(moved) = self.get(line, last).filter(|_| last != slot) {
            self.set(line, slot, moved);
        }
        line[last] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Capacity, Growth};

    #[test]
    fn slots_do_not_touch_each_other() {
        for (places, hash_bits, buckets) in
            [(1 << 18, 24, 1000), (3, 12, 1), (1 << 34, 40, 7), (1 << 40, 41, 1)]
        {
            let capacity = Capacity { places, entries: u64::MAX, hash_bits, growth: Growth::Quick };
            let shape = Shape::new(&capacity, buckets);
            let mut line = [0; LINE_BYTES];
            line[BUCKET_BYTES..].fill(0xA5);
            let mut random = 5u64;
            let mut model: Vec<Slot> = Vec::new();
            for _ in 0..2000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let entry = Slot {
                    // The ends of the range too.
                    tag: [(random >> 8) % shape.stride, 0, shape.stride - 1][(random >> 30) as usize % 3],
                    other: random >> 1 & 1 == 1,
                    recent: random >> 2 & 1 == 1,
                    place: (random >> 16) % places,
                };
                let slot = (random >> 40) as usize;
                if model.len() < shape.slots && random >> 60 < 10 {
                    shape.set(&mut line, model.len(), entry);
                    model.push(entry);
                } else if !model.is_empty() {
                    let slot = slot % model.len();
                    shape.remove(&mut line, slot);
                    model.swap_remove(slot);
                }
                if let Some(slot) = slot.checked_rem(model.len()) {
                    shape.set_place(&mut line, slot, entry.place, entry.recent);
                    model[slot] = Slot { place: entry.place, recent: entry.recent, ..model[slot] };
                }
                let held: Vec<Slot> = (0..shape.slots).map_while(|slot| shape.get(&line, slot)).collect();
                assert!(held == model);
                assert_eq!(
                    (shape.taken(&line), shape.is_full(&line)),
                    (model.len(), model.len() == shape.slots)
                );
                let mut found = Vec::new();
                shape.matches(&line, Fingerprint::new(entry.tag, entry.other), |slot| found.push(slot));
                let same = |slot: &usize| (model[*slot].tag, model[*slot].other) == (entry.tag, entry.other);
                assert_eq!(found, Vec::from_iter((0..model.len()).filter(same)));
                assert_eq!(line[BUCKET_BYTES..], [0xA5; 8], "the next bucket is left alone");
            }
        }
    }
}
