//! Keys and values for the objects of a workload; a value identifies its key.

use crate::model::Workload;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::{SystemTime, UNIX_EPOCH};
use twox_hash::XxHash3_64;

/// Bytes of a key. An object that is shorter than this has a key and no value.
pub const KEY_BYTES: usize = 8;

/// Number of positions in the pool at which a value may begin.
const STARTS: usize = 1 << 16;

const DIGITS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

/// Keys of one replay, different from those of all others, and their values.
pub struct Content<'a> {
    run: u64,
    values: ContentValues<'a>,
}

enum ContentValues<'a> {
    /// A value is a piece of these random bytes, chosen by its key and by how often it was stored: one wrong value in
    /// 65 536 goes unnoticed.
    Drawn(Vec<u8>),
    /// Each key always has the same one of these.
    Given(&'a [Vec<u8>]),
}

impl<'a> Content<'a> {
    /// Random bytes, as long as the workload says.
    pub fn drawn(workload: &Workload) -> Self {
        let bytes_max = workload.steps.iter().map(|step| step.bytes).max().unwrap_or(0);
        Self::drawn_for(run(), bytes_max as usize)
    }

    fn drawn_for(run: u64, bytes_max: usize) -> Self {
        let mut pool = vec![0; STARTS + bytes_max];
        SmallRng::seed_from_u64(run).fill_bytes(&mut pool);
        Self { run, values: ContentValues::Drawn(pool) }
    }

    /// Given values; each key has the one at its [`place`](Self::place_of). The workload must state their lengths.
    pub fn given(values: &'a [Vec<u8>]) -> Self {
        Self { run: run(), values: ContentValues::Given(values) }
    }

    /// Which of `count` given values a key has.
    pub fn place_of(key: u32, count: usize) -> usize {
        (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % count
    }

    /// The name of a key.
    pub fn key(&self, key: u32) -> [u8; KEY_BYTES] {
        // 32 bits of the key, 16 of the run.
        let number = u64::from(key) | self.run << 32;
        std::array::from_fn(|i| DIGITS[(number >> (6 * i)) as usize % DIGITS.len()])
    }

    /// A key's value, stored for the `version`th time, where key and value have `bytes` bytes together.
    pub fn value(&self, key: u32, version: u32, bytes: u32) -> &[u8] {
        match &self.values {
            ContentValues::Drawn(pool) => {
                let number = u64::from(key) | u64::from(version) << 32;
                let start = XxHash3_64::oneshot_with_seed(self.run, &number.to_le_bytes()) as usize % STARTS;
                &pool[start..start + value_bytes(bytes)]
            }
            ContentValues::Given(values) => &values[Self::place_of(key, values.len())],
        }
    }
}

/// A number for this replay: objects that earlier replays left on the server are not found.
fn run() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (time.as_nanos() as u64 ^ u64::from(std::process::id())).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48
}

/// Bytes of the value of an object.
pub(super) fn value_bytes(bytes: u32) -> usize {
    (bytes as usize).saturating_sub(KEY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_and_values_differ_by_key_version_and_run() {
        let [one, two] = [1, 2].map(|run| Content::drawn_for(run, 1000));
        let keys: HashSet<_> = (0..1000).flat_map(|key| [one.key(key), two.key(key)]).collect();
        assert_eq!(keys.len(), 2000);
        assert_ne!(one.key(7), one.key(7 | 1 << 31));
        assert_eq!(one.value(7, 1, 1000), one.value(7, 1, 1000));
        assert_ne!(one.value(7, 1, 1000), one.value(7, 2, 1000));
        assert_ne!(one.value(7, 1, 1000), one.value(8, 1, 1000));
        assert_eq!((one.value(7, 1, 1000).len(), one.value(7, 1, 3).len()), (992, 0));
    }
}
