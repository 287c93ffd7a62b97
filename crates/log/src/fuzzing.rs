//! One function a decoder: any bytes are refused or decoded, never a panic, and what is written
//! decodes to itself. Called by the fuzz targets and, with a fixed seed, by the tests.

use crate::block::{self, Header};
use crate::geometry::Geometry;
use crate::limits::{BLOCK_HEADER_SIZE, BLOCK_SIZE_MIN, SEQUENCE_MAX, WORD_MAX};
use crate::{journal, state, summary};

const INSTANCE: u64 = 0x0123_4567_89AB_CDEF;
const SIZE: usize = BLOCK_SIZE_MIN as usize;

fn number(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let part = data.get(at..).unwrap_or(&[]);
    let len = part.len().min(8);
    bytes[..len].copy_from_slice(&part[..len]);
    u64::from_le_bytes(bytes)
}

/// One block of these bytes; what is missing is zero.
fn block_of(data: &[u8]) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    let len = data.len().min(SIZE);
    bytes[..len].copy_from_slice(&data[..len]);
    bytes
}

/// Block headers and checksums.
pub fn block(data: &[u8]) {
    let mut bytes = block_of(data);
    let place = number(data, 0) >> 20;
    if let Some(header) = block::check(&bytes, INSTANCE, place) {
        let before = bytes;
        block::seal(&mut bytes, INSTANCE, place, header);
        assert_eq!(bytes, before, "what checks is what would be written");
    }
    let header = Header { sequence: number(data, 8) & SEQUENCE_MAX, count: number(data, 16) as u16 };
    block::seal(&mut bytes, INSTANCE, place, header);
    assert_eq!(block::check(&bytes, INSTANCE, place), Some(header));
    assert_eq!(block::check(&bytes, INSTANCE, place ^ 1), None, "another place");
    let bit = number(data, 2) as usize % (SIZE * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
    assert_eq!(block::check(&bytes, INSTANCE, place), None, "bit {bit} is flipped");
}

/// Summaries, from their trailer on.
pub fn summary(data: &[u8]) {
    let geometry = Geometry::new(64 * SIZE as u64, 16 * SIZE as u64, SIZE as u64).expect("sizes divide");
    let (first, header) = (16, Header { sequence: number(data, 0) & SEQUENCE_MAX, count: 0 });
    // As it comes, then with checksums that fit, so that what they protect is reached.
    let mut segment = vec![0; 16 * SIZE];
    let len = data.len().min(segment.len());
    let end = segment.len();
    segment[end - len..].copy_from_slice(&data[..len]);
    read_summary(&segment, &geometry, first);
    if segment[end - 16..end - 8] != *b"GRANSUM1" {
        segment[end - 16..end - 8].copy_from_slice(b"GRANSUM1");
        segment[end - 8..].copy_from_slice(&(number(data, 8) & 0x0000_00FF_0000_001F).to_le_bytes());
    }
    seal_all(&mut segment, first, header);
    read_summary(&segment, &geometry, first);
    // What is written is read.
    let most = data.len() % 8;
    let counts: Vec<u16> = (0..most).map(|i| data[i] as u16 % 20).collect();
    let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
    let words: Vec<u64> = (0..total).map(|i| number(data, i % (data.len() + 1)) & WORD_MAX).collect();
    let blocks = summary::blocks(&geometry, counts.len(), words.len());
    segment.fill(0);
    summary::write(&mut segment[(16 - blocks) * SIZE..], &geometry, &counts, &words);
    seal_all(&mut segment, first, header);
    let read = read_summary(&segment, &geometry, first).expect("what is written is read");
    assert_eq!((read.sequence, read.counts, read.words), (header.sequence, counts, words));
}

fn seal_all(segment: &mut [u8], first: u64, header: Header) {
    for (bytes, number) in segment.chunks_exact_mut(SIZE).zip(first..) {
        block::seal(bytes, INSTANCE, number, header);
    }
}

fn read_summary(segment: &[u8], geometry: &Geometry, first: u64) -> Option<summary::Summary> {
    let last = &segment[segment.len() - SIZE..];
    let trailer = summary::parse_trailer(last, geometry, INSTANCE, first)?;
    let bytes = &segment[segment.len() - trailer.blocks * SIZE..];
    let read = summary::parse(bytes, trailer, geometry, INSTANCE, first)?;
    assert_eq!(read.iter().count(), read.words.len());
    assert!(read.iter().all(|(place, _)| (first..first + 16).contains(&place)));
    Some(read)
}

/// Journal files.
pub fn journal(data: &[u8]) {
    let records = journal::parse(data, INSTANCE);
    let (mut all, mut one) = (Vec::new(), Vec::new());
    for record in &records {
        journal::encode(&mut one, INSTANCE, record.sequence, record.durable, &record.words);
        all.extend_from_slice(&one);
    }
    assert!(data.starts_with(&all), "what is read is what was written");
    // What is written is read, up to where it is cut.
    let (sequence, durable) = (number(data, 0) & SEQUENCE_MAX, number(data, 6) & SEQUENCE_MAX);
    let words: Vec<u64> = (0..data.len() % 50).map(|i| number(data, i) & WORD_MAX).collect();
    journal::encode(&mut one, INSTANCE, sequence, durable, &words);
    let written = journal::Record { sequence, durable, words };
    let mut file = [one.as_slice(), one.as_slice()].concat();
    assert_eq!(journal::parse(&file, INSTANCE), [written.clone(), written.clone()]);
    file.truncate(one.len() + number(data, 3) as usize % one.len());
    assert_eq!(journal::parse(&file, INSTANCE), std::slice::from_ref(&written));
    if !written.words.is_empty() {
        // The header's own fields are sums of the seed; the words are what the sum is of.
        let bit = number(data, 1) as usize % (written.words.len() * 64);
        file[one.len() - 1 - bit / 8] ^= 1 << (bit % 8);
        assert_eq!(journal::parse(&file, INSTANCE), [], "bit {bit} is flipped");
    }
}

/// The state file.
pub fn state(data: &[u8]) {
    let mut bytes = [0; state::SIZE];
    let len = data.len().min(bytes.len());
    bytes[..len].copy_from_slice(&data[..len]);
    if let Some(read) = state::parse(&bytes) {
        assert_eq!(state::parse(&state::encode(&read)), Some(read));
    }
    let read = state::State {
        shape: [number(data, 16), number(data, 24), number(data, 32)],
        instance: number(data, 40),
        fingerprint: number(data, 48),
        salt: number(data, 56),
        clean: number(data, 56) & 1 == 1,
        companion: if number(data, 56) & 1 == 1 { 0 } else { number(data, 56) },
        boot_id: (u128::from(number(data, 64)) << 64 | u128::from(number(data, 72))).to_be_bytes(),
        head: number(data, 80),
    };
    let mut bytes = state::encode(&read);
    assert_eq!(state::parse(&bytes), Some(read));
    let bit = number(data, BLOCK_HEADER_SIZE) as usize % (state::SIZE * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
    assert_eq!(state::parse(&bytes), None, "bit {bit} is flipped");
}
