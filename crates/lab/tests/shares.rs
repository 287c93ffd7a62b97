//! The cost of equal shares of RAM for shards, against one order for all keys, which no way of moving RAM between
//! shards could beat.

use granary_lab::Skewed;
use granary_lab::model::{Clock, Lru, Model, NEVER, Object, Place};

/// Shards of the RAM tier.
const SHARDS: u64 = granary_cache::limits::SHARDS as u64;

/// Misses of a million skewed reads, after as many that fill the tier, where `shards` equal shards have room for
/// `entries`.
fn misses(shards: u64, entries: u64, exponent: f64) -> u64 {
    const READS: usize = 1_000_000;
    let keys = entries * 10;
    let mut tier: Vec<Lru> = (0..shards).map(|_| Lru::new(entries / shards, keys as u32)).collect();
    let mut missed = 0;
    for (number, key) in Skewed::new(keys, exponent, 11).take(2 * READS).enumerate() {
        let object = Object { key: key as u32, bytes: 1, expires: NEVER, next_read: NEVER };
        let shard = key.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 58;
        let lru = &mut tier[(shard % shards) as usize];
        if lru.read(&object, Clock::default()) == Place::Absent {
            missed += u64::from(number >= READS);
            lru.store(&object, Clock::default());
        }
    }
    missed
}

#[test]
fn equal_shares_of_shards_cost_little() {
    println!("misses with equal shares : with one order for all keys, Zipf 0.8, 0.99, 1.2");
    // Entries in RAM, and the maximum loss of hits.
    for (entries, most) in [(512, 0.03), (2_048, 0.01), (8_192, 0.005), (65_536, 0.003)] {
        let lost = [0.8, 0.99, 1.2].map(|exponent| {
            let [equal, one] = [SHARDS, 1].map(|shards| misses(shards, entries, exponent));
            equal as f64 / one as f64 - 1.0
        });
        println!(
            "{entries} entries: {:+.2} %, {:+.2} %, {:+.2} %",
            lost[0] * 100.0,
            lost[1] * 100.0,
            lost[2] * 100.0
        );
        assert!(lost.iter().all(|lost| *lost < most), "{entries} entries: {lost:?}");
    }
}
