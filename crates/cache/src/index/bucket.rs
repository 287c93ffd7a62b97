//! The bits of one bucket: lanes with the tags, compared several at a time, then the places. The first
//! slots are taken, the rest are free.

use super::shape::Shape;
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

/// What the lane of an entry has: never 0, which is an empty slot.
#[inline]
pub(super) fn lane_of(tag: u64, other: bool) -> u64 {
    (tag << 1 | u64::from(other)) + 1
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
    /// The lanes that a load holds: those that are zero have their top bit set, and no other bit is.
    ///
    /// A lane without its top bit, plus a lane of ones without the top bit, carries into the top bit
    /// unless it is zero; and never out of the lane.
    #[inline]
    fn zeros(&self, lanes: u64) -> u64 {
        let low = self.top_bits - self.low_bits;
        !(((lanes & low) + low) | lanes) & self.top_bits
    }

    /// (first slot, lanes, which top bits count) of each load.
    #[inline]
    fn loads<'a>(&'a self, line: &'a Line) -> impl Iterator<Item = (usize, u64, u64)> + 'a {
        let (step, lanes) = (self.lanes * self.lane_bits as usize, self.lanes);
        let whole = (0..self.slots / lanes).map(move |i| (i * lanes, load(line, i * step), u64::MAX));
        let rest = (!self.slots.is_multiple_of(lanes)).then(|| {
            let i = self.slots / lanes;
            let used = (1 << ((self.slots - i * lanes) * self.lane_bits as usize)) - 1;
            (i * lanes, load(line, i * step), used)
        });
        whole.chain(rest)
    }

    /// Calls `visit` with each slot whose lane is this one.
    #[inline]
    pub fn matches(&self, line: &Line, lane: u64, mut visit: impl FnMut(usize)) {
        let wanted = self.low_bits * lane;
        for (first, lanes, used) in self.loads(line) {
            let mut equal = self.zeros(lanes ^ wanted) & used;
            while equal != 0 {
                visit(first + (equal.trailing_zeros() / self.lane_bits) as usize);
                equal &= equal - 1;
            }
        }
    }

    /// How many slots are taken: the first ones.
    #[inline]
    pub fn taken(&self, line: &Line) -> usize {
        if self.is_full(line) {
            return self.slots;
        }
        for (first, lanes, used) in self.loads(line) {
            let free = self.zeros(lanes) & used;
            if free != 0 {
                return first + (free.trailing_zeros() / self.lane_bits) as usize;
            }
        }
        self.slots
    }

    #[inline]
    pub fn is_full(&self, line: &Line) -> bool {
        self.lane(line, self.slots - 1) != 0
    }

    #[inline]
    fn lane(&self, line: &Line, slot: usize) -> u64 {
        load(line, slot * self.lane_bits as usize) & ((1 << self.lane_bits) - 1)
    }

    /// What a slot holds.
    #[inline]
    pub fn get(&self, line: &Line, slot: usize) -> Option<Slot> {
        let lane = self.lane(line, slot).checked_sub(1)?;
        let (place, recent) = self.place(line, slot);
        Some(Slot { tag: lane >> 1, other: lane & 1 == 1, recent, place })
    }

    /// The place of an entry, and whether it was found lately.
    #[inline]
    pub fn place(&self, line: &Line, slot: usize) -> (u64, bool) {
        let word = load(line, self.place_at(slot)) & ((1 << self.word_bits) - 1);
        (word >> 1, word & 1 == 1)
    }

    #[inline]
    pub fn set_place(&self, line: &mut Line, slot: usize, place: u64, recent: bool) {
        store(line, self.place_at(slot), self.word_bits, place << 1 | u64::from(recent));
    }

    #[inline]
    pub fn set(&self, line: &mut Line, slot: usize, entry: Slot) {
        let at = slot * self.lane_bits as usize;
        store(line, at, self.lane_bits, lane_of(entry.tag, entry.other));
        self.set_place(line, slot, entry.place, entry.recent);
    }

    /// Takes an entry out; the last one takes its slot.
    pub fn remove(&self, line: &mut Line, slot: usize) {
        let last = self.taken(line) - 1;
        if let Some(moved) = self.get(line, last).filter(|_| last != slot) {
            self.set(line, slot, moved);
        }
        store(line, last * self.lane_bits as usize, self.lane_bits, 0);
    }

    #[inline]
    fn place_at(&self, slot: usize) -> usize {
        self.slots * self.lane_bits as usize + slot * self.word_bits as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Capacity;

    #[test]
    fn slots_do_not_touch_each_other() {
        for (places, hash_bits, buckets) in
            [(1 << 18, 24, 1000), (3, 12, 1), (1 << 34, 40, 7), (1 << 40, 41, 1)]
        {
            let capacity = Capacity { places, entries: u64::MAX, hash_bits };
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
                shape.matches(&line, lane_of(entry.tag, entry.other), |slot| found.push(slot));
                let same = |slot: &usize| (model[*slot].tag, model[*slot].other) == (entry.tag, entry.other);
                assert_eq!(found, Vec::from_iter((0..model.len()).filter(same)));
                assert_eq!(line[BUCKET_BYTES..], [0xA5; 8], "the next bucket is left alone");
            }
        }
    }
}
