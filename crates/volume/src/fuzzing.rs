//! One function a decoder: any bytes are refused or decoded, never a panic, and what is written decodes to
//! itself. Called by the fuzz targets and, with a fixed seed, by the tests.

use crate::checkpoint::{
    CheckpointHeader, HEADER_SIZE, PAGE_RECORD_SIZE, ScanError, TRAILER_SIZE, encode, scan, seal,
};
use crate::map::{Map, Place, SkipListMap};
use granary_log::fuzzing::number;

pub use crate::framing::fuzzing::segment;

/// Decodes a checkpoint, if the bytes are one. A skip list takes any number of blocks.
fn decode(bytes: &[u8]) -> Option<(CheckpointHeader, SkipListMap)> {
    let mut pages = Vec::new();
    match scan(bytes, bytes.len() as u64, |first, places| pages.push((first, *places))) {
        Ok(header) => {
            let mut map = SkipListMap::new(header.blocks).expect("the header was checked");
            pages.iter().for_each(|(first, places)| map.restore(*first, places));
            Some((header, map))
        }
        Err(ScanError::Damaged(_)) => None,
        Err(ScanError::Io(error)) => unreachable!("memory can be read: {error}"),
    }
}

fn encoded(header: &CheckpointHeader, map: &SkipListMap) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes, header, map, &mut |_| {}).expect("memory can be written");
    bytes
}

/// Checkpoints.
pub fn checkpoint(data: &[u8]) {
    // As it is; then with valid checksums, so that the code behind the check is reached; then with counts of pages and
    // blocks that may be right, too.
    let mut bytes = data.to_vec();
    for round in 0..3 {
        if let Some((header, map)) = decode(&bytes) {
            assert_eq!(encoded(&header, &map), bytes, "what is read is what would be written");
        }
        let pages = bytes.len().saturating_sub(HEADER_SIZE + TRAILER_SIZE) / PAGE_RECORD_SIZE;
        if round == 0 {
            bytes.truncate(HEADER_SIZE + pages * PAGE_RECORD_SIZE + TRAILER_SIZE);
        } else if bytes.len() >= HEADER_SIZE + TRAILER_SIZE {
            let (start, end) = (HEADER_SIZE, bytes.len() - TRAILER_SIZE);
            let records = bytes[start..end].chunks_exact(PAGE_RECORD_SIZE);
            let entries = records.flat_map(|record| record[16..].chunks_exact(4));
            let mapped = entries.filter(|raw| *raw != [0; 4]).count() as u64;
            bytes[end + 8..end + 16].copy_from_slice(&(pages as u64).to_le_bytes());
            bytes[end + 16..end + 24].copy_from_slice(&mapped.to_le_bytes());
        }
        seal(&mut bytes);
    }
    // What is written is read, and any flipped bit is found.
    let header = CheckpointHeader {
        instance: number(data, 0),
        block_size: number(data, 8) as u32,
        blocks: 1 + number(data, 12) % 10_000,
        sequence: number(data, 20),
        position: number(data, 28) as u32,
    };
    let map = SkipListMap::new(header.blocks).expect("few blocks");
    for (i, raw) in data.chunks_exact(4).take(50).enumerate() {
        let raw = u32::from_le_bytes(raw.try_into().expect("4 bytes"));
        if let Some(place) = Place::from_raw(raw) {
            map.set((u64::from(raw) * 31 + i as u64) % header.blocks, place);
        }
    }
    let mut bytes = encoded(&header, &map);
    let (read, copy) = decode(&bytes).expect("what is written is read");
    assert!(read == header && encoded(&read, &copy) == bytes);
    let bit = number(data, 3) as usize % (bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
    assert!(decode(&bytes).is_none(), "bit {bit} is flipped");
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes.truncate(number(data, 5) as usize % bytes.len());
    assert!(decode(&bytes).is_none(), "cut to {} bytes", bytes.len());
}
