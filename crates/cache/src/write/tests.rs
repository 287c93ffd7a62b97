use crate::{Cache, Engine, Entry, FlashOptions, Io, Key, KeyHasher, Options, Outcome};
use std::time::Duration;

/// What is put at once is published at the end; by then the flusher may have emptied slots of the first
/// of it for what comes next.
#[test]
fn what_the_ring_passed_before_it_was_published_is_not_published() {
    const SEGMENTS: usize = 64;
    const HASH_SEED: u64 = 1;
    // A put publishes its entries shard by shard, in the order of the hashes.
    let bytes: Vec<[u8; 8]> = (0..1_008u64).map(u64::to_le_bytes).collect();
    let hasher = KeyHasher::with_seed(HASH_SEED);
    let keys: Vec<Key<'_>> = bytes.iter().map(|key| hasher.key(key)).collect();
    let mut by_hash = keys[..1_000].to_vec();
    by_hash.sort_by_key(|key| key.hash());
    let gate = by_hash[0];
    for blocks in [1, 16] {
        let folder = tempfile::tempdir().unwrap();
        let mut flash = FlashOptions::new(folder.path().join("c"), SEGMENTS as u64 * blocks * 512);
        (flash.block_size, flash.write_buffer_size, flash.hash_seed) = (512, blocks * 512, Some(HASH_SEED));
        let cache = Cache::open(Options { flash: Some(flash), ..Options::default() }).unwrap();
        // Each fills a segment, all together the file; the gate is published first.
        let value = vec![7; 300 * blocks as usize];
        let batch: Vec<Entry<'_>> = by_hash[1_001 - SEGMENTS..]
            .iter()
            .chain([&gate])
            .map(|key| Entry { key: *key, value: Some(&value), expires_at: 0 })
            .collect();
        std::thread::scope(|scope| {
            let shard = cache.partitions[0].shared.shard(gate.hash());
            let put = scope.spawn(|| cache.put_many(&batch));
            // Meanwhile the flusher writes what is full and empties slots.
            std::thread::sleep(Duration::from_millis(100));
            assert!(!put.is_finished(), "it waits for the lock of the shard");
            drop(shard);
        });
        // Over what was emptied.
        for key in &keys[1_000..] {
            // The flusher may be behind with emptying the next slot.
            let entry = Entry { key: *key, value: Some(&value), expires_at: 0 };
            cache.put_many_waiting(&[entry], Duration::from_secs(20), |_, why| panic!("{why}"));
            cache.flush().unwrap();
        }
        let stats = cache.stats();
        assert_eq!(stats.puts_dropped, 0);
        let mut found = 0;
        cache.get_many(&mut Io::with_engine(Engine::Plain), &keys, 1, |_, outcome| {
            found += u64::from(matches!(outcome, Outcome::Hit { .. }));
        });
        assert_eq!(stats.entries, found, "{blocks} blocks: the index has what can be found and no more");
    }
}
