//! The slots of the device that segments lie in.

use crate::geometry::Geometry;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;

/// The choice of slots for segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotOrder {
    /// First in, first out: segment `s` lies in slot `s % segments`. This takes no memory. The log empties the oldest
    /// slots ahead of the writer.
    #[default]
    Fifo,
    /// Any free slot; the consumer frees slots as it pleases ([`Log::release_slot`](crate::Log::release_slot)). Takes 8
    /// bytes a slot. Some free slots are reserved for data that the consumer moves.
    Table {
        /// Slots that only a moving writer may take.
        reserved: u64,
    },
}

pub(crate) enum Slots {
    Fifo(FifoSlots),
    Table(SlotTable),
}

/// Progress of emptying slots in the order of their sequence numbers.
pub(crate) struct FifoSlots {
    /// Segments up to this sequence number may be opened: their slots hold nothing alive.
    pub free_until: AtomicU64,
    /// The former segments in the slots of segments up to this one are reclaimed, or being reclaimed.
    pub reclaimed_until: AtomicU64,
    /// The content of segments up to this one is invalid, or was never served: there is nothing to reclaim.
    pub invalid_until: AtomicU64,
}

/// The sequence number in each slot, and which slots are free.
pub(crate) struct SlotTable {
    /// 0: nothing was written there yet. Changed under the write lock of the log's ring.
    sequences: Box<[AtomicU64]>,
    free_list: Mutex<VecDeque<u64>>,
    /// The length of `free_list`.
    free_count: AtomicU64,
    reserved: u64,
}

/// The purpose of the segment that a slot is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// New data.
    Append,
    /// Live data of a segment that is to be freed.
    Move,
}

impl SlotTable {
    /// `taken` yields (slot, sequence number); all other slots are free.
    fn new(slots: u64, reserved: u64, taken: impl Iterator<Item = (u64, u64)>) -> Self {
        let sequences: Box<[AtomicU64]> = (0..slots).map(|_| AtomicU64::new(0)).collect();
        taken.for_each(|(slot, sequence)| sequences[slot as usize].store(sequence, Ordering::Relaxed));
        let free = (0..slots).filter(|slot| sequences[*slot as usize].load(Ordering::Relaxed) == 0).collect();
        let free: VecDeque<u64> = free;
        let free_count = AtomicU64::new(free.len() as u64);
        Self { sequences, free_list: Mutex::new(free), free_count, reserved }
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, VecDeque<u64>> {
        self.free_list.lock().expect("no panic under the lock")
    }

    fn take(&self, purpose: Purpose) -> Option<u64> {
        let mut free = self.lock();
        let kept = if purpose == Purpose::Move { 0 } else { self.reserved };
        let taken = if free.len() as u64 > kept { free.pop_front() } else { None };
        self.free_count.store(free.len() as u64, Ordering::Release);
        taken
    }

    pub fn release(&self, slot: u64) {
        let mut free = self.lock();
        debug_assert!(!free.contains(&slot), "slot {slot} is freed once");
        free.push_back(slot);
        self.free_count.store(free.len() as u64, Ordering::Release);
    }

    /// The number of free slots, including the reserved ones.
    fn free_slots(&self) -> u64 {
        self.free_count.load(Ordering::Acquire)
    }

    /// Removes a slot from the free slots for good.
    pub fn retire(&self, slot: u64) {
        let mut free = self.lock();
        free.retain(|other| *other != slot);
        self.free_count.store(free.len() as u64, Ordering::Release);
    }

    /// Whether moving has begun to use the reserved slots: the current segment is then for moved data only.
    fn is_reserve_in_use(&self) -> bool {
        self.free_slots() < self.reserved
    }

    fn has_room(&self) -> bool {
        self.free_slots() > self.reserved
    }

    fn sequence(&self, slot: u64) -> u64 {
        self.sequences[slot as usize].load(Ordering::Acquire)
    }

    fn set_sequence(&self, slot: u64, sequence: u64) {
        self.sequences[slot as usize].store(sequence, Ordering::Release);
    }
}

impl FifoSlots {
    /// `invalid_until`: see the field.
    fn new(segments: u64, head: u64, invalid_until: u64) -> Self {
        // Slots that were never written need no reclaim.
        let free_until = if head < segments { segments } else { head };
        Self {
            free_until: AtomicU64::new(free_until),
            reclaimed_until: AtomicU64::new(free_until),
            invalid_until: AtomicU64::new(invalid_until),
        }
    }
}

impl Slots {
    /// The slots of a log up to segment `head`. `positions` yields the sequence number and the first block of each
    /// segment that is served, in order.
    pub fn new(
        order: SlotOrder,
        geometry: &Geometry,
        head: u64,
        mut positions: impl Iterator<Item = (u64, u64)>,
    ) -> Self {
        match order {
            SlotOrder::Fifo => {
                let invalid_until = positions.next().map_or(head, |(sequence, _)| sequence - 1);
                Self::Fifo(FifoSlots::new(geometry.segments(), head, invalid_until))
            }
            SlotOrder::Table { reserved } => {
                let taken = positions.map(|(sequence, block)| (geometry.slot_of_block(block), sequence));
                Self::Table(SlotTable::new(geometry.segments(), reserved, taken))
            }
        }
    }

    /// The slots of a log that empties them in order by itself.
    #[inline]
    pub fn fifo(&self) -> Option<&FifoSlots> {
        match self {
            Self::Fifo(fifo) => Some(fifo),
            Self::Table(_) => None,
        }
    }

    /// The slots of a log whose consumer frees them.
    #[inline]
    pub fn table(&self) -> Option<&SlotTable> {
        match self {
            Self::Fifo(_) => None,
            Self::Table(table) => Some(table),
        }
    }

    /// The sequence number of the newest segment that lies in a slot; 0: there is none.
    #[inline]
    pub fn sequence(&self, geometry: &Geometry, slot: u64, head: u64) -> u64 {
        match self {
            Self::Fifo(_) => geometry.sequence_at(slot, head),
            Self::Table(table) => table.sequence(slot),
        }
    }

    /// The content of segments up to this one is invalid, or was never served.
    #[inline]
    pub fn invalid_until(&self) -> u64 {
        self.fifo().map_or(0, |fifo| fifo.invalid_until.load(Ordering::Acquire))
    }

    /// Whether entries of this segment may still be added to the index.
    #[inline]
    pub fn may_index(&self, sequence: u64, geometry: &Geometry) -> bool {
        match self {
            Self::Fifo(fifo) => sequence + geometry.segments() > fifo.reclaimed_until.load(Ordering::Acquire),
            Self::Table(_) => true,
        }
    }

    /// The number of free slots, including those reserved for moving.
    #[inline]
    pub fn free_slots(&self, head: u64) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.free_until.load(Ordering::Acquire).saturating_sub(head),
            Self::Table(table) => table.free_slots(),
        }
    }

    /// Whether there is an empty slot for new data in the segment with this sequence number.
    #[inline]
    pub fn may_open(&self, sequence: u64) -> bool {
        match self {
            Self::Fifo(fifo) => sequence <= fifo.free_until.load(Ordering::Acquire),
            Self::Table(table) => table.has_room(),
        }
    }

    /// Whether the current segment is not for this purpose: moving has begun to use the reserved slots.
    #[inline]
    pub fn is_reserved_from(&self, purpose: Purpose) -> bool {
        purpose == Purpose::Append && self.table().is_some_and(SlotTable::is_reserve_in_use)
    }

    /// Takes an empty slot for the segment with this sequence number. Called under the write lock of the log's buffers.
    pub fn take(&self, geometry: &Geometry, sequence: u64, purpose: Purpose) -> Option<u64> {
        match self {
            Self::Fifo(_) => self.may_open(sequence).then(|| geometry.slot(sequence)),
            Self::Table(table) => {
                let slot = table.take(purpose)?;
                table.set_sequence(slot, sequence);
                Some(slot)
            }
        }
    }
}
