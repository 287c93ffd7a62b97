//! The entries of a batch as they are stored.

use super::Codecs;
use super::encode::Encoded;
use super::stored::{Codec, StoredValue};
use crate::entry::{Entry, StoredEntry};
use granary_log::sync::Arc;
use std::ops::Range;

impl Codecs {
    /// Calls `put` with the entries in their stored form, compressed or not, and learns from those.
    pub fn encode_entries(self: &Arc<Self>, entries: &[Entry<'_>], put: impl FnOnce(&[StoredEntry<'_>])) {
        if !self.compresses() {
            let stored = entries.iter().map(|entry| entry.value.map(StoredValue::raw));
            return put(&stored_as(entries, stored));
        }
        let (mut encoded, mut bytes) = (Encoded::default(), Vec::new());
        let stored: Vec<Option<(Codec, Range<usize>)>> = entries
            .iter()
            .map(|entry| {
                let stored = self.encode(entry.key.bytes(), entry.value?, &mut encoded);
                let begin = bytes.len();
                if stored.codec != Codec::None {
                    bytes.extend_from_slice(stored.bytes);
                }
                Some((stored.codec, begin..bytes.len()))
            })
            .collect();
        let stored = entries.iter().zip(stored).map(|(entry, stored)| match stored? {
            (Codec::None, _) => entry.value.map(StoredValue::raw),
            (codec, range) => Some(StoredValue { codec, bytes: &bytes[range] }),
        });
        let stored = stored_as(entries, stored);
        put(&stored);
        let values = entries.iter().zip(&stored);
        self.learn(
            values.filter_map(|(raw, stored)| Some((raw.key.bytes(), raw.value?, stored.value?.bytes.len()))),
        );
    }
}

/// The entries with their values in stored form.
fn stored_as<'a>(
    entries: &[Entry<'a>],
    values: impl Iterator<Item = Option<StoredValue<'a>>>,
) -> Vec<StoredEntry<'a>> {
    let entries = entries.iter().zip(values);
    entries
        .map(|(Entry { key, expires_at, .. }, value)| StoredEntry {
            key: *key,
            value,
            expires_at: *expires_at,
        })
        .collect()
}
