//! Lookups of keys that are about to change and are not in RAM, so that no thread reads from the device, or waits for
//! it, while it holds a lock.
//!
//! A change that does not find its key in RAM takes a [`Fetch`], lets go of the stripe and has the key read. Whoever
//! changes the key before the fetch is used says what the key has become, and that counts instead of what was read. So
//! a change has its key read once, however often others overtake it, and never goes by an older item. A client that
//! goes away drops its fetch; nobody waits for it.

use super::{Lookup, MissReason, Store, ThreadContext, look};
use crate::item::{Header, Item};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// An item, or why there is none.
#[derive(Clone, Debug)]
pub(super) enum Found {
    Item(Header, Arc<[u8]>),
    Missing(MissReason),
}

impl Found {
    pub fn of(lookup: Lookup<'_>) -> Self {
        match lookup {
            Lookup::Hit(Item { header, data }) => Self::Item(header, data.into()),
            Lookup::Miss(why) => Self::Missing(why),
        }
    }

    /// The result of a lookup now: the item may have expired or been flushed since it was found.
    pub fn lookup(&self, flushed_below: u64, now: u32) -> Lookup<'_> {
        match self {
            Self::Item(header, _) if header.created_cas < flushed_below => Lookup::Miss(MissReason::Flushed),
            Self::Item(header, _) if header.deadline.is_past(now) => Lookup::Miss(MissReason::Expired),
            Self::Item(header, data) => Lookup::Hit(Item { header: *header, data }),
            Self::Missing(why) => Lookup::Miss(*why),
        }
    }
}

/// The lookup of a key for a change that waits for it.
#[derive(Debug)]
pub struct Fetch(Arc<FetchState>);

#[derive(Debug)]
struct FetchState {
    key: Box<[u8]>,
    /// The item of the key; `None`: it was not read yet.
    found: Mutex<Option<Found>>,
}

impl FetchState {
    fn found(&self) -> MutexGuard<'_, Option<Found>> {
        self.found.lock().expect("no panic under the lock")
    }
}

impl Fetch {
    /// Takes what was read, unless the key has changed since the fetch began.
    pub fn complete(&self, lookup: Lookup<'_>) {
        self.0.found().get_or_insert_with(|| Found::of(lookup));
    }

    /// The item that a change of this key goes by, for a caller that holds the key's stripe. `None`: it was not read
    /// yet, or the fetch is of another key.
    pub(super) fn result(&self, key: &[u8]) -> Option<Found> {
        if *self.0.key == *key { self.0.found().clone() } else { None }
    }
}

/// The fetches of a stripe's keys. Changes that wait for the same key share one.
#[derive(Default)]
pub(super) struct Fetches(Vec<Weak<FetchState>>);

impl Fetches {
    /// Whether there may be fetches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fetch of a key. From now on it is told of changes of the key.
    pub fn begin(&mut self, key: &[u8]) -> Fetch {
        self.forget_dropped();
        let begun = self.0.iter().filter_map(Weak::upgrade).find(|fetch| *fetch.key == *key);
        Fetch(begun.unwrap_or_else(|| {
            let fetch = Arc::new(FetchState { key: key.into(), found: Mutex::new(None) });
            self.0.push(Arc::downgrade(&fetch));
            fetch
        }))
    }

    fn forget_dropped(&mut self) {
        self.0.retain(|fetch| fetch.strong_count() > 0);
    }

    /// Notes what a key has become.
    pub fn tell(&mut self, key: &[u8], found: impl FnOnce() -> Found) {
        self.forget_dropped();
        if let Some(fetch) = self.0.iter().filter_map(Weak::upgrade).find(|fetch| *fetch.key == *key) {
            *fetch.found() = Some(found());
        }
    }

    /// Notes that all keys are gone.
    pub fn tell_cleared(&self) {
        for fetch in self.0.iter().filter_map(Weak::upgrade) {
            *fetch.found() = Some(Found::Missing(MissReason::Unknown));
        }
    }
}

impl Store {
    /// Has the key of a fetch read. If that needs the device, `ticket` is called, and [`poll`](Store::poll) reports the
    /// result with the ticket that it returns, to be passed to [`Fetch::complete`]; else the fetch is complete.
    pub fn read(
        &self,
        context: &mut ThreadContext,
        fetch: &Fetch,
        now: u32,
        mut ticket: impl FnMut() -> u64,
    ) {
        let (key, flushed_below) = (self.key(&fetch.0.key), self.numbers.flushed_below());
        self.cache.begin_many(
            &mut context.pending,
            &[key],
            self.latest(now),
            |_| ticket(),
            |_, outcome| fetch.complete(look(outcome, flushed_below)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Deadline;

    fn item(number: u64, data: &[u8]) -> Lookup<'_> {
        Lookup::Hit(Item { header: Header::new(number, 1, 0, Deadline::NEVER), data })
    }

    fn data(fetch: &Fetch, key: &[u8]) -> Option<Result<Vec<u8>, MissReason>> {
        fetch.result(key).map(|found| match found.lookup(0, 1) {
            Lookup::Hit(item) => Ok(item.data.to_vec()),
            Lookup::Miss(why) => Err(why),
        })
    }

    #[test]
    fn a_change_counts_more_than_what_was_read_whichever_comes_first() {
        let mut fetches = Fetches::default();
        let (first, other) = (fetches.begin(b"k"), fetches.begin(b"other"));
        assert_eq!(data(&first, b"k"), None);
        first.complete(item(1, b"read"));
        assert_eq!(data(&first, b"k"), Some(Ok(b"read".to_vec())));
        assert_eq!(data(&first, b"other"), None, "it is another key's");
        fetches.tell(b"k", || Found::of(item(2, b"written")));
        first.complete(item(1, b"read"));
        assert_eq!(data(&first, b"k"), Some(Ok(b"written".to_vec())));
        fetches.tell(b"other", || Found::Missing(MissReason::Unknown));
        other.complete(item(1, b"read"));
        assert_eq!(data(&other, b"other"), Some(Err(MissReason::Unknown)));
        fetches.tell_cleared();
        assert_eq!(data(&first, b"k"), Some(Err(MissReason::Unknown)));
    }

    #[test]
    fn a_fetch_that_is_dropped_is_forgotten() {
        let mut fetches = Fetches::default();
        let first = fetches.begin(b"k");
        first.complete(item(1, b"read"));
        let second = fetches.begin(b"k");
        drop(first);
        assert!(data(&second, b"k").is_some(), "they share it");
        drop(second);
        fetches.tell(b"k", || panic!("nobody waits"));
        assert!(fetches.is_empty());
        assert_eq!(data(&fetches.begin(b"k"), b"k"), None);
        assert_eq!(fetches.0.len(), 1);
    }

    #[test]
    fn what_was_fetched_may_have_expired_or_been_flushed_since() {
        let header = Header::new(5, 1, 0, Deadline::of(crate::protocol::Exptime(10), 100));
        let found = Found::of(Lookup::Hit(Item { header, data: b"v" }));
        assert!(matches!(found.lookup(5, 109), Lookup::Hit(_)));
        assert_eq!(found.lookup(5, 110), Lookup::Miss(MissReason::Expired));
        assert_eq!(found.lookup(6, 109), Lookup::Miss(MissReason::Flushed));
    }
}
