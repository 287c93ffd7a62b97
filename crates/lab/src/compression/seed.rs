//! The seed's experiment on Granary: the same values, compressed or not, with four reads for each put.

use crate::{Samples, Skewed};
use granary_cache::{Cache, Compression, Entry, FlashOptions, Io, OpenError, Options, Outcome, Stats};
use std::path::Path;
use std::time::{Duration, Instant};

/// The contenders. Snappy is run by the caller: the cache stores its output.
pub const CONTENDERS: [&str; 4] = ["none", "Snappy", "LZ4, trained", "zstd, trained"];

/// Bytes of values that the cache is filled with.
const FILL_BYTES: usize = 128 << 20;

/// The RAM tier has room for 1/RAM_DIVISOR of the uncompressed values.
const RAM_DIVISOR: u64 = 8;

/// Reads for each write.
const READS: u64 = 4;

const PUT_WAIT: Duration = Duration::from_secs(60);

/// One contender on the values of one kind.
#[derive(Default)]
pub struct SeedFigures {
    /// Bytes of RAM for each entry, with all entries in RAM.
    pub ram_bytes: f64,
    /// Bytes of flash for each entry.
    pub flash_bytes: f64,
    /// Bytes written to flash for each write.
    pub written_bytes: f64,
    /// Part of the reads that the RAM tier answered.
    pub ram_hit_ratio: f64,
    /// Mean microseconds of a read.
    pub read_us: Samples,
    /// Mean microseconds of those reads that went to the device.
    pub flash_read_us: Samples,
    /// Mean microseconds of a write.
    pub write_us: Samples,
}

struct SeedContender {
    compression: Compression,
    snappy: Option<(snap::raw::Encoder, snap::raw::Decoder)>,
}

impl SeedContender {
    fn new(number: usize) -> Self {
        let compression = [Compression::None, Compression::None, Compression::Lz4, Compression::Zstd][number];
        let snappy = (number == 1).then(|| (snap::raw::Encoder::new(), snap::raw::Decoder::new()));
        Self { compression, snappy }
    }

    fn put(&mut self, cache: &Cache, key: u64, value: &[u8]) {
        let compressed;
        let value = match &mut self.snappy {
            Some((encoder, _)) => {
                compressed = encoder.compress_vec(value).expect("there is room");
                &compressed[..]
            }
            None => value,
        };
        let key = key.to_le_bytes();
        let entry = Entry { key: cache.key(&key), value: Some(value), expires_at: 0 };
        cache.put_many_waiting(&[entry], PUT_WAIT, |_, why| panic!("{why}"));
    }

    /// Reads a key and compares the value. A key that looks alike to the index is a miss.
    fn get(&mut self, cache: &Cache, io: &mut Io, key: u64, wanted: &[u8]) {
        let bytes = key.to_le_bytes();
        cache.get_many(io, &[cache.key(&bytes)], 1, |_, outcome| {
            let Outcome::Hit { value, .. } = outcome else { return };
            match &mut self.snappy {
                Some((_, decoder)) => {
                    assert!(decoder.decompress_vec(value).expect("Snappy wrote it") == wanted)
                }
                None => assert!(value == wanted),
            }
        });
    }
}

/// Removes a run's files from a folder.
pub fn remove(folder: &Path) {
    for file in flash(folder).files().unwrap_or_default() {
        // Files that remain are removed with the whole folder.
        let _ = std::fs::remove_file(file);
    }
}

fn flash(folder: &Path) -> FlashOptions {
    FlashOptions::new(folder.join("seed"), 3 * FILL_BYTES as u64)
}

/// Runs one contender; `operations` reads and writes follow the filling.
pub fn run(
    folder: &Path,
    number: usize,
    values: &[Vec<u8>],
    operations: u64,
    figures: &mut SeedFigures,
) -> Result<(), OpenError> {
    let mut contender = SeedContender::new(number);
    let keys = (values.len() * FILL_BYTES / super::bytes(values)) as u64;
    let value = |key: u64| &values[key as usize % values.len()][..];
    let compression = contender.compression;

    let in_ram = Options { memory_bytes: 4 * FILL_BYTES as u64, compression, ..Options::default() };
    let cache = Cache::open(in_ram)?;
    (0..keys).for_each(|key| contender.put(&cache, key, value(key)));
    let stats = cache.stats();
    figures.ram_bytes = (stats.memory_bytes + stats.codec_bytes) as f64 / stats.entries as f64;
    drop(cache);

    let memory_bytes = FILL_BYTES as u64 / RAM_DIVISOR;
    let cache =
        Cache::open(Options { flash: Some(flash(folder)), memory_bytes, compression, ..Options::default() })?;
    (0..keys).for_each(|key| contender.put(&cache, key, value(key)));
    cache.flush().expect("the device takes it");
    let filled = cache.stats();
    figures.flash_bytes = filled.bytes_measured as f64 / filled.records_measured as f64;
    let (mut io, mut random) = (Io::new(), Skewed::new(keys, 0.0, 3));
    let (mut reading, mut writing, mut from_flash) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut flash_reads = 0;
    for operation in 0..operations {
        let key = random.uniform();
        let reads = if operation % (READS + 1) == 0 { None } else { Some(cache.stats().reads) };
        let start = Instant::now();
        match reads {
            None => {
                contender.put(&cache, key, value(key));
                writing += start.elapsed();
            }
            Some(before) => {
                contender.get(&cache, &mut io, key, value(key));
                let took = start.elapsed();
                reading += took;
                if cache.stats().reads > before {
                    (from_flash, flash_reads) = (from_flash + took, flash_reads + 1);
                }
            }
        }
    }
    cache.flush().expect("the device takes it");
    let stats: Stats = cache.stats();
    let writes = operations.div_ceil(READS + 1);
    let mean = |time: Duration, count: u64| time.as_secs_f64() * 1e6 / count.max(1) as f64;
    let hits = stats.hits() - filled.hits();
    figures.written_bytes = (stats.bytes_written - filled.bytes_written) as f64 / writes as f64;
    assert!(hits * 1000 > (operations - writes) * 999, "there is room for all keys, and {hits} were found");
    figures.ram_hit_ratio = (stats.hits_memory - filled.hits_memory) as f64 / hits.max(1) as f64;
    figures.read_us.push(mean(reading, operations - writes));
    figures.flash_read_us.push(mean(from_flash, flash_reads));
    figures.write_us.push(mean(writing, writes));
    Ok(())
}
