//! Many keys at once, from a cache that holds far more on flash than in RAM: the fast way.

use granary_cache::{Cache, Entry, Io, Outcome, now};
use std::error::Error;
use std::time::{Duration, Instant};

const ENTRIES: u32 = 200_000;
const BATCH: usize = 1_000;

/// Fills a cache, and looks a few thousand keys up.
pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let cache = Cache::builder().memory(1 << 20).flash(folder.path().join("numbers"), 64 << 20).open()?;

    let keys: Vec<[u8; 4]> = (0..ENTRIES).map(u32::to_le_bytes).collect();
    let entries: Vec<Entry<'_>> = keys
        .iter()
        .map(|key| Entry {
            key: cache.key(key),
            value: Some(b"some forty bytes that belong to this key"),
            expires_at: 0,
        })
        .collect();
    // Waits for a device that is behind; `put_many` does not, and returns the entries that were not kept.
    cache.put_many_waiting(&entries, Duration::from_secs(10), |i, why| panic!("entry {i}: {why}"));

    // Rings and buffers of this thread.
    let mut io = Io::new();
    let asked: Vec<_> = keys.iter().step_by(17).map(|key| cache.key(key)).collect();
    let (mut hits, begun) = (0, Instant::now());
    for batch in asked.chunks(BATCH) {
        cache.get_many(&mut io, batch, now(), |_, outcome| match outcome {
            Outcome::Hit { value, .. } => {
                assert!(value.starts_with(b"some"));
                hits += 1;
            }
            Outcome::Negative { .. } => println!("the source does not have this key"),
            Outcome::Expired { .. } | Outcome::Miss => {}
        });
    }
    let stats = cache.stats();
    println!(
        "{hits} of {} keys found in {:?}, {} of them on flash",
        asked.len(),
        begun.elapsed(),
        stats.hits_flash
    );
    println!("{:.1} bytes of RAM for an entry", stats.index_bytes as f64 / stats.entries as f64);
    assert!(hits * 100 >= asked.len() * 99);
    cache.close()?;
    Ok(())
}
