//! One lookup's state: its keys, the rows found so far, and which row of the answer shows which.

use super::found::CacheHits;
use super::load::SourceAccess;
use crate::answer::AnswerRows;
use crate::cache_store::CacheStore;
use crate::config::Expired;
use crate::error::DictError;
use crate::row::{Decoder, KeyBatch};
use arrow::array::BooleanArray;
use arrow::buffer::BooleanBuffer;
use granary_cache::{Key, Outcome};

/// The place of a row that shows the attributes' defaults.
const DEFAULT: u32 = u32::MAX;

/// Invariant: every row is in `missing`, or its place is final unless it is in `stale`.
pub(crate) struct Batch<'a> {
    pub keys: KeyBatch,
    pub decoder: Decoder<'a>,
    /// For each row of the answer, the decoded row it shows, or `DEFAULT`.
    pub places: Vec<u32>,
    /// Rows without an answer.
    pub missing: Vec<u32>,
    /// Rows whose answer is past its lifetime, but may be shown.
    pub stale: Vec<u32>,
}

/// How a lookup treats what it finds. Times are Unix seconds.
#[derive(Clone, Copy)]
pub(crate) struct Freshness {
    pub now: u64,
    /// The latest time at which the lifetime of an entry got now may end (`SourceAccess::latest_end`).
    pub latest: u64,
    pub expired: Expired,
    /// For how long an expired entry may be shown.
    pub strict_max_seconds: u64,
}

impl<'a> Batch<'a> {
    pub fn new(access: &'a SourceAccess, attributes: &[usize], keys: KeyBatch) -> Batch<'a> {
        let rows = keys.len();
        Batch {
            keys,
            decoder: Decoder::new(&access.row_format, attributes, rows),
            places: vec![DEFAULT; rows],
            missing: Vec::new(),
            stale: Vec::new(),
        }
    }

    /// Looks `rows` up in the cache: one batch.
    pub fn probe(&mut self, store: &CacheStore, rows: &[u32], freshness: Freshness, access: &SourceAccess) {
        let hasher = store.cache().hasher();
        let hashed: Vec<Key<'_>> = rows.iter().map(|&row| hasher.key(self.keys.get(row as usize))).collect();
        let mut found = [rows.len(), 0].map(|capacity| CacheHits::new(&self.decoder, capacity));
        let sinks = found
            .each_mut()
            .map(|found| move |i: usize, outcome: Outcome<'_>| found.take(rows[i], outcome, freshness));
        store.get_many_parallel(&hashed, u32::try_from(freshness.now).unwrap_or(u32::MAX), sinks);
        for found in found {
            found.count(&access.counters);
            let first = self.decoder.len() as u32;
            for (row, place) in found.shown.iter().zip(first..) {
                self.places[*row as usize] = place;
            }
            self.decoder.append(found.decoder);
            self.missing.extend(found.missing);
            self.stale.extend(found.stale);
        }
        // The cache answers in the order of its device; the source is asked in the order of the rows.
        self.missing.sort_unstable();
    }

    /// Shows loaded rows: `rows[i]` has unique key `uniques[i]`, whose encoded row is `row(unique)`.
    /// Returns how many of `rows` the source has.
    pub fn fill<'r>(
        &mut self,
        rows: &[u32],
        uniques: &[u32],
        unique_count: usize,
        row: impl Fn(usize) -> Option<&'r [u8]>,
    ) -> Result<usize, DictError> {
        let mut places = Vec::with_capacity(unique_count);
        for unique in 0..unique_count {
            places.push(match row(unique) {
                None => DEFAULT,
                Some(bytes) => {
                    self.decoder.push(bytes)?;
                    self.decoder.len() as u32 - 1
                }
            });
        }
        for (&row, &unique) in rows.iter().zip(uniques) {
            self.places[row as usize] = places[unique as usize];
        }
        Ok(uniques.iter().filter(|&&unique| places[unique as usize] != DEFAULT).count())
    }

    /// The rows, in order.
    pub fn finish(mut self) -> AnswerRows<'a> {
        let rows = self.places.len();
        let found = BooleanBuffer::collect_bool(rows, |row| self.places[row] != DEFAULT);
        if found.count_set_bits() < rows {
            self.decoder.push_default();
            let default = self.decoder.len() as u32 - 1;
            self.places.iter_mut().filter(|place| **place == DEFAULT).for_each(|place| *place = default);
        }
        AnswerRows::new(self.decoder, self.places, BooleanArray::new(found, None))
    }
}
