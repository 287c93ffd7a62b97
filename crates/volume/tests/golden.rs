//! The bytes of a checkpoint: what is written today is what the golden file holds, and this is read.

#[expect(dead_code, reason = "the functions for state files are the log's")]
#[path = "../../log/tests/common/golden.rs"]
mod golden;
#[path = "common/place.rs"]
mod place;

use golden::{INSTANCE, compare, read};
use granary_volume::checkpoint::{self, CheckpointHeader};
use granary_volume::map::{Map, MapKind};
use place::place;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

const NAME: &str = "checkpoint.map.txt";
const BLOCKS: u64 = 5 * 1024 + 10;
const HEADER: CheckpointHeader =
    CheckpointHeader { instance: INSTANCE, block_size: 4096, blocks: BLOCKS, sequence: 7, position: 300 };
const MAPPED: [(u64, u32); 5] =
    [(0, 0), (1, 0x0102_0304), (1023, 9), (3 * 1024 + 5, u32::MAX - 1), (BLOCKS - 1, 77)];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn map(kind: MapKind) -> Box<dyn Map> {
    let map = kind.create(BLOCKS).unwrap();
    for (lba, block) in MAPPED {
        map.set(lba, place(block));
    }
    map
}

#[test]
fn what_is_written_is_what_was_agreed() {
    for kind in MapKind::ALL {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("v.map");
        checkpoint::write(&path, &HEADER, &*map(kind), &mut |_| {}).unwrap();
        compare(&folder(), NAME, &std::fs::read(&path).unwrap());
    }
}

#[test]
fn what_was_agreed_is_read() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("v.map");
    std::fs::write(&path, read(&folder(), NAME)).unwrap();
    for kind in MapKind::ALL {
        let checkpoint = checkpoint::read(&path).unwrap().expect("it is whole");
        assert_eq!(checkpoint.header, HEADER);
        let mut map = kind.create(BLOCKS).unwrap();
        checkpoint.restore(&mut *map, &mut |_| {}).unwrap();
        assert_eq!(map.len(), MAPPED.len() as u64);
        assert!(MAPPED.into_iter().all(|(lba, block)| map.get(lba) == Some(place(block))));
    }
}

/// Reads the golden bytes only by the description in docs/format.md.
#[test]
fn the_documentation_reads_the_golden_bytes() {
    let bytes = read(&folder(), NAME);
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let identity = XxHash3_64::oneshot(&bytes[16..64]);
    assert_eq!((&bytes[..8], u64_at(8)), (&b"GRANMAP1"[..], identity));
    assert_eq!((u32_at(16), u32_at(20), u64_at(24), u64_at(32)), (1, 4096, INSTANCE, BLOCKS));
    assert_eq!((u64_at(40), u32_at(48), &bytes[52..64]), (7, 300, &[0; 12][..]));
    let (pages, mut found) = ((bytes.len() - 64 - 32) / 4112, Vec::new());
    for page in 0..pages {
        let at = 64 + page * 4112;
        let number = u64_at(at);
        let seed = identity ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        assert_eq!(u64_at(at + 8), XxHash3_64::oneshot_with_seed(seed, &bytes[at + 16..at + 4112]));
        let entries = (0..1024).map(|i| (number * 1024 + i, u32_at(at + 16 + 4 * i as usize)));
        found.extend(entries.filter(|(_, raw)| *raw != 0).map(|(lba, raw)| (lba, raw - 1)));
    }
    assert_eq!((pages, &found[..]), (3, &MAPPED[..]));
    let end = bytes.len() - 32;
    assert_eq!((&bytes[end..end + 8], u64_at(end + 8), u64_at(end + 16)), (&b"GRANMEND"[..], 3, 5));
    assert_eq!(u64_at(end + 24), XxHash3_64::oneshot_with_seed(identity, &bytes[end..end + 24]));
}
