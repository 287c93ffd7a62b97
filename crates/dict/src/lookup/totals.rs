//! Sums over all dictionaries, closed ones too: such a sum never falls.

use super::counters::Counters;
use super::flight::lock;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The sums of an environment. Clones share them.
#[derive(Clone, Default)]
pub struct Totals {
    book: Arc<Mutex<Book>>,
    /// RAM of the layouts that hold all rows, rows that are being loaded included. It falls, too.
    full_load_bytes: Arc<AtomicU64>,
}

#[derive(Default)]
struct Book {
    /// Counters of dictionaries, held here, too, so that none goes uncounted.
    live: Vec<Arc<Counters>>,
    /// The sums of counters that are held nowhere else any more.
    gone: Sums,
}

/// Sums since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Keys answered by a fresh entry.
    pub keys_hit: u64,
    /// Keys found, but past their lifetime.
    pub keys_expired: u64,
    /// Keys for which the source was needed.
    pub keys_missed: u64,
    /// Keys for which another lookup's request was under way.
    pub keys_joined: u64,
    /// Requests to sources.
    pub source_requests: u64,
    /// Keys asked for that their source has.
    pub source_keys_found: u64,
    /// Keys asked for that their source does not have.
    pub source_keys_absent: u64,
}

impl Totals {
    /// Counters of a new dictionary.
    pub(crate) fn counters(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        let mut book = lock(&self.book);
        book.close_accounts();
        book.live.push(Arc::clone(&counters));
        counters
    }

    /// The sums now.
    pub fn read(&self) -> Sums {
        let book = lock(&self.book);
        book.live.iter().fold(book.gone, |sums, counters| sums.with(counters))
    }

    /// Bytes of RAM that the layouts which hold all rows take now: with rows that are being loaded, and older ones that
    /// are still read.
    pub fn full_load_bytes(&self) -> u64 {
        self.full_load_bytes.load(Ordering::Relaxed)
    }

    #[cfg_attr(not(feature = "full-load"), expect(dead_code, reason = "no dictionary holds all rows"))]
    pub(crate) fn replace_full_load_bytes(&self, before: u64, bytes: u64) {
        // The sum wraps around and back where it falls.
        self.full_load_bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }
}

impl Book {
    /// Counters that are held nowhere else no longer change, as none are handed out from here.
    fn close_accounts(&mut self) {
        let gone = &mut self.gone;
        self.live.retain(|counters| {
            let is_live = Arc::strong_count(counters) > 1;
            if !is_live {
                *gone = gone.with(counters);
            }
            is_live
        });
    }
}

impl Sums {
    fn with(self, counters: &Counters) -> Sums {
        Sums {
            keys_hit: self.keys_hit + counters.keys_hit.get(),
            keys_expired: self.keys_expired + counters.keys_expired.get(),
            keys_missed: self.keys_missed + counters.keys_missed.get(),
            keys_joined: self.keys_joined + counters.keys_joined.get(),
            source_requests: self.source_requests + counters.source_requests.get(),
            source_keys_found: self.source_keys_found + counters.source_keys_found.get(),
            source_keys_absent: self.source_keys_absent + counters.source_keys_absent.get(),
        }
    }
}

impl fmt::Debug for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_counted_once() {
        let totals = Totals::default();
        let first = totals.counters();
        first.keys_hit.add(5);
        let second = totals.clone().counters();
        second.keys_hit.add(1);
        assert_eq!(totals.read().keys_hit, 6);
        drop(first);
        assert_eq!(totals.read().keys_hit, 6);
        drop((totals.counters(), totals.counters()));
        second.keys_hit.add(1);
        assert_eq!(totals.read().keys_hit, 7);
        assert_eq!(lock(&totals.book).live.len(), 3);
    }
}
