//! One shard: a table of slots, and a clock that picks the segment to evict.

use crate::limits::CHECKSUM_ENTRY_BYTES_MAX;
use granary_log::prefetch::prefetch_value;
use hashbrown::HashTable;

struct ChecksumEntry {
    slot: u32,
    /// It was read since the clock's hand last passed.
    referenced: bool,
    sequence: u64,
    checksums: Box<[u32]>,
}

impl ChecksumEntry {
    /// The bytes that the entry counts against the budget.
    fn charge(checksums: &[u32]) -> u64 {
        size_of_val(checksums) as u64 + CHECKSUM_ENTRY_BYTES_MAX
    }
}

pub(super) struct Shard {
    budget: u64,
    /// Invariant: the sum of the charges of `entries`, at most `budget`.
    charged: u64,
    entries: Vec<ChecksumEntry>,
    /// For each slot, the number of its entry.
    numbers: HashTable<u32>,
    /// The entry that the clock looks at next.
    hand: usize,
}

fn hash(slot: u32) -> u64 {
    u64::from(slot).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Shard {
    pub fn new(budget: u64) -> Self {
        Self { budget, charged: 0, entries: Vec::new(), numbers: HashTable::new(), hand: 0 }
    }

    fn number(&self, slot: u32) -> Option<usize> {
        let entries = &self.entries;
        let number = self.numbers.find(hash(slot), |number| entries[*number as usize].slot == slot);
        number.map(|number| *number as usize)
    }

    pub fn get(&mut self, slot: u32, sequence: u64) -> Option<&[u32]> {
        let number = self.number(slot)?;
        let entry = &mut self.entries[number];
        if entry.sequence != sequence {
            return None;
        }
        entry.referenced = true;
        Some(&entry.checksums)
    }

    /// Has the processor fetch the checksum of a block, if it is here.
    pub fn prefetch(&self, slot: u32, index: u32) {
        if let Some(number) = self.number(slot)
            && let Some(checksum) = self.entries[number].checksums.get(index as usize)
        {
            prefetch_value(checksum);
        }
    }

    pub fn insert(&mut self, slot: u32, sequence: u64, checksums: Box<[u32]>) {
        let charge = ChecksumEntry::charge(&checksums);
        if self.number(slot).is_some_and(|number| self.entries[number].sequence > sequence) {
            return;
        }
        self.remove(slot);
        if charge > self.budget {
            return;
        }
        while self.charged + charge > self.budget {
            self.evict();
        }
        let number = self.entries.len() as u32;
        self.entries.push(ChecksumEntry { slot, referenced: false, sequence, checksums });
        let entries = &self.entries;
        self.numbers.insert_unique(hash(slot), number, |number| hash(entries[*number as usize].slot));
        self.charged += charge;
    }

    /// Evicts the next entry that was not read since the hand passed.
    fn evict(&mut self) {
        loop {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let entry = &mut self.entries[self.hand];
            if !std::mem::take(&mut entry.referenced) {
                let slot = entry.slot;
                self.remove(slot);
                return;
            }
            self.hand += 1;
        }
    }

    pub fn remove(&mut self, slot: u32) {
        let Some(number) = self.number(slot) else { return };
        let entries = &self.entries;
        let removed = self.numbers.find_entry(hash(slot), |other| *other as usize == number);
        removed.expect("the slot was found").remove();
        // The last entry takes its place.
        let last = entries.len() - 1;
        if number != last {
            let moved = self.numbers.find_mut(hash(entries[last].slot), |other| *other as usize == last);
            *moved.expect("each entry has a number") = number as u32;
        }
        let removed = self.entries.swap_remove(number);
        self.charged -= ChecksumEntry::charge(&removed.checksums);
    }

    pub fn bytes_allocated(&self) -> u64 {
        let checksums: u64 = self.entries.iter().map(|entry| size_of_val(&*entry.checksums) as u64).sum();
        let table = self.entries.capacity() * size_of::<ChecksumEntry>() + self.numbers.allocation_size();
        checksums + table as u64
    }

    pub fn validate(&self) {
        assert_eq!(self.numbers.len(), self.entries.len());
        for (number, entry) in self.entries.iter().enumerate() {
            assert_eq!(self.number(entry.slot), Some(number), "slot {}", entry.slot);
        }
        let charged: u64 = self.entries.iter().map(|entry| ChecksumEntry::charge(&entry.checksums)).sum();
        assert_eq!(charged, self.charged);
        assert!(charged <= self.budget && self.bytes_allocated() <= self.budget);
    }
}
