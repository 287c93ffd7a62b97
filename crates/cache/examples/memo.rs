//! The results of an expensive function, kept on flash: computed once, by one thread, and found again after a restart.

use granary_cache::Cache;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// The number of primes up to `n`: a while for a large one.
fn count_primes(n: u64) -> u64 {
    (2..=n).filter(|n| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0)).count() as u64
}

/// The same, but only the first time.
fn count_primes_once(cache: &Cache, n: u64) -> Result<u64, Box<dyn Error>> {
    let bytes = cache.get_or_insert_with(&n.to_le_bytes(), || {
        println!("computing {n}");
        Ok::<_, std::convert::Infallible>(count_primes(n).to_le_bytes().to_vec())
    })?;
    Ok(u64::from_le_bytes(bytes.as_slice().try_into()?))
}

fn open(folder: &Path) -> Result<Cache, granary_cache::Error> {
    Ok(Cache::builder().memory(1 << 20).flash(folder.join("primes"), 16 << 20).open()?)
}

/// Computes a few, and finds them again.
pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for _ in 0..2 {
        let cache = open(folder.path())?;
        let begun = Instant::now();
        // Four threads that want the same: one computes it, and the others wait for it.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(count_primes_once(&cache, 200_000).ok(), Some(17_984)));
            }
        });
        println!("{:?}", begun.elapsed());
        cache.close()?;
    }
    Ok(())
}
