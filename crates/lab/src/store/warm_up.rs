//! How the caches of a job are filled before it is measured.

use super::contender::{Contender, Engine, limit_bytes};
use super::measurement::{Contents, Reading, WarmUp};
use super::workload::keys_of;

/// How the caches are filled. If they can hold all that is read: by one pass over it, for every contender, as a few
/// random reads per key would miss some. Else by operations of the same kind: twice the caches' capacity, but at most
/// five times the content.
pub fn warm_up(contender: &Contender, contents: &Contents, reading: &Reading) -> WarmUp {
    let entry_bytes = 16 + contents.value_bytes;
    let keys = keys_of(&reading.workload, contents.keys);
    if matches!(&reading.workload[..], "readseq" | "phases") {
        WarmUp::Cold
    } else if reading.cache_bytes + reading.row_cache_bytes >= keys * entry_bytes {
        WarmUp::Pass
    } else if contender.engine == Engine::Granary {
        WarmUp::Operations((2 * reading.cache_bytes / entry_bytes).min(5 * keys))
    } else {
        let blocks = limit_bytes(contents, reading) / contents.block_bytes;
        let rows = reading.row_cache_bytes / entry_bytes;
        let blocks_of_keys = (keys * entry_bytes).div_ceil(contents.block_bytes);
        let all = if reading.row_cache_bytes > 0 { keys } else { blocks_of_keys };
        WarmUp::Operations((2 * (blocks + rows)).min(5 * all))
    }
}

#[cfg(test)]
mod tests {
    use super::super::contender::{GRANARY, LEVELDB_READ, ROCKSDB};
    use super::super::study::job;
    use super::*;

    #[test]
    fn whoever_has_room_for_all_reads_all_of_it_once() {
        let contents = Contents {
            folder: "store".into(),
            keys: 1_000_000,
            value_bytes: 100,
            in_key_order: false,
            block_bytes: 4096,
        };
        let warm_up = |contender, workload, caches| {
            job(contender, contents.clone(), workload, caches, 10_000).reading.warm_up
        };
        for contender in [&GRANARY, &LEVELDB_READ, &ROCKSDB] {
            assert_eq!(warm_up(contender, "readrandom", [128 << 20, 0]), WarmUp::Pass);
            assert_eq!(warm_up(contender, "readhot", [4 << 20, 0]), WarmUp::Pass);
            assert!(matches!(warm_up(contender, "readhot", [1 << 20, 0]), WarmUp::Operations(1..)));
            assert!(matches!(warm_up(contender, "zipf", [64 << 20, 0]), WarmUp::Operations(1..)));
            assert_eq!(warm_up(contender, "readseq", [128 << 20, 0]), WarmUp::Cold);
        }
        assert_eq!(warm_up(&ROCKSDB, "zipf", [64 << 20, 64 << 20]), WarmUp::Pass);
        assert_eq!(warm_up(&GRANARY, "zipf", [1_160_000, 0]), WarmUp::Operations(20_000));
    }
}
