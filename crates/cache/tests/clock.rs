//! A clock that was ahead for a moment.

use granary_cache::admission::Admission;
use granary_cache::{Cache, Entry, FlashOptions, Io, Options, Outcome};

const KEYS: u64 = 20_000;
const NOW: u32 = 1_000_000;

fn found(ahead: Option<u32>) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut flash = FlashOptions::new(folder.path().join("c"), 64 << 20);
    flash.hash_seed = Some(1);
    flash.admission = Admission::Probability(1.0);
    let options = Options { flash: Some(flash), memory_bytes: 1 << 20, ..Options::default() };
    let cache = Cache::open(options).unwrap();
    let mut io = Io::new();
    let mut get = |key: u64, now: u32| {
        let mut found = false;
        cache.get_many(&mut io, &[cache.key(&key.to_le_bytes())], now, |_, outcome| {
            found = matches!(outcome, Outcome::Hit { .. });
        });
        found
    };
    // A lookup while the clock is ahead; then it is set right, and all that is put lives for an hour.
    if let Some(ahead) = ahead {
        get(0, NOW + ahead);
    }
    for key in 0..KEYS {
        let name = key.to_le_bytes();
        cache.put_many(&[Entry { key: cache.key(&name), value: Some(&[7; 200]), expires_at: NOW + 3600 }]);
        if key % 50 == 49 {
            get(key, NOW);
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
    }
    let found = (0..KEYS).filter(|key| get(*key, NOW)).count() as u64;
    (found, cache.stats().expired_memory)
}

#[test]
fn items_outlive_a_clock_that_was_ahead() {
    let right = found(None);
    let ahead = found(Some(7200));
    println!("found, and counted as expired: {right:?}, after the clock was ahead {ahead:?}");
    assert!(right.0 > KEYS * 9 / 10 && right.1 == 0, "{right:?}");
    assert!(ahead.0 > KEYS * 9 / 10 && ahead.1 == 0, "{ahead:?} of {KEYS}: nothing has come to its end");
}
