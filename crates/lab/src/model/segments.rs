//! Flash that is written and freed in segments, oldest first.

use std::collections::VecDeque;

/// An object's location: its segment's number, and its index in the segment.
pub(super) type Spot = (u32, u32);

const NOWHERE: Spot = (u32::MAX, 0);

#[derive(Default)]
struct Segment {
    /// Bytes used, including those of objects that have left.
    bytes: u64,
    objects: Vec<(u32, u32)>,
}

/// How records are packed in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Records follow each other without waste.
    Tight,
    /// Records lie in blocks of this many bytes, as in Granary's log. A record that does not fit the rest of a block
    /// begins another one; one that is longer than a block leaves the rest of its last block unused.
    Blocks(u32),
}

/// Bytes of a block's header, and of a record's word in the summary.
const BLOCK_HEADER_BYTES: u64 = 16;
const WORD_BYTES: u64 = 6;

impl Packing {
    /// Bytes that an object adds to a segment of `used` bytes.
    fn cost(self, used: u64, bytes: u64) -> u64 {
        let Self::Blocks(block) = self else { return bytes };
        let block = u64::from(block);
        let in_last = used % block;
        if in_last > 0 && in_last + bytes <= block {
            return bytes;
        }
        let payload = block - BLOCK_HEADER_BYTES;
        let rest = used.next_multiple_of(block) - used;
        match bytes.div_ceil(payload) {
            0 | 1 => rest + BLOCK_HEADER_BYTES + bytes,
            blocks => rest + blocks * block,
        }
    }

    /// Bytes of a whole segment.
    fn segment(self, used: u64, objects: usize) -> u64 {
        let Self::Blocks(block) = self else { return used };
        let summary = objects as u64 * WORD_BYTES;
        used.next_multiple_of(u64::from(block)) + summary.next_multiple_of(u64::from(block))
    }
}

/// A log of segments: those on flash, and the open one in DRAM.
pub(super) struct Segments {
    capacity: u64,
    segment_bytes: u64,
    packing: Packing,
    written: VecDeque<Segment>,
    /// Number of the oldest in `written`; the open one follows the newest.
    first: u32,
    open: Segment,
    bytes_on_flash: u64,
    spots: Vec<Spot>,
    objects: u64,
    live_bytes: u64,
    bytes_written: u64,
}

impl Segments {
    pub(super) fn new(capacity: u64, segment_bytes: u64, keys: u32) -> Self {
        Self::packed(capacity, segment_bytes, Packing::Tight, keys)
    }

    pub(super) fn packed(capacity: u64, segment_bytes: u64, packing: Packing, keys: u32) -> Self {
        Self {
            capacity,
            segment_bytes,
            packing,
            written: VecDeque::new(),
            first: 0,
            open: Segment::default(),
            bytes_on_flash: 0,
            spots: vec![NOWHERE; keys as usize],
            objects: 0,
            live_bytes: 0,
            bytes_written: 0,
        }
    }

    pub(super) fn contains(&self, key: u32) -> bool {
        self.spots[key as usize] != NOWHERE
    }

    fn open_number(&self) -> u32 {
        self.first + self.written.len() as u32
    }

    /// Whether an object waits in the open segment to be written.
    pub(super) fn in_open(&self, key: u32) -> bool {
        self.spots[key as usize].0 == self.open_number() && self.contains(key)
    }

    /// Appends an object, replacing an earlier one, and passes the objects of segments freed for it to `freed`, as
    /// (key, bytes). An object larger than all of flash is refused.
    pub(super) fn append(&mut self, key: u32, bytes: u32, mut freed: impl FnMut(u32, u32)) -> bool {
        self.remove(key);
        if u64::from(bytes) > self.capacity {
            return false;
        }
        let used = self.open.bytes + self.packing.cost(self.open.bytes, u64::from(bytes));
        let objects = self.open.objects.len();
        if self.packing.segment(used, objects + 1) > self.segment_bytes && objects > 0 {
            self.write_open(&mut freed);
        }
        self.spots[key as usize] = (self.open_number(), self.open.objects.len() as u32);
        self.open.objects.push((key, bytes));
        self.open.bytes += self.packing.cost(self.open.bytes, u64::from(bytes));
        self.live_bytes += u64::from(bytes);
        self.objects += 1;
        true
    }

    fn write_open(&mut self, freed: &mut impl FnMut(u32, u32)) {
        self.open.bytes = self.packing.segment(self.open.bytes, self.open.objects.len());
        while self.bytes_on_flash + self.open.bytes > self.capacity {
            let segment = self.written.pop_front().expect("no segment is larger than flash");
            self.bytes_on_flash -= segment.bytes;
            for (at, (key, bytes)) in segment.objects.into_iter().enumerate() {
                if self.spots[key as usize] == (self.first, at as u32) {
                    self.forget(key, bytes);
                    freed(key, bytes);
                }
            }
            self.first += 1;
        }
        let segment = std::mem::take(&mut self.open);
        self.bytes_written += segment.bytes;
        self.bytes_on_flash += segment.bytes;
        self.written.push_back(segment);
    }

    fn forget(&mut self, key: u32, bytes: u32) {
        self.spots[key as usize] = NOWHERE;
        self.objects -= 1;
        self.live_bytes -= u64::from(bytes);
    }

    /// Forgets an object. Nothing is written: its bytes stay on flash until their segment is freed.
    pub(super) fn remove(&mut self, key: u32) {
        let (number, at) = self.spots[key as usize];
        if !self.contains(key) {
            return;
        }
        let segment = self.written.get((number - self.first) as usize).unwrap_or(&self.open);
        let (_, bytes) = segment.objects[at as usize];
        self.forget(key, bytes);
    }

    /// The object at a location in the log, if it is current, as (key, bytes), and the next location. Locations wrap
    /// around from the newest to the oldest.
    pub(super) fn walk(&self, (number, at): Spot) -> (Option<(u32, u32)>, Spot) {
        let segment = match number.checked_sub(self.first).map(|age| age as usize) {
            Some(age) if age < self.written.len() => &self.written[age],
            Some(age) if age == self.written.len() => &self.open,
            _ => return (None, (self.first, 0)),
        };
        let Some(object) = segment.objects.get(at as usize) else { return (None, (number + 1, 0)) };
        let live = self.spots[object.0 as usize] == (number, at);
        (live.then_some(*object), (number, at + 1))
    }

    /// Number of current objects.
    pub(super) fn objects(&self) -> u64 {
        self.objects
    }

    pub(super) fn open_bytes(&self) -> u64 {
        self.open.bytes
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    pub(super) fn check(&self) {
        let on_flash: u64 = self.written.iter().map(|segment| segment.bytes).sum();
        assert_eq!(on_flash, self.bytes_on_flash);
        assert!(on_flash <= self.capacity);
        let (mut objects, mut live) = (0, 0);
        for (number, segment) in (self.first..).zip(self.written.iter().chain([&self.open])) {
            let bytes = segment.objects.iter().map(|(_, bytes)| u64::from(*bytes));
            match self.packing {
                Packing::Tight => assert_eq!(segment.bytes, bytes.sum::<u64>()),
                Packing::Blocks(_) => assert!(segment.bytes >= bytes.sum::<u64>()),
            }
            for (at, (key, bytes)) in segment.objects.iter().enumerate() {
                if self.spots[*key as usize] == (number, at as u32) {
                    (objects, live) = (objects + 1, live + u64::from(*bytes));
                }
            }
        }
        assert_eq!((objects, live), (self.objects, self.live_bytes));
        let found = self.spots.iter().filter(|spot| **spot != NOWHERE).count() as u64;
        assert_eq!(found, objects, "each spot is a spot of some segment");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_packed_as_the_log_packs_them() {
        let used = |records: &[u64]| {
            records.iter().fold(0, |used, bytes| used + Packing::Blocks(512).cost(used, *bytes))
        };
        assert_eq!(used(&[100, 100]), 216);
        assert_eq!(used(&[248, 248]), 512, "two fill a block");
        assert_eq!(used(&[248, 249]), 512 + 16 + 249);
        assert_eq!(used(&[100, 497]), 512 + 1024, "longer than a payload: two blocks");
        assert_eq!(used(&[497, 1]), 1024 + 17);
        assert_eq!(Packing::Blocks(512).segment(528, 100), 1024 + 1024);
        assert_eq!(Packing::Tight.segment(528, 100), 528);
    }
}
