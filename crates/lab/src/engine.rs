//! Measurements of the cache by itself.

use granary_cache::{Cache, Entry, FlashOptions, Io, Key, OpenError, Options, Outcome};
use std::path::Path;
use std::time::{Duration, Instant};

/// Keys that one `get_many` or `put_many` takes here.
const BATCH: usize = 65_536;

/// What a run of lookups did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineRun {
    /// Keys looked up.
    pub lookups: u64,
    /// Keys found.
    pub hits: u64,
    /// Blocks read.
    pub block_reads: u64,
    /// Time it took.
    pub seconds: f64,
}

fn options(path: &Path, file_size: u64) -> Options {
    Options { flash: Some(FlashOptions::new(path, file_size)), memory_bytes: 0, memory_entries: None }
}

fn fill(cache: &Cache, keys: u64, value: &[u8]) {
    for first in (0..keys).step_by(BATCH) {
        let bytes: Vec<[u8; 8]> = (first..keys.min(first + BATCH as u64)).map(u64::to_le_bytes).collect();
        let entries: Vec<Entry<'_>> =
            bytes.iter().map(|k| Entry { key: Key::new(k), value: Some(value), expires_at: 0 }).collect();
        cache.put_many(&entries);
        // At the speed of the device, lest entries are dropped.
        cache.flush();
    }
}

/// One wanted key a block: values of almost a block in a file of `file_size` bytes, `lookups` keys
/// in random order, no RAM tier. The file is `<path>.bin`; it stays, for fio to read.
pub fn block_reads(
    path: &Path,
    file_size: u64,
    lookups: u64,
) -> Result<impl FnMut() -> EngineRun, OpenError> {
    let cache = Cache::open(options(path, file_size))?;
    let keys = file_size / 4096 * 9 / 10;
    if cache.stats().entries < keys / 2 {
        fill(&cache, keys, &vec![7; 4000]);
    }
    let mut io = Io::new();
    let mut stride = 0x9E37_79B9_7F4A_7C15u64;
    Ok(move || {
        stride = stride.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let before = cache.stats();
        let mut hits = 0;
        let start = Instant::now();
        for first in (0..lookups).step_by(BATCH) {
            let numbers =
                (first..lookups.min(first + BATCH as u64)).map(|i| i.wrapping_mul(stride | 1) >> 20);
            let bytes: Vec<[u8; 8]> = numbers.map(|n| (n % keys).to_le_bytes()).collect();
            let batch: Vec<Key<'_>> = bytes.iter().map(|k| Key::new(k)).collect();
            cache.get_many(&mut io, &batch, 1, |_, o| hits += u64::from(matches!(o, Outcome::Hit { .. })));
        }
        let seconds = start.elapsed().as_secs_f64();
        EngineRun { lookups, hits, block_reads: cache.stats().block_reads - before.block_reads, seconds }
    })
}

/// How long it took to open a cache again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reopening {
    /// Entries put.
    pub entries: u64,
    /// After a clean stop, and how many entries were there.
    pub clean: (Duration, u64),
    /// After kill -9, and how many entries were there.
    pub killed: (Duration, u64),
}

fn reopening_options(path: &Path, entries: u64) -> Options {
    options(path, (entries * 64).next_multiple_of(1 << 20).max(4 << 20))
}

/// Fills a cache with `entries` small entries and opens it again after a clean stop, and after `kill`,
/// which lets another process run [`write_until_killed`] and kills it.
pub fn reopening<E: From<OpenError>>(
    path: &Path,
    entries: u64,
    kill: impl FnOnce() -> Result<(), E>,
) -> Result<Reopening, E> {
    let open = || -> Result<(Cache, Duration), OpenError> {
        let start = Instant::now();
        let cache = Cache::open(reopening_options(path, entries))?;
        Ok((cache, start.elapsed()))
    };
    let (cache, _) = open()?;
    fill(&cache, entries, &[7; 24]);
    drop(cache);
    let (cache, clean) = open()?;
    let clean = (clean, cache.stats().entries);
    drop(cache);
    kill()?;
    let (cache, killed) = open()?;
    let killed = (killed, cache.stats().entries);
    Ok(Reopening { entries, clean, killed })
}

/// Opens the cache that [`reopening`] has filled, says so by `ready`, and writes its entries again and again.
pub fn write_until_killed(path: &Path, entries: u64, ready: impl FnOnce()) -> Result<(), OpenError> {
    let cache = Cache::open(reopening_options(path, entries))?;
    ready();
    loop {
        fill(&cache, entries, &[8; 24]);
    }
}
