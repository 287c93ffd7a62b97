//! The largest volumes, and how much of a volume's file is not content.

use granary_volume::map::Place;
use granary_volume::{Config, Error, Io, Volume};

const MIB: u64 = 1 << 20;

/// The greatest share of a segment that is not content, in percent: header, footer and summary.
fn percent_beside_content(config: &Config) -> f64 {
    let blocks = config.segment_bytes / config.block_size;
    (blocks - config.blocks_per_segment().unwrap()) as f64 / blocks as f64 * 100.0
}

/// The file's bytes for a byte of the volume.
fn file_for_a_byte(config: &Config) -> f64 {
    config.geometry().unwrap().file_bytes() as f64 / config.size as f64
}

/// The figures of docs/volume.md.
#[test]
fn what_is_not_content_takes_no_more_than_is_said() {
    let sizes = (4..23).flat_map(|log| [MIB << log, (MIB << log) * 5 / 4, (MIB << log) + 16384]);
    for (block_size, bounds) in [
        (4096, [(0, 4.7), (256, 2.4), (512, 2.0), (1024, 1.4), (2048, 1.1)]),
        (16384, [(0, 18.8), (256, 9.4), (512, 4.7), (1024, 2.4), (2048, 1.2)]),
    ] {
        for size in sizes.clone() {
            let config = Config { block_size, ..Config::new(size) };
            let (_, bound) = bounds.iter().rfind(|(above, _)| size > above * MIB).unwrap();
            let percent = percent_beside_content(&config);
            assert!(percent <= *bound, "{size} bytes in blocks of {block_size}: {percent} %");
            let file = file_for_a_byte(&config);
            let bounds = [(256, 1.38, 1.18), (8192, 1.13, 1.13)];
            for (from, of_large_blocks, of_small_blocks) in bounds {
                let bound = if block_size == 16384 { of_large_blocks } else { of_small_blocks };
                assert!(
                    size < from * MIB || file < bound + 0.005,
                    "{size} bytes in blocks of {block_size} take {file} of them"
                );
            }
            // Segments long enough for 2 % have more in those that are beside the content.
            let longer = Config { segment_bytes: MIB, ..config.clone() };
            if block_size == 4096 && size <= 512 * MIB {
                let longer = file_for_a_byte(&longer);
                assert!(file < longer, "{size} bytes take {file} of them, and {longer} in longer segments");
            }
        }
    }
}

/// Header, footer and summary take at most [`percent_beside_content`] of what is written for full segments.
#[test]
fn full_segments_have_the_content_that_is_said() {
    let said = [3.2, 1.6, 0.8, 0.6, 0.6];
    for (segment_bytes, said) in [MIB / 4, MIB / 2, MIB, 2 * MIB, 4 * MIB].into_iter().zip(said) {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { segment_bytes, ..Config::new(64 * MIB) };
        Volume::create(folder.path(), "v", &config).unwrap();
        let volume = Volume::open(folder.path(), "v", &mut |_, _| {}).unwrap();
        let before = volume.stats();
        let (mut io, content) = (Io::new(), vec![7; MIB as usize]);
        for offset in (0..config.size).step_by(content.len()) {
            volume.write(&mut io, offset, &content).unwrap();
        }
        volume.commit().unwrap();
        let after = volume.stats();
        let written = (after.device_bytes_written - before.device_bytes_written) as f64;
        let percent = (1.0 - config.size as f64 / written) * 100.0;
        let bound = percent_beside_content(&config);
        assert!(percent < bound, "{segment_bytes}: {percent} % of {written}, {bound} % at most");
        assert!((percent - said).abs() < 0.05, "{segment_bytes}: {percent} %, and not {said} %");
        volume.close().unwrap();
    }
}

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
