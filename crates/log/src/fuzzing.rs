//! One function a decoder: any bytes are refused or decoded, never a panic, and what is written
//! decodes to itself. Called by the fuzz targets and, with a fixed seed, by the tests.

use crate::journal::{self, Kind};
use crate::limits::{SEQUENCE_MAX, SUMMARY_ENTRY_MAX};
use crate::state;

const INSTANCE: u64 = 0x0123_4567_89AB_CDEF;

/// Reads a number from `at` on; bytes that are missing are zero. For the decoders of other crates as well.
pub fn number(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let part = data.get(at..).unwrap_or(&[]);
    let len = part.len().min(8);
    bytes[..len].copy_from_slice(&part[..len]);
    u64::from_le_bytes(bytes)
}

/// Journal files.
pub fn journal(data: &[u8]) {
    let parse = |bytes: &[u8]| journal::parse(bytes, INSTANCE).collect::<Vec<_>>();
    let records = parse(data);
    let (mut all, mut one) = (Vec::new(), Vec::new());
    for record in &records {
        let numbers = (record.sequence, record.durable);
        journal::encode(&mut one, INSTANCE, record.kind, numbers, &record.entries);
        all.extend_from_slice(&one);
    }
    assert!(data.starts_with(&all), "what is read is what was written");
    // What is written is read, up to where it is cut.
    let (sequence, durable) = (number(data, 0) & SEQUENCE_MAX, number(data, 6) & SEQUENCE_MAX);
    let entries: Vec<u64> = (0..data.len() % 50).map(|i| number(data, i) & SUMMARY_ENTRY_MAX).collect();
    let kind = if number(data, 2) & 1 == 0 { Kind::Changes } else { Kind::Emptied };
    journal::encode(&mut one, INSTANCE, kind, (sequence, durable), &entries);
    let written = journal::Record { kind, sequence, durable, entries };
    let mut file = [one.as_slice(), one.as_slice()].concat();
    assert_eq!(parse(&file), [written.clone(), written.clone()]);
    file.truncate(one.len() + number(data, 3) as usize % one.len());
    assert_eq!(parse(&file), std::slice::from_ref(&written));
    if !written.entries.is_empty() {
        // The header's fields only seed the checksum; it covers the entries.
        let bit = number(data, 1) as usize % (written.entries.len() * 64);
        file[one.len() - 1 - bit / 8] ^= 1 << (bit % 8);
        assert_eq!(parse(&file), [], "bit {bit} is flipped");
    }
}

/// The state file.
pub fn state(data: &[u8]) {
    if let Some(read) = state::parse(&data[..data.len().min(state::SIZE_MAX)]) {
        assert_eq!(state::parse(&state::encode(&read)), Some(read));
    }
    for depends_on in [0, number(data, 88)] {
        let read = state::State {
            shape: [number(data, 16), number(data, 24), number(data, 32)],
            instance: number(data, 40),
            fingerprint: number(data, 48),
            salt: number(data, 56),
            clean: number(data, 56) & 1 == 1,
            memory_id: if number(data, 56) & 1 == 1 { 0 } else { number(data, 56) },
            boot_id: (u128::from(number(data, 64)) << 64 | u128::from(number(data, 72))).to_be_bytes(),
            head: number(data, 80),
            depends_on,
        };
        let mut bytes = state::encode(&read);
        assert_eq!(state::parse(&bytes), Some(read));
        assert_eq!(state::parse(&[&bytes[..], &[7; 8]].concat()), Some(read), "it was longer once");
        assert_eq!(state::parse(&bytes[..bytes.len() - 1]), None);
        let bit = number(data, 16) as usize % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(state::parse(&bytes), None, "bit {bit} is flipped");
    }
}
