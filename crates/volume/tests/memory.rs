//! RAM, counted at the allocator. Maps: `bytes_allocated` equals the allocated bytes, which are given back while the
//! map is in use. Starts: the replay of the log takes no RAM.

#[path = "../../log/tests/common/counting.rs"]
mod counting;
#[path = "common/place.rs"]
mod place;

use counting::{ALONE, allocated, allocated_by_this_thread, most_allocated};
use granary_volume::map::{Map, MapKind};
use granary_volume::{Config, Io, Volume};
use place::place;

/// The RAM of the process.
fn resident_bytes() -> i64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<i64>().unwrap() * 4096
}

/// Compares the map's own count with the bytes allocated since `before`, which may differ by `percent`.
fn compare(map: &dyn Map, before: i64, percent: i64, what: &str) {
    let (said, counted) = (map.bytes_allocated() as i64, allocated_by_this_thread() - before);
    let allowed = said * percent / 100 + 4096;
    assert!((said - counted).abs() <= allowed, "{what}: {said} bytes said, {counted} counted");
}

#[test]
fn maps_say_what_they_allocate() {
    const BLOCKS: u64 = 4_000_000;
    const MAPPED: u64 = 500_000;
    for (kind, percent, at_most) in [
        (MapKind::Flat, 0, BLOCKS * 4 * 1001 / 1000),
        (MapKind::Hash, 0, MAPPED * 22 + BLOCKS / 32),
        (MapKind::SkipList, 2, MAPPED * 41),
    ] {
        let _alone = ALONE.lock().unwrap();
        let before = allocated_by_this_thread();
        let map = kind.create(BLOCKS).unwrap();
        compare(&*map, before, percent, "empty");
        for i in 0..MAPPED {
            map.set(i * 7, place(i as u32));
        }
        compare(&*map, before, percent, "filled");
        assert!(map.bytes_allocated() <= at_most, "{kind}: {} bytes", map.bytes_allocated());
        // Overwrites take nothing.
        let filled = map.bytes_allocated();
        for i in 0..MAPPED {
            map.set(i * 7, place(1));
        }
        compare(&*map, before, percent, "overwritten");
        assert_eq!(map.bytes_allocated(), filled);
        // Blocks that come and go do not add up.
        for i in 0..4 * MAPPED {
            map.set(3_500_001 + i % 400_000, place(1));
            map.remove(3_500_001 + i % 400_000);
        }
        compare(&*map, before, percent + 1, "churned");
        assert!(map.bytes_allocated() <= at_most, "{kind}: {} bytes, churned", map.bytes_allocated());
        // RAM of unmapped blocks is given back, except by the flat map, which has a place for each block.
        for i in 0..MAPPED {
            map.remove(i * 7);
        }
        if kind != MapKind::Flat {
            let counted = allocated_by_this_thread() - before;
            assert!(counted < filled as i64 / 10, "{kind}: {counted} bytes after all were unmapped");
        }
        drop(map);
        // A few removed entries of the skip list are freed only at the next use of any.
        let left = allocated_by_this_thread() - before;
        assert!(left <= 64 << 10, "{kind}: {left} bytes left");
    }
}

/// A thin volume costs no RAM where it was never written.
#[test]
fn a_flat_map_takes_ram_by_the_page_that_is_mapped() {
    let _alone = ALONE.lock().unwrap();
    let before = resident_bytes();
    let map = MapKind::Flat.create(1 << 28).unwrap();
    let page = 1024;
    for i in 0..100 {
        map.set(i * 1024 * page, place(1));
        assert_eq!(map.remove(i * 1024 * page + 512 * page), None);
    }
    assert_eq!((map.get((1 << 28) - 1), map.bytes_allocated() >> 30), (None, 1));
    // 100 places in pages of their own, which may be of 2 MiB, and counters.
    let taken = resident_bytes() - before;
    assert!(taken < 230 << 20, "{taken} bytes of RAM for 100 places");
    // A scan reads counters, not places.
    let mut next = map.next_mapped(0);
    let mut found = 0;
    while let Some((lba, _)) = next {
        found += 1;
        next = map.next_mapped(lba + 1);
    }
    assert_eq!(found, 100);
    assert!(resident_bytes() - before < taken + (1 << 20));
}

/// Entries of segments since the checkpoint are read one segment at a time.
#[test]
fn a_start_after_a_kill_takes_no_ram_for_what_it_repeats() {
    const MIB: u64 = 1 << 20;
    // Tests that measure RAM take turns.
    let _alone = ALONE.lock().unwrap();
    let config = Config { block_size: 512, segment_bytes: MIB, map: MapKind::Hash, ..Config::new(2 << 30) };
    let folder = tempfile::tempdir().unwrap();
    Volume::create(folder.path(), "v", &config).unwrap();
    let open = || Volume::open(folder.path(), "v", &mut |_, _| {}).unwrap();
    let (volume, mut io, content) = (open(), Io::new(), vec![7; MIB as usize]);
    // The same blocks each time: the map has few.
    for _ in 0..200 {
        volume.write(&mut io, 0, &content).unwrap();
    }
    volume.commit().unwrap();
    let since = volume.stats().segments_since_checkpoint;
    assert!(since > 200, "{since} segments are to be repeated");
    volume.abandon();
    drop(io);
    let before = allocated();
    let (most, volume) = most_allocated(open);
    let taken = (most - before) as u64;
    assert!(taken < 6 * MIB, "{taken} bytes");
    volume.close().unwrap();
}
