//! The entries of a batch that one thread finds in the cache.

use super::batch::Freshness;
use super::counters::Counters;
use super::load::ends_after;
use crate::config::Expired;
use crate::row::Decoder;
use granary_cache::Outcome;

pub(super) struct CacheHits<'a> {
    pub decoder: Decoder<'a>,
    /// The rows of the answer that show the decoded rows, in their order. A row that is in none of these lists
    /// shows the attributes' defaults.
    pub shown: Vec<u32>,
    /// Rows without an answer.
    pub missing: Vec<u32>,
    /// Rows whose answer is past its lifetime, but may be shown.
    pub stale: Vec<u32>,
    hit: usize,
    negative: usize,
    expired: usize,
    bad: usize,
}

impl<'a> CacheHits<'a> {
    /// An empty result, for the attributes that `decoder` decodes.
    pub fn new(decoder: &Decoder<'a>, capacity: usize) -> CacheHits<'a> {
        CacheHits {
            decoder: decoder.another(capacity),
            shown: Vec::with_capacity(capacity),
            missing: Vec::new(),
            stale: Vec::new(),
            hit: 0,
            negative: 0,
            expired: 0,
            bad: 0,
        }
    }

    #[inline]
    pub fn take(&mut self, row: u32, outcome: Outcome<'_>, freshness: Freshness) {
        match outcome {
            Outcome::Hit { expires_at, .. } | Outcome::Negative { expires_at }
                if ends_after(expires_at, freshness.latest) =>
            {
                self.expired += 1;
                self.missing.push(row);
            }
            Outcome::Hit { value, .. } => {
                if self.show(row, Some(value)) {
                    self.hit += 1;
                } else {
                    self.bad += 1;
                    self.missing.push(row);
                }
            }
            Outcome::Negative { .. } => self.negative += 1,
            Outcome::Expired { value, expires_at } => {
                self.expired += 1;
                let shown_until = u64::from(expires_at).saturating_add(freshness.strict_max_seconds);
                let may_show = freshness.expired == Expired::Read && freshness.now <= shown_until;
                let list =
                    if may_show && self.show(row, value) { &mut self.stale } else { &mut self.missing };
                list.push(row);
            }
            Outcome::Miss => self.missing.push(row),
        }
    }

    /// Shows a value in a row, or the defaults; `false`: the value does not have the row format.
    #[inline]
    fn show(&mut self, row: u32, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return true };
        let is_good = self.decoder.push(value).is_ok();
        if is_good {
            self.shown.push(row);
        }
        is_good
    }

    pub fn count(&self, counters: &Counters) {
        counters.keys_hit.add(self.hit + self.negative);
        counters.keys_negative.add(self.negative);
        counters.keys_expired.add(self.expired);
        counters.rows_bad.add(self.bad);
    }
}
