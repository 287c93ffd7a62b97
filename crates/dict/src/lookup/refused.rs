//! Keys that the source was asked for in vain, each by itself: the source is left alone with them for a while, and with
//! nothing else.

use crate::error::DictError;
use crate::limits;
use std::collections::HashMap;
use std::time::Duration;

/// Why, and until when, on a clock that nobody sets back.
#[derive(Default)]
pub(crate) struct RefusedKeys(HashMap<Box<[u8]>, (Duration, DictError)>);

impl RefusedKeys {
    /// Nobody asks for the key again before `until`.
    pub fn add(&mut self, key: &[u8], error: &DictError, now: Duration, until: Duration) {
        if self.0.len() >= limits::KEYS_REFUSED_MAX {
            self.0.retain(|_, (until, _)| *until > now);
        }
        if self.0.len() < limits::KEYS_REFUSED_MAX {
            self.0.insert(key.into(), (until, error.clone()));
        }
    }

    /// Why one of the keys is not asked for at `now`.
    pub fn find<'k>(&self, mut keys: impl Iterator<Item = &'k [u8]>, now: Duration) -> Option<DictError> {
        if self.0.is_empty() {
            return None;
        }
        keys.find_map(|key| self.0.get(key).filter(|(until, _)| *until > now).map(|(_, error)| error.clone()))
    }

    /// All may be asked for.
    pub fn clear(&mut self) {
        self.0.clear();
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
            |refused: &RefusedKeys, now| refused.find([&b"b"[..], b"a"].into_iter(), at(now)).is_some();
        assert_eq!((find(&refused, 14), find(&refused, 15)), (true, false));
        for key in 0..2 * limits::KEYS_REFUSED_MAX {
            refused.add(&key.to_le_bytes(), &error, at(20), at(25));
        }
        assert_eq!(refused.0.len(), limits::KEYS_REFUSED_MAX);
        refused.clear();
        refused.add(b"a", &error, at(26), at(30));
        assert!(find(&refused, 27));
    }
}
