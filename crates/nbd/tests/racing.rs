//! READs of a full volume while other clients overwrite and trim the blocks, and segments are cleaned and reused: each
//! block read is complete, the right one, and no older than the version answered before the READ was sent.

mod common;

use common::bytes::*;
use common::random::Random;
use common::serving::Serving;
use granary_nbd::{Exports, VolumeExports};
use granary_volume::{Config, Stats, Volume};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 1024;
const DEPTH: u64 = 32;

fn client(serving: &Serving) -> UnixStream {
    let mut stream = UnixStream::connect(serving.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(&handshake("disk", false)).unwrap();
    stream.read_exact(&mut [0; 18 + (20 + 12) + 20]).unwrap();
    stream
}

/// The cookie of the next reply, which is no error.
fn answer(stream: &mut UnixStream) -> u64 {
    let mut header = [0; 16];
    stream.read_exact(&mut header).expect("a reply comes");
    let (error, cookie) = Heard(&header).simple();
    assert_eq!(error, 0, "{cookie}");
    cookie
}

fn content(lba: u64, version: u64) -> Vec<u8> {
    [lba, version].map(u64::to_le_bytes).concat().repeat(BLOCK as usize / 16)
}

/// The newest versions of a block, begun and answered, counted by its only writer.
#[derive(Default)]
struct Block {
    begun: AtomicU64,
    answered: AtomicU64,
    /// The newest version that is a trim.
    trim_begun: AtomicU64,
}

/// Changes blocks of one half of the volume, as its only writer.
fn change(stream: &mut UnixStream, blocks: &[Block], half: u64, goes_on: impl Fn() -> bool) {
    let (mut random, mut version) = (Random(half), 0);
    while goes_on() {
        version += 1;
        let len = 1 + random.below(12);
        let first = half * (BLOCKS / 2) + random.below(BLOCKS / 2 - len);
        let changed = &blocks[first as usize..(first + len) as usize];
        let is_trim = random.below(16) == 0;
        for block in changed {
            block.begun.store(version, Ordering::SeqCst);
            if is_trim {
                block.trim_begun.store(version, Ordering::SeqCst);
            }
        }
        let asked = if is_trim {
            request(0, TRIM, 0, first * BLOCK, (len * BLOCK) as u32)
        } else {
            let data: Vec<u8> = (first..first + len).flat_map(|lba| content(lba, version)).collect();
            write(0, 0, first * BLOCK, &data)
        };
        stream.write_all(&asked).unwrap();
        answer(stream);
        changed.iter().for_each(|block| block.answered.store(version, Ordering::SeqCst));
    }
}

/// Reads with many READs in flight. Returns the number of blocks read.
fn read(stream: &mut UnixStream, blocks: &[Block], seed: u64, goes_on: impl Fn() -> bool) -> u64 {
    let (mut random, mut next, mut seen) = (Random(seed), 0, 0);
    // By cookie: (the first block, the version of each block answered before).
    let mut asked: HashMap<u64, (u64, Vec<u64>)> = HashMap::new();
    while goes_on() || !asked.is_empty() {
        while goes_on() && (asked.len() as u64) < DEPTH {
            let len = 1 + if random.below(2) == 0 { 0 } else { random.below(40) };
            let first = random.below(BLOCKS - len);
            let range = &blocks[first as usize..(first + len) as usize];
            let answered = range.iter().map(|block| block.answered.load(Ordering::SeqCst)).collect();
            asked.insert(next, (first, answered));
            stream.write_all(&request(0, READ, next, first * BLOCK, (len * BLOCK) as u32)).unwrap();
            next += 1;
        }
        let Some((first, answered)) = asked.remove(&answer(stream)) else { panic!("it was asked") };
        let mut bytes = vec![0; answered.len() * BLOCK as usize];
        stream.read_exact(&mut bytes).unwrap();
        for (lba, (bytes, answered)) in (first..).zip(bytes.chunks_exact(BLOCK as usize).zip(answered)) {
            let Block { begun, trim_begun, .. } = &blocks[lba as usize];
            let version = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
            if bytes.iter().all(|byte| *byte == 0) {
                let trimmed = trim_begun.load(Ordering::SeqCst);
                assert!(
                    trimmed >= answered,
                    "block {lba} is zero: trimmed by {trimmed}, written by {answered}"
                );
            } else {
                assert!(
                    bytes == content(lba, version),
                    "block {lba} is torn, or another: {:?}",
                    &bytes[..16]
                );
                let begun = begun.load(Ordering::SeqCst);
                assert!(
                    (answered..=begun).contains(&version),
                    "block {lba}: {answered} <= {version} <= {begun}"
                );
            }
            seen += 1;
        }
    }
    seen
}

#[test]
fn reads_beside_writes_and_cleaning_are_right() {
    let folder = tempfile::tempdir().unwrap();
    Volume::create(folder.path(), "disk", &Config::new(BLOCKS * BLOCK)).unwrap();
    let volume = Arc::new(Volume::open(folder.path(), "disk", &mut |_, _| {}).unwrap());
    let serving = Serving::new(VolumeExports::new([Arc::clone(&volume)]).open("").unwrap());
    let blocks: Vec<Block> = (0..BLOCKS).map(|_| Block::default()).collect();
    let (begun, enough) = (Instant::now(), Duration::from_secs(5));
    // On a slow machine it goes on longer, until enough is cleaned and read.
    let goes_on = || {
        let elapsed = begun.elapsed();
        let is_enough =
            |stats: Stats| stats.segments_cleaned > stats.segments && stats.bytes_read > 10 * BLOCKS * BLOCK;
        elapsed < enough || elapsed < 24 * enough && !is_enough(volume.stats())
    };
    // All of it is in use.
    for lba in 0..BLOCKS {
        let mut io = granary_volume::Io::new();
        volume.write(&mut io, lba * BLOCK, &content(lba, 0)).unwrap();
    }
    let seen: u64 = std::thread::scope(|scope| {
        let (serving, blocks, goes_on) = (&serving, &blocks[..], &goes_on);
        for half in 0..2 {
            scope.spawn(move || change(&mut client(serving), blocks, half, goes_on));
        }
        let readers =
            [7, 8].map(|seed| scope.spawn(move || read(&mut client(serving), blocks, seed, goes_on)));
        readers.map(|reader| reader.join().unwrap()).into_iter().sum()
    });
    let stats = volume.stats();
    println!("{seen} blocks read, {stats:?}");
    assert!(stats.segments_cleaned > stats.segments && stats.damaged == 0, "{stats:?}");
    assert!(seen > 10 * BLOCKS, "{seen} blocks read");
}
