//! Keys whose own requests failed: the source is not asked for them for a while, but for all others.

use crate::error::DictError;
use crate::limits;
use std::collections::HashMap;
use std::time::Duration;
use twox_hash::XxHash3_64;

/// Refused keys, by two hashes of each, as keys may be long. Times are on a monotonic clock.
#[derive(Default)]
pub(crate) struct RefusedKeys {
    /// Until when a key is left alone, and why.
    keys: HashMap<[u64; 2], (Duration, DictError)>,
    /// The latest of these times.
    last: Duration,
}

fn hashes(key: &[u8]) -> [u64; 2] {
    [0, 1].map(|seed| XxHash3_64::oneshot_with_seed(seed, key))
}

impl RefusedKeys {
    /// Adds a key that the source is not asked for again before `until`.
    pub fn add(&mut self, key: &[u8], error: &DictError, now: Duration, until: Duration) {
        if self.keys.len() >= limits::KEYS_REFUSED_MAX {
            self.keys.retain(|_, (until, _)| *until > now);
        }
        if self.keys.len() < limits::KEYS_REFUSED_MAX {
            self.keys.insert(hashes(key), (until, error.clone()));
            self.last = until.max(self.last);
        }
    }

    /// Why one of the keys is not asked for at `now`.
    pub fn find<'k>(&mut self, mut keys: impl Iterator<Item = &'k [u8]>, now: Duration) -> Option<DictError> {
        if now >= self.last {
            self.clear();
        }
        if self.keys.is_empty() {
            return None;
        }
        let refused = |key| self.keys.get(&hashes(key)).filter(|(until, _)| *until > now);
        keys.find_map(|key| refused(key).map(|(_, error)| error.clone()))
    }

    /// Lets these keys be asked for again.
    pub fn remove<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        if !self.keys.is_empty() {
            keys.for_each(|key| _ = self.keys.remove(&hashes(key)));
        }
    }

    /// Lets all keys be asked for again.
    pub fn clear(&mut self) {
        self.keys.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_left_alone_for_a_while_and_are_not_without_number() {
        let at = Duration::from_secs;
        let (mut refused, error) = (RefusedKeys::default(), DictError::bad_arguments("no"));
        refused.add(b"a", &error, at(10), at(15));
        let find =
            |refused: &mut RefusedKeys, now| refused.find([&b"b"[..], b"a"].into_iter(), at(now)).is_some();
        assert!(find(&mut refused, 14));
        refused.remove([&b"a"[..]].into_iter());
        assert!(!find(&mut refused, 14));
        refused.add(b"a", &error, at(10), at(15));
        assert_eq!((find(&mut refused, 14), find(&mut refused, 15)), (true, false));
        for key in 0..2 * limits::KEYS_REFUSED_MAX {
            refused.add(&key.to_le_bytes(), &error, at(20), at(25));
        }
        assert_eq!(refused.keys.len(), limits::KEYS_REFUSED_MAX);
        refused.clear();
        refused.add(b"a", &error, at(26), at(30));
        assert!(find(&mut refused, 27));
    }
}
