//! Rows found by their keys.

use super::rows::KeyedRows;
use crate::error::DictError;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use twox_hash::XxHash3_64;

/// Places of rows, by the hashes of their keys.
#[derive(Default)]
pub(super) struct Keys {
    places: HashTable<u32>,
}

/// Which of two rows with the same key counts.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum DuplicatePolicy {
    First,
    Last,
}

impl Keys {
    /// Indexes rows with distinct keys.
    pub fn of(rows: &KeyedRows) -> Keys {
        let mut places = HashTable::with_capacity(rows.len());
        let hash = |place: &u32| XxHash3_64::oneshot(rows.key(*place));
        for place in 0..rows.len() as u32 {
            places.insert_unique(hash(&place), place, hash);
        }
        Keys { places }
    }

    /// Adds a row, which `encode` appends, unless an earlier one with its key counts.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if the rows are more than 32 bits can count.
    pub fn add(
        &mut self,
        rows: &mut KeyedRows,
        key: &[u8],
        duplicates: DuplicatePolicy,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), DictError> {
        let known = |place: &u32| rows.key(*place) == key;
        match self
            .places
            .entry(XxHash3_64::oneshot(key), known, |place| XxHash3_64::oneshot(rows.key(*place)))
        {
            Entry::Vacant(vacant) => {
                vacant.insert(rows.push(key, encode)?);
            }
            Entry::Occupied(known) if duplicates == DuplicatePolicy::Last => {
                rows.replace(*known.get(), encode)?
            }
            Entry::Occupied(_) => {}
        }
        Ok(())
    }

    #[inline]
    pub fn find(&self, rows: &KeyedRows, key: &[u8]) -> Option<u32> {
        self.places.find(XxHash3_64::oneshot(key), |&place| rows.key(place) == key).copied()
    }

    pub fn bytes_allocated(&self) -> usize {
        self.places.allocation_size()
    }

    /// The number of keys, and the capacity.
    pub fn filled(&self) -> (usize, usize) {
        (self.places.len(), self.places.capacity())
    }
}
