//! Copies of entries that a lookup finds under a lock; they are delivered after the lock is released.

use super::outcome::Tier;
use crate::codec::{Codec, StoredValue};
use crate::limits::{ANSWER_BYTES_KEPT, ANSWER_BYTES_MAX, ANSWERS_MAX};

/// The outcome of one key.
#[derive(Clone, Copy)]
struct Answer {
    key: u32,
    expires_at: u32,
    /// The length of the value in `bytes`, or [`MISS`], or [`NEGATIVE`].
    len: u32,
    codec: Codec,
    tier: Tier,
}

/// The key was not found. No value is so long.
const MISS: u32 = u32::MAX;

/// The source does not have the key. No value is so long.
const NEGATIVE: u32 = u32::MAX - 1;

/// Answers to be delivered, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Answers {
    answers: Vec<Answer>,
    /// Values; the first `used` bytes are taken.
    bytes: Vec<u8>,
    used: usize,
}

/// One answer, as it is delivered.
pub(crate) enum Delivered<'a> {
    Miss,
    Entry { tier: Tier, value: Option<StoredValue<'a>>, expires_at: u32 },
}

impl Answers {
    /// Whether the answers should be delivered before more are added.
    #[inline]
    pub fn are_many(&self) -> bool {
        self.answers.len() >= ANSWERS_MAX || self.used >= ANSWER_BYTES_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Adds a miss.
    #[inline]
    pub fn miss(&mut self, key: u32) {
        self.answers.push(Answer { key, expires_at: 0, len: MISS, codec: Codec::None, tier: Tier::Memory });
    }

    /// Adds an entry that was found; `value` `None`: it is negative.
    #[inline(always)]
    pub fn entry(&mut self, key: u32, tier: Tier, value: Option<StoredValue<'_>>, expires_at: u32) {
        let len = match value {
            None => NEGATIVE,
            Some(value) => {
                let StoredValue { bytes, .. } = value;
                let end = self.used + bytes.len();
                if end > self.bytes.len() {
                    self.bytes.resize(end.next_power_of_two(), 0);
                }
                copy(bytes, &mut self.bytes[self.used..end]);
                self.used = end;
                bytes.len() as u32
            }
        };
        let codec = value.map_or(Codec::None, |value| value.codec);
        self.answers.push(Answer { key, expires_at, len, codec, tier });
    }

    /// Passes all answers to `deliver`, and removes them.
    #[inline(always)]
    pub fn drain(&mut self, mut deliver: impl FnMut(u32, Delivered<'_>)) {
        let mut rest = &self.bytes[..self.used];
        for Answer { key, expires_at, len, codec, tier } in self.answers.drain(..) {
            let delivered = match len {
                MISS => Delivered::Miss,
                NEGATIVE => Delivered::Entry { tier, value: None, expires_at },
                len => {
                    let (bytes, others) = rest.split_at(len as usize);
                    rest = others;
                    Delivered::Entry { tier, value: Some(StoredValue { codec, bytes }), expires_at }
                }
            };
            deliver(key, delivered);
        }
        self.used = 0;
        if self.bytes.len() > ANSWER_BYTES_KEPT {
            self.bytes = Vec::new();
        }
    }
}

/// Copies bytes to a slice of the same length: short ones without a call, by two overlapping copies.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    #[inline]
    fn ends<const N: usize>(from: &[u8], to: &mut [u8]) -> Option<()> {
        let (first, last) = (*from.first_chunk::<N>()?, *from.last_chunk::<N>()?);
        *to.first_chunk_mut()? = first;
        *to.last_chunk_mut()? = last;
        Some(())
    }
    let copied = match from.len() {
        4..=8 => ends::<4>(from, to),
        9..=16 => ends::<8>(from, to),
        17..=32 => ends::<16>(from, to),
        33..=64 => ends::<32>(from, to),
        65..=128 => ends::<64>(from, to),
        _ => None,
    };
    if copied.is_none() {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_delivered_as_it_was() {
        let mut answers = Answers::default();
        for _ in 0..2 {
            let value = |len: u32| (0..len).map(|i| (i * 7 + len) as u8).collect::<Vec<u8>>();
            for len in 0..300 {
                answers.entry(
                    len,
                    Tier::Buffer,
                    Some(StoredValue { codec: Codec::Lz4, bytes: &value(len) }),
                    len + 1,
                );
                answers.miss(1000 + len);
                answers.entry(2000 + len, Tier::Memory, None, 9);
            }
            let mut seen = Vec::new();
            answers.drain(|key, delivered| match delivered {
                Delivered::Miss => seen.push((key, None, 0)),
                Delivered::Entry { value, expires_at, .. } => {
                    assert!(value.is_none_or(|value| value.codec == Codec::Lz4));
                    seen.push((key, Some(value.map(|value| value.bytes.to_vec())), expires_at));
                }
            });
            let expected = (0..300).flat_map(|len| {
                [(len, Some(Some(value(len))), len + 1), (1000 + len, None, 0), (2000 + len, Some(None), 9)]
            });
            assert!(seen.into_iter().eq(expected) && answers.is_empty() && !answers.are_many());
        }
    }
}
