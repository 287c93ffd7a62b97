//! Keys and values that stand for the objects of a workload, and that tell whose they are.

use crate::model::Workload;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::{SystemTime, UNIX_EPOCH};
use twox_hash::XxHash3_64;

/// Bytes of a key. An object that is shorter than this has a key and no value.
pub const KEY_BYTES: usize = 8;

/// Where in the pool a value may begin.
const STARTS: usize = 1 << 16;

const DIGITS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

/// Keys of one replay, which are no other replay's, and their values.
pub struct Content<'a> {
    run: u64,
    values: Values<'a>,
}

enum Values<'a> {
    /// A value is a piece of these random bytes; which piece follows from the key and from how often it was stored: one in
    /// 65 536 mistakes goes unseen.
    Drawn(Vec<u8>),
    /// A key has one of these, always the same.
    Given(&'a [Vec<u8>]),
}

impl<'a> Content<'a> {
    /// Random bytes, as long as a workload says.
    pub fn drawn(workload: &Workload) -> Self {
        let bytes_max = workload.steps.iter().map(|step| step.bytes).max().unwrap_or(0);
        Self::drawn_for(run(), bytes_max as usize)
    }

    fn drawn_for(run: u64, bytes_max: usize) -> Self {
        let mut pool = vec![0; STARTS + bytes_max];
        SmallRng::seed_from_u64(run).fill_bytes(&mut pool);
        Self { run, values: Values::Drawn(pool) }
    }

    /// Values at hand, of which each key gets the one at its [`place`](Self::place_of). The workload has to say how long
    /// they are.
    pub fn given(values: &'a [Vec<u8>]) -> Self {
        Self { run: run(), values: Values::Given(values) }
    }

    /// Which of `count` values at hand a key gets.
    pub fn place_of(key: u32, count: usize) -> usize {
        (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % count
    }

    /// The name of a key.
    pub fn key(&self, key: u32) -> [u8; KEY_BYTES] {
        // 32 bits of the key, 16 of the run.
        let number = u64::from(key) | self.run << 32;
        std::array::from_fn(|i| DIGITS[(number >> (6 * i)) as usize % DIGITS.len()])
    }

    /// Its value, stored for the `version`th time, where key and value have so many bytes.
    pub fn value(&self, key: u32, version: u32, bytes: u32) -> &[u8] {
        match &self.values {
            Values::Drawn(pool) => {
                let number = u64::from(key) | u64::from(version) << 32;
                let start = XxHash3_64::oneshot_with_seed(self.run, &number.to_le_bytes()) as usize % STARTS;
                &pool[start..start + value_bytes(bytes)]
            }
            Values::Given(values) => &values[Self::place_of(key, values.len())],
        }
    }
}

/// A number for this replay: what others have left on the server is not ours.
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
