//! The time to look up a key in RAM: `hits ENTRIES VALUE_BYTES BATCH ROUNDS [MEMORY_FOLDER]`. Nanoseconds of this
//! thread's processor for each key, the lowest and the median of the rounds.

use granary_cache::{Cache, Entry, Io, Outcome};

/// Processor seconds of this thread: waiting for a processor does not count.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds: u64 = text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    nanoseconds as f64 / 1e9
}

fn main() {
    run(&std::env::args().skip(1).collect::<Vec<String>>());
}

/// Measures with these arguments.
pub fn run(arguments: &[String]) {
    let numbers: Vec<usize> = arguments.iter().take(4).map(|word| word.parse().expect("a number")).collect();
    let [entries, value_bytes, batch, rounds] = numbers[..] else {
        panic!("hits ENTRIES VALUE_BYTES BATCH ROUNDS [MEMORY_FOLDER]")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let memory = (entries * (value_bytes + 64) * 2) as u64;
    let flash_bytes = memory.clamp(16 << 20, 256 << 20);
    let mut builder = Cache::builder().memory(memory).flash(folder.path().join("hits"), flash_bytes);
    if let Some(folder) = arguments.get(4) {
        builder = builder.memory_folder(folder);
    }
    let cache = builder.open().expect("it opens");
    let keys: Vec<[u8; 8]> = (0..entries as u64).map(u64::to_le_bytes).collect();
    let value = vec![7; value_bytes];
    for keys in keys.chunks(1000) {
        let entry = |key| Entry { key: cache.key(key), value: Some(&value), expires_at: 0 };
        let entries: Vec<Entry<'_>> = keys.iter().map(|key| entry(&key[..])).collect();
        let second = std::time::Duration::from_secs(1);
        cache.put_many_waiting(&entries, second, |_, why| panic!("{why}"));
    }
    let mut random = fastrand::Rng::with_seed(1);
    let batches: Vec<Vec<_>> = (0..2_000_000 / batch / (1 + value_bytes / 200))
        .map(|_| (0..batch).map(|_| cache.key(&keys[random.usize(..entries)])).collect())
        .collect();
    let (mut io, mut times) = (Io::new(), Vec::new());
    for _ in 0..rounds {
        let (mut hits, mut sum, begun) = (0usize, 0u64, processor_seconds());
        for batch in &batches {
            cache.get_many(&mut io, batch, 1, |_, outcome| {
                let Outcome::Hit { value, .. } = outcome else { return };
                hits += 1;
                sum += u64::from(value[value.len() / 2]);
            });
        }
        times.push((processor_seconds() - begun) * 1e9 / (batches.len() * batch) as f64);
        assert!(hits * 100 >= batches.len() * batch * 99 && sum == 7 * hits as u64);
    }
    times.sort_unstable_by(f64::total_cmp);
    println!(
        "{value_bytes} bytes, {batch} at once: {:.1} ns (lowest), {:.1} (median)",
        times[0],
        times[rounds / 2]
    );
}
