//! How much of a segment objects fill, and the reads that find them: measured on the cache itself.

use crate::trace::sizes::{ASSIGNED_KEY_BYTES, etc_value_bytes, exponential_bytes};
use granary_cache::admission::Admission;
use granary_cache::{Cache, Entry, FlashOptions, Io, OpenError, Options, Outcome};
use std::path::Path;
use std::time::Duration;

/// Space and reads of a cache with one block size, for objects of given sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpaceUse {
    /// Objects stored.
    pub objects: u64,
    /// Bytes of their keys and values.
    pub object_bytes: u64,
    /// Bytes of their records and of the records' summary entries.
    pub record_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// RAM of the index.
    pub index_bytes: u64,
    /// First reads of flash for each stored object, looked up alone; an object longer than a block takes another.
    pub reads_per_hit: f64,
    /// Reads of flash for each missing object.
    pub reads_per_miss: f64,
}

/// Bytes of an object, by its number.
pub type ObjectSize = fn(u64) -> u32;

/// Sizes of objects, key and value together, by number.
pub const OBJECT_SIZES: [(&str, ObjectSize); 7] = [
    ("257 bytes each, the mean of the paper's", |_| 257),
    ("exponential, 257 bytes on average", |key| exponential_bytes(key, 257.0)),
    ("as in Facebook's ETC pool", |key| etc_value_bytes(key) + ASSIGNED_KEY_BYTES),
    ("1000 bytes each", |_| 1000),
    ("exponential, 2000 bytes on average", |key| exponential_bytes(key, 2000.0)),
    ("4096 bytes each", |_| 4096),
    ("65536 bytes each", |_| 65536),
];

/// Bytes of a segment.
const SEGMENT_BYTES: u64 = 4 << 20;

/// Bytes of values that are put together.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes in write buffers above which the fill waits: dropped objects would not be counted.
const BUFFER_BYTES_MAX: u64 = 16 << 20;

/// Keys that are looked up, one at a time.
const HITS: u64 = 2_000;
const MISSES: u64 = 20_000;

const KEY_BYTES: usize = 8;

/// Bytes of a record's header, except the length of the value, and of its summary entry.
const RECORD_BYTES: u64 = 1 + 4 + 1 + 6;

/// Stores objects of three eighths of a file's bytes, so that none is evicted even if half of the file is wasted. None
/// waits in RAM.
///
/// # Errors
/// The error of opening the cache.
pub fn space_use(
    path: &Path,
    file_bytes: u64,
    block_bytes: u64,
    size: impl Fn(u64) -> u32,
) -> Result<SpaceUse, OpenError> {
    let mut flash = FlashOptions::new(path, file_bytes);
    (flash.block_size, flash.write_buffer_size) = (block_bytes, SEGMENT_BYTES);
    // Objects are written at once, as there is no RAM to wait in; the index is that of a cache with a RAM filter.
    flash.admission = Admission::Probability(1.0);
    let cache = Cache::open(Options { flash: Some(flash), ..Options::default() })?;
    let value_bytes = |key: u64| (size(key) as usize).saturating_sub(KEY_BYTES);
    let (mut objects, mut object_bytes, mut record_bytes) = (0, 0, 0);
    while object_bytes < file_bytes / 8 * 3 {
        let first = objects;
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            bytes += KEY_BYTES + value_bytes(objects);
            let length_bytes = 1 + u64::from(value_bytes(objects).max(1).ilog2() / 7);
            record_bytes += (KEY_BYTES + value_bytes(objects)) as u64 + RECORD_BYTES + length_bytes;
            objects += 1;
        }
        object_bytes += bytes as u64;
        let keys: Vec<[u8; KEY_BYTES]> = (first..objects).map(u64::to_le_bytes).collect();
        let values: Vec<Vec<u8>> = (first..objects).map(|key| vec![key as u8; value_bytes(key)]).collect();
        let entries = keys.iter().zip(&values);
        let entries: Vec<Entry<'_>> =
            entries.map(|(key, v)| Entry { key: cache.key(key), value: Some(v), expires_at: 0 }).collect();
        cache.put_many(&entries);
        while cache.stats().buffer_bytes > BUFFER_BYTES_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    cache.flush().expect("the device takes it");
    let stats = cache.stats();
    assert_eq!((stats.puts_dropped, stats.puts_too_large), (0, 0), "all of them are counted");
    let reads = |keys: &mut dyn Iterator<Item = u64>, found: bool| {
        let (mut io, before, mut count) = (Io::new(), cache.stats().reads, 0u64);
        for key in keys {
            cache.get_many(&mut io, &[cache.key(&key.to_le_bytes())], 1, |_, outcome| {
                count += u64::from(matches!(outcome, Outcome::Hit { .. }) == found);
            });
        }
        (cache.stats().reads - before) as f64 / count.max(1) as f64
    };
    Ok(SpaceUse {
        objects,
        object_bytes,
        record_bytes,
        written_bytes: stats.bytes_written,
        index_bytes: stats.index_bytes,
        reads_per_hit: reads(&mut (0..HITS).map(|i| i * 7919 % objects), true),
        reads_per_miss: reads(&mut (0..MISSES).map(|i| u64::MAX - i), false),
    })
}

impl SpaceUse {
    /// Part of the written bytes that are keys and values.
    pub fn objects_share(&self) -> f64 {
        self.object_bytes as f64 / self.written_bytes as f64
    }

    /// Part of the written bytes that are records and their summary entries.
    pub fn records_share(&self) -> f64 {
        self.record_bytes as f64 / self.written_bytes as f64
    }

    /// RAM of the index for each object.
    pub fn index_bytes_per_object(&self) -> f64 {
        self.index_bytes as f64 / self.objects as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_objects_fill_segments_and_those_of_half_a_block_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let run = |bytes: u32| {
            let used = space_use(&folder.path().join(bytes.to_string()), 32 << 20, 8192, |_| bytes).unwrap();
            assert!(
                used.object_bytes < used.record_bytes && used.record_bytes <= used.written_bytes,
                "{used:?}"
            );
            used
        };
        let small = run(257);
        assert!((0.96..0.98).contains(&small.records_share()) && small.objects_share() < 0.93, "{small:?}");
        assert!((0.99..1.05).contains(&small.reads_per_hit) && small.reads_per_miss < 0.1, "{small:?}");
        // One record of 4100 bytes fits a block of 8192; one of 9000 takes two blocks.
        assert!((0.48..0.52).contains(&run(4100).records_share()));
        let long = run(9000);
        assert!((0.53..0.56).contains(&long.records_share()) && long.reads_per_hit > 0.99, "{long:?}");
    }
}
