//! Fuzzing of the summaries of segments with any bytes.

use super::footer::{MAGIC, MAGIC_AT, seal};
use super::{Blocks, Entry, Summary, content_hash};
use granary_log::device::{Device, MemoryDevice};
use granary_log::fuzzing::number;
use granary_log::{Framing, Geometry, SegmentId, SummarySource};
use std::sync::atomic::Ordering;

const BLOCK: usize = 512;
const BLOCKS: usize = 64;
const INSTANCE: u64 = 0x0123_4567_89AB_CDEF;

/// The shape of a log with a single segment.
fn geometry() -> Geometry {
    let segment = (BLOCK * BLOCKS) as u64;
    Geometry::new(segment, segment, BLOCK as u64).expect("the sizes fit each other")
}

/// Reads the summary of the segment in `bytes`.
fn read(geometry: &Geometry, bytes: &[u8]) -> Option<Summary> {
    let device = MemoryDevice::new(geometry.file_bytes());
    device.write_at(0, &[bytes]).expect("memory can be written");
    let source = SummarySource { geometry, instance: INSTANCE, salt: 0, device: &device };
    let blocks = Blocks::default();
    let found = blocks.read(&source, 0..1).pop().flatten();
    assert_eq!(blocks.faults.unreadable.load(Ordering::Relaxed), 0, "memory can be read");
    if let Some(summary) = &found {
        for (position, entry) in &summary.entries {
            let end = u64::from(*position) + u64::from(entry.blocks());
            assert!(*position > 0 && end <= BLOCKS as u64, "{entry:?} at {position} lies in the segment");
        }
    }
    found
}

/// Writes a segment with operations drawn from `data`; returns its bytes and the expected summary.
fn written(geometry: &Geometry, data: &[u8]) -> (Vec<u8>, Summary) {
    let (blocks, id) = (
        Blocks::default(),
        SegmentId { geometry: *geometry, instance: INSTANCE, sequence: 5, first_block: 0 },
    );
    let mut bytes = vec![0; BLOCK * BLOCKS];
    let mut builder = blocks.begin(&id);
    for (i, step) in data.iter().enumerate().take(4 * BLOCKS) {
        let lba = number(data, i) >> 16;
        let content = [*step; BLOCK];
        match step % 8 {
            0 => _ = blocks.commit(&id, &mut builder, &mut bytes),
            1 => _ = builder.push_zeroes(&id, lba, number(data, i + 3) >> 20),
            _ => _ = builder.push(&id, &mut bytes, lba, content_hash(&content), &content),
        }
    }
    if data.len().is_multiple_of(2) {
        blocks.seal(&id, &mut builder, &mut bytes);
        return (bytes, blocks.summarize(&id, &builder));
    }
    blocks.commit(&id, &mut builder, &mut bytes);
    let summary = blocks.summarize(&id, &builder);
    // Only a summary has the entry of a commit's own footer.
    let entries = summary.entries.into_iter().filter(|(_, entry)| !matches!(entry, Entry::Footer { .. }));
    (bytes, Summary { entries: entries.collect(), is_sealed: false, ..summary })
}

/// Segments: headers, footers, summaries and their entries.
pub fn segment(data: &[u8]) {
    let geometry = geometry();
    // As it is; then with every block marked as not content and valid, so that the code behind the check is reached.
    let mut bytes = data.to_vec();
    bytes.resize(BLOCK * BLOCKS, 0);
    read(&geometry, &bytes);
    for (block, bytes) in bytes.chunks_exact_mut(BLOCK).enumerate() {
        bytes[MAGIC_AT..MAGIC_AT + MAGIC.len()].copy_from_slice(&MAGIC);
        seal(bytes, INSTANCE, block as u64);
    }
    read(&geometry, &bytes);
    // What is written is read.
    let (mut bytes, expected) = written(&geometry, data);
    let nothing = expected.entries.is_empty() && !expected.is_sealed;
    assert_eq!(read(&geometry, &bytes), (!nothing).then(|| expected.clone()));
    // After a bit flip, nothing is read that was not written.
    let bit = number(data, 3) as usize % (bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
    let found = read(&geometry, &bytes).map_or(Vec::new(), |summary| summary.entries);
    let mut known = expected.entries.iter();
    assert!(found.iter().all(|entry| known.any(|other| other == entry)), "bit {bit}");
}
