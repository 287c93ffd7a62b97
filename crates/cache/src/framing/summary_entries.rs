//! Summary entries in RAM as they are on the device: 6 bytes each, little endian.

use crate::limits::{SUMMARY_ENTRY_BYTES, SUMMARY_ENTRY_MAX};

/// A list of summary entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryEntries(Vec<u8>);

impl SummaryEntries {
    /// The entries that `bytes` consists of, one after the other.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len() / SUMMARY_ENTRY_BYTES
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        parse_all(&self.0)
    }

    /// Appends an entry.
    fn push(&mut self, entry: u64) {
        assert!(entry <= SUMMARY_ENTRY_MAX, "summary entries have 48 bits");
        self.0.extend_from_slice(&to_bytes(entry));
    }

    /// The entries that `is_wanted` selects, without spare capacity.
    pub(super) fn filtered(&self, is_wanted: impl Fn(u64) -> bool) -> Self {
        let wanted = self.iter().filter(|entry| is_wanted(*entry));
        let mut bytes = Vec::with_capacity(wanted.clone().count() * SUMMARY_ENTRY_BYTES);
        wanted.for_each(|entry| bytes.extend_from_slice(&to_bytes(entry)));
        Self(bytes)
    }
}

impl FromIterator<u64> for SummaryEntries {
    fn from_iter<T: IntoIterator<Item = u64>>(entries: T) -> Self {
        let entries = entries.into_iter();
        let mut list = Self(Vec::with_capacity(entries.size_hint().0 * SUMMARY_ENTRY_BYTES));
        entries.for_each(|entry| list.push(entry));
        list
    }
}

/// An entry as it is on the device.
pub(super) fn to_bytes(entry: u64) -> [u8; SUMMARY_ENTRY_BYTES] {
    let [bytes @ .., _, _] = entry.to_le_bytes();
    bytes
}

/// The entries that lie one after the other in `bytes`.
pub(super) fn parse_all(bytes: &[u8]) -> impl Iterator<Item = u64> + Clone + '_ {
    bytes.as_chunks::<SUMMARY_ENTRY_BYTES>().0.iter().map(|[a, b, c, d, e, f]| {
        u64::from(u32::from_le_bytes([*a, *b, *c, *d])) | u64::from(u16::from_le_bytes([*e, *f])) << 32
    })
}
