//! Requests as the driver makes them, carried out on real volumes, without a driver.

use granary_ublk::{Kind, Request, answer, driver_result};
use granary_volume::{Config, Io, Volume};
use rustix::io::Errno;
use std::path::Path;

const BLOCK: u64 = 4096;
const SIZE: u64 = 16 << 20;

fn volume(folder: &Path) -> Volume {
    Volume::create(folder, "disk", &Config::new(SIZE)).unwrap();
    open(folder)
}

fn open(folder: &Path) -> Volume {
    Volume::open(folder, "disk", &mut |_, _| {}).unwrap()
}

fn request(kind: Kind, offset: u64, len: u64) -> Request {
    Request { kind, offset, len, is_forced: false }
}

#[test]
fn sectors_are_written_and_read_within_blocks_and_across_them() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, mut io) = (volume(folder.path()), Io::new());
    let mut expected = vec![0; SIZE as usize];
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..3000 {
        let offset = random.u64(..SIZE / 512 / 64) * 512;
        let len = random.u64(1..=64) * 512;
        let range = offset as usize..(offset + len) as usize;
        let mut buffer = vec![round as u8; len as usize];
        let kind =
            random.choice([Kind::Read, Kind::Write, Kind::Write, Kind::WriteZeroes, Kind::Flush]).unwrap();
        let asked = match kind {
            Kind::Flush => request(kind, 0, 0),
            kind => request(kind, offset, len),
        };
        let transferred = if matches!(kind, Kind::Read | Kind::Write) { len } else { 0 };
        assert_eq!(answer(&volume, &mut io, asked, &mut buffer), Ok(transferred));
        match kind {
            Kind::Read => assert!(buffer == expected[range], "{asked:?}"),
            Kind::Write => expected[range].copy_from_slice(&buffer),
            Kind::WriteZeroes => expected[range].fill(0),
            Kind::Flush | Kind::Discard => {}
        }
    }
    let stats = volume.stats();
    let flushed = stats.flush_latency.total;
    assert!(stats.read_latency.count() > 0 && !flushed.is_zero(), "{stats:?}");
}

#[test]
fn discarded_blocks_are_zero_and_take_no_space() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, mut io) = (volume(folder.path()), Io::new());
    let mut buffer = vec![7; 16 * BLOCK as usize];
    answer(&volume, &mut io, request(Kind::Write, 0, 16 * BLOCK), &mut buffer).unwrap();
    assert_eq!(volume.stats().blocks_mapped, 16);
    // Of the first and the last of these only a part.
    let asked = request(Kind::Discard, BLOCK / 2, 8 * BLOCK);
    assert_eq!(answer(&volume, &mut io, asked, &mut []), Ok(0));
    assert_eq!(volume.stats().blocks_mapped, 16 - 7);
    answer(&volume, &mut io, request(Kind::Read, 0, 16 * BLOCK), &mut buffer).unwrap();
    for (block, bytes) in buffer.chunks_exact(BLOCK as usize).enumerate() {
        let expected = if (1..8).contains(&block) { 0 } else { 7 };
        assert!(bytes.iter().all(|byte| *byte == expected), "block {block}");
    }
}

/// The kernel discards up to 4 GiB at once, which is more than the driver's results can say.
#[test]
fn long_discards_are_no_errors() {
    let folder = tempfile::tempdir().unwrap();
    Volume::create(folder.path(), "disk", &Config::new(8 << 30)).unwrap();
    let (volume, mut io) = (open(folder.path()), Io::new());
    for kind in [Kind::Discard, Kind::WriteZeroes] {
        for len in [2 << 30, (4 << 30) - BLOCK] {
            let answered = answer(&volume, &mut io, request(kind, 0, len), &mut []);
            assert_eq!(driver_result(answered), 0, "{kind:?} {len}");
        }
    }
    assert_eq!(driver_result(Ok(u64::MAX)), i32::MAX);
    assert_eq!(driver_result(Err(Errno::IO)), -5);
}

/// A kill after a flush, or after a write that says so itself.
#[test]
fn what_was_flushed_or_forced_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, mut io) = (volume(folder.path()), Io::new());
    for offset in [0, 2 * BLOCK] {
        answer(&volume, &mut io, request(Kind::Write, offset, BLOCK), &mut [1; BLOCK as usize]).unwrap();
    }
    answer(&volume, &mut io, request(Kind::Flush, 0, 0), &mut []).unwrap();
    let forced = |kind, offset| Request { is_forced: true, ..request(kind, offset, BLOCK) };
    answer(&volume, &mut io, forced(Kind::Write, BLOCK), &mut [2; BLOCK as usize]).unwrap();
    answer(&volume, &mut io, forced(Kind::WriteZeroes, 0), &mut []).unwrap();
    answer(&volume, &mut io, forced(Kind::Discard, 2 * BLOCK), &mut []).unwrap();
    volume.abandon();
    let volume = open(folder.path());
    let mut found = [9; 3 * BLOCK as usize];
    answer(&volume, &mut io, request(Kind::Read, 0, 3 * BLOCK), &mut found).unwrap();
    assert_eq!([0, 1, 2].map(|block| found[block * BLOCK as usize]), [0, 2, 0]);
}

#[test]
fn a_buffer_of_another_length_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, mut io) = (volume(folder.path()), Io::new());
    for kind in [Kind::Read, Kind::Write] {
        let asked = request(kind, 0, BLOCK);
        assert_eq!(answer(&volume, &mut io, asked, &mut [0; 512]), Err(Errno::INVAL));
    }
    assert_eq!(volume.stats().blocks_mapped, 0);
}
