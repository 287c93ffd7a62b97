//! The largest volumes.

use granary_volume::map::Place;
use granary_volume::{Config, Error};

#[test]
fn a_volume_is_as_large_as_there_are_places_for_its_log() {
    for block_size in [4096, 8192, 16384] {
        let config = |size| Config { block_size, ..Config::new(size) };
        let most = |size: u64| {
            let Err(Error::Invalid { option: "size", reason }) = config(size).geometry() else {
                panic!("{size} bytes are too many");
            };
            let (_, most) = reason.rsplit_once("a volume has ").unwrap();
            most.strip_suffix(" at most").unwrap().parse::<u64>().unwrap()
        };
        let greatest = u64::MAX - u64::MAX % block_size;
        let size = most(greatest);
        assert_eq!(most(size + block_size), size);
        let geometry = config(size).geometry().unwrap();
        let segment = u64::from(geometry.blocks_per_segment());
        assert!(geometry.blocks() <= Place::BLOCKS_MAX && geometry.blocks() + segment > Place::BLOCKS_MAX);
        println!("{block_size}: {size} bytes, {:.1} TiB", size as f64 / (1_u64 << 40) as f64);
    }
}
