//! The record decoder on any bytes: refused or decoded, never a panic, and what is written decodes
//! to itself. Called by the fuzz target and, with a fixed seed, by the tests.

use crate::codec::{Codec, StoredValue};
use crate::key::{KeyHasher, RecordKind, parse_summary_entry};
use crate::lookup::{KeyDigest, Search};
use crate::record::{HeaderBytes, Record, RecordIter, find_last, parse, summary_entries_of};

/// A stored value: the first byte is the flags of its record.
pub use crate::codec::fuzzing::stored as compressed;

/// A payload: the first two bytes are how many records begin in it.
pub fn records(data: &[u8]) {
    let Some((count, payload)) = data.split_first_chunk::<2>() else { return };
    let count = u16::from_le_bytes(*count) % 1024;
    let mut summary_entries = Vec::new();
    let seed = payload.len() as u64;
    let hasher = KeyHasher::with_seed(seed);
    summary_entries_of(seed, payload, count, &mut summary_entries);
    let records: Vec<Record<'_>> = RecordIter::new(payload, count).collect();
    assert!(records.len() <= usize::from(count) && summary_entries.len() == records.len());
    let mut search = Search::default();
    for (record, summary_entry) in records.iter().zip(summary_entries) {
        assert_eq!(record.summary_entry(hasher), summary_entry);
        let Record::Entry(entry) = record else {
            assert_eq!(parse_summary_entry(summary_entry).1, RecordKind::Deletion);
            continue;
        };
        assert_eq!(parse_summary_entry(summary_entry), (hasher.hash(entry.key), RecordKind::Entry));
        assert_eq!(entry.value().is_some(), entry.is_whole() && !entry.negative);
        // Both ways to find a key agree on its last entry.
        let last = records.iter().rev().find_map(|record| match record {
            Record::Entry(other) if other.key == entry.key => Some(*other),
            _ => None,
        });
        assert_eq!(find_last(payload, count, entry.key), last);
        let keys = [entry.key, data, entry.key];
        search.run(payload, count, keys.into_iter().map(KeyDigest::of), |i| keys[i]);
        assert_eq!([0, 2].map(|i| search.found(payload, i)), [last, last]);
        assert_eq!(search.found(payload, 1), find_last(payload, count, data));
        assert_eq!(parse(entry.as_bytes()).map(|again| again.summary_entry(hasher)), Some(summary_entry));
    }
    round_trip(payload, usize::from(count));
}

fn round_trip(data: &[u8], split: usize) {
    let (key, value) = data.split_at(split.min(data.len()));
    let expires_at = data.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let codec = Codec::of_flags(expires_at as u8);
    let value = (!split.is_multiple_of(5)).then_some(StoredValue { codec, bytes: value });
    let header = HeaderBytes::entry(key, value, expires_at);
    let bytes = [header.as_slice(), key, value.map_or(&[], |value| value.bytes)].concat();
    let Some(Record::Entry(entry)) = parse(&bytes) else { panic!("what is written is read") };
    assert_eq!((entry.key, entry.value(), entry.expires_at), (key, value, expires_at));
    assert_eq!((entry.negative, entry.len()), (value.is_none(), bytes.len()));
    let hash = KeyHasher::with_seed(expires_at.into()).hash(key);
    assert_eq!(parse(HeaderBytes::deletion(hash).as_slice()), Some(Record::Deletion(hash)));
    for len in (0..bytes.len()).step_by(7) {
        if let Some(Record::Entry(cut)) = parse(&bytes[..len]) {
            assert!(!cut.is_whole() && cut.key == key, "cut to {len} bytes");
        }
    }
}
