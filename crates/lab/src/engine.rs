//! Measurements of the cache alone.

use crate::workload::Skewed;
use granary_cache::{Cache, Entry, FlashOptions, Io, Key, OpenError, Options, Outcome};
use std::path::Path;
use std::time::{Duration, Instant};

/// Keys that one `get_many` or `put_many` takes here.
const BATCH: usize = 65_536;

/// Bytes of values that are put together: less than the write buffers hold.
const FILL_BYTES: u64 = 512 << 10;

/// Results of a run of lookups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineRun {
    /// Keys looked up.
    pub lookups: u64,
    /// Keys found.
    pub hits: u64,
    /// Blocks read.
    pub block_reads: u64,
    /// Reads of the device for these blocks: neighbouring blocks share one.
    pub reads: u64,
    /// Time it took.
    pub seconds: f64,
}

fn options(path: &Path, file_size: u64) -> Options {
    Options { flash: Some(FlashOptions::new(path, file_size)), ..Options::default() }
}

/// Puts `keys` entries. Entries that the write buffers had no room for are put again, so that all are stored and no
/// segment goes to the device half empty.
fn fill(cache: &Cache, keys: u64, value: &[u8]) {
    let batch = (FILL_BYTES / value.len() as u64).clamp(1, BATCH as u64);
    let mut first = 0;
    while first < keys {
        let next = keys.min(first + batch);
        let bytes: Vec<[u8; 8]> = (first..next).map(u64::to_le_bytes).collect();
        let entries: Vec<Entry<'_>> =
            bytes.iter().map(|k| Entry { key: cache.key(k), value: Some(value), expires_at: 0 }).collect();
        let dropped = cache.stats().puts_dropped;
        cache.put_many(&entries);
        if cache.stats().puts_dropped == dropped {
            first = next;
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    cache.flush().expect("the device takes it");
}

/// One wanted key a block: values of almost a block in a file of `file_size` bytes, `lookups` random
/// keys a run, no RAM tier. The file is `<path>.bin`; it stays, for fio to read, and is written
/// throughout: a file system answers reads of what was never written without asking the device.
pub fn block_reads(
    path: &Path,
    file_size: u64,
    lookups: u64,
) -> Result<impl FnMut() -> EngineRun, OpenError> {
    let cache = Cache::open(options(path, file_size))?;
    // One round of the ring: it holds the newest of them.
    let keys = file_size / 4096;
    fill(&cache, keys, &[7; 4000]);
    let stored = cache.stats().entries;
    let mut io = Io::new();
    let mut random = Skewed::new(stored, 0.0, 1);
    Ok(move || {
        let before = cache.stats();
        let mut hits = 0;
        let start = Instant::now();
        for first in (0..lookups).step_by(BATCH) {
            let wanted = (lookups - first).min(BATCH as u64);
            let bytes: Vec<[u8; 8]> =
                (0..wanted).map(|_| (keys - 1 - random.uniform()).to_le_bytes()).collect();
            let batch: Vec<Key<'_>> = bytes.iter().map(|k| cache.key(k)).collect();
            cache.get_many(&mut io, &batch, 1, |_, o| hits += u64::from(matches!(o, Outcome::Hit { .. })));
        }
        let seconds = start.elapsed().as_secs_f64();
        let after = cache.stats();
        EngineRun {
            lookups,
            hits,
            block_reads: after.block_reads - before.block_reads,
            reads: after.reads - before.reads,
            seconds,
        }
    })
}

/// How long it took to reopen a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reopening {
    /// Entries put.
    pub entries: u64,
    /// After a clean stop: the time, and the entries found.
    pub clean: (Duration, u64),
    /// After kill -9: the time, and the entries found.
    pub killed: (Duration, u64),
}

fn reopening_options(path: &Path, entries: u64) -> Options {
    options(path, (entries * 64).next_multiple_of(1 << 20).max(4 << 20))
}

/// Fills a cache with `entries` small entries and reopens it after a clean stop, and after `kill`, which lets another
/// process run [`write_until_killed`] and kills it.
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

/// Opens the cache that [`reopening`] has filled, calls `ready`, and writes its entries again and again.
pub fn write_until_killed(path: &Path, entries: u64, ready: impl FnOnce()) -> Result<(), OpenError> {
    let cache = Cache::open(reopening_options(path, entries))?;
    ready();
    loop {
        fill(&cache, entries, &[8; 24]);
    }
}
