//! The time to take over a RAM tier after a kill, and its speed: `killed ENTRIES MEMORY_MIB ROUNDS [LOOKUPS]`. The same
//! entries lie in a file on tmpfs and in private memory, in turn.

use granary_cache::admission::Admission;
use granary_cache::limits::DEFAULT_MEMORY_FOLDER;
use granary_cache::{Cache, Entry, FlashOptions, Io, Options, Outcome, testing};
use std::path::Path;
use std::time::Instant;

/// Processor seconds of this thread: waiting for a processor does not count.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds: u64 = text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    nanoseconds as f64 / 1e9
}

const BATCH: u64 = 1000;

/// Processor seconds of all threads of the process.
fn process_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let ticks = text.split(' ').skip(13).take(2).map(|word| word.parse::<u64>().expect("a number"));
    ticks.sum::<u64>() as f64 / 100.0
}

fn options(folder: &Path, memory_folder: &Path, memory_bytes: u64, is_shared: bool) -> Options {
    let mut flash = FlashOptions::new(folder.join(if is_shared { "shared" } else { "own" }), 64 << 20);
    flash.admission = Admission::None;
    flash.memory_folder = is_shared.then(|| memory_folder.into());
    Options { flash: Some(flash), memory_bytes, ..Options::default() }
}

fn fill(cache: &Cache, entries: u64) -> f64 {
    let begun = processor_seconds();
    for first in (0..entries).step_by(BATCH as usize) {
        let keys: Vec<[u8; 8]> = (first..(first + BATCH).min(entries)).map(u64::to_le_bytes).collect();
        let entries =
            keys.iter().map(|key| Entry { key: cache.key(key), value: Some(&key[..]), expires_at: 0 });
        cache.put_many(&entries.collect::<Vec<_>>());
    }
    entries as f64 / (processor_seconds() - begun) / 1e6
}

fn read(cache: &Cache, entries: u64, batch: u64, lookups: u64) -> f64 {
    let (mut io, mut random, mut hits) = (Io::new(), 1u64, 0u64);
    let begun = processor_seconds();
    for _ in 0..lookups / batch {
        let mut keys = Vec::with_capacity(batch as usize);
        for _ in 0..batch {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            keys.push((random % entries).to_le_bytes());
        }
        let asked: Vec<_> = keys.iter().map(|key| cache.key(key)).collect();
        cache.get_many(&mut io, &asked, 1, |i, outcome| {
            let Outcome::Hit { value, .. } = outcome else { return };
            assert_eq!(value, keys[i]);
            hits += 1;
        });
    }
    assert!(hits * 100 >= lookups * 99, "{hits} of {lookups} are there");
    lookups as f64 / (processor_seconds() - begun) / 1e6
}

fn main() {
    run(&std::env::args().skip(1).collect::<Vec<String>>());
}

/// Measures with these arguments.
pub fn run(arguments: &[String]) {
    let numbers: Vec<u64> = arguments.iter().map(|word| word.parse().expect("a number")).collect();
    let (entries, memory_mib, rounds, lookups) = match numbers[..] {
        [entries, memory_mib, rounds] => (entries, memory_mib, rounds, 4_000_000),
        [entries, memory_mib, rounds, lookups] => (entries, memory_mib, rounds, lookups),
        _ => panic!("killed ENTRIES MEMORY_MIB ROUNDS [LOOKUPS]"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let memory_folder = tempfile::tempdir_in(DEFAULT_MEMORY_FOLDER).expect("a folder on tmpfs");
    for _ in 0..rounds {
        for is_shared in [false, true] {
            let options = options(folder.path(), memory_folder.path(), memory_mib << 20, is_shared);
            let cache = Cache::open(options.clone()).expect("it opens");
            let put = fill(&cache, entries);
            let [one, many] = [1, 1000].map(|batch| read(&cache, entries, batch, lookups));
            let stats = cache.stats();
            println!(
                "shared {is_shared}: {put:.2} M puts/s, {one:.2} and {many:.2} M gets/s (1 and 1000 at once), {} entries, \
                 {:.2} bytes each",
                stats.memory_entries,
                stats.memory_bytes as f64 / stats.memory_entries as f64
            );
            testing::abandon(cache);
            let (begun, processor_begun) = (Instant::now(), process_seconds());
            let cache = Cache::open(options).expect("it opens");
            let (seconds, processor) = (begun.elapsed().as_secs_f64(), process_seconds() - processor_begun);
            println!(
                "shared {is_shared}: opened in {seconds:.3} s after a kill ({processor:.2} s of processors), {} \
                 entries are there",
                cache.stats().taken_over
            );
            cache.close().expect("it stops");
        }
    }
}
