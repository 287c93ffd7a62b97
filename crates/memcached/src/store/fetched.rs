//! Looks up the key of a change before the key's stripe is locked, so that no thread reads from the device, or waits
//! for it, under a lock.

use super::{Lookup, MissReason, Store, ThreadContext, look};
use crate::item::{Header, Item};
use granary_cache::{Key, KeyHash, Outcome};

/// A key's hash, and the version of its stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyVersion {
    hash: KeyHash,
    version: u64,
}

/// The result of the lookup of a key.
pub(super) struct Fetched {
    of: KeyVersion,
    /// The item's header; the data lies in the context.
    found: Result<Header, MissReason>,
}

/// State of the lookup of a key that is about to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    /// The result is known.
    Here,
    /// A read has been begun; its result is to be [given](Store::give_fetched) with this.
    Begun(KeyVersion),
}

impl Store {
    /// Looks up a key that is about to change. If it has to be read from the device, `ticket` is called, and
    /// [`poll`](Store::poll) reports the result with the ticket that it returns.
    pub fn fetch(
        &self,
        context: &mut ThreadContext,
        key: Key<'_>,
        now: u32,
        mut ticket: impl FnMut() -> u64,
    ) -> Fetching {
        let of = KeyVersion { hash: key.hash(), version: self.stripes.version(key.hash()) };
        if context.fetched.as_ref().is_some_and(|fetched| fetched.of == of) {
            return Fetching::Here;
        }
        let flushed_below = self.numbers.flushed_below();
        let ThreadContext { pending, fetched, old, .. } = context;
        *fetched = None;
        self.cache.begin_many(
            pending,
            &[key],
            self.latest(now),
            |_| ticket(),
            |_, outcome: Outcome<'_>| {
                *fetched = Some(Fetched::new(of, look(outcome, flushed_below), old));
            },
        );
        if fetched.is_some() { Fetching::Here } else { Fetching::Begun(of) }
    }

    /// Takes the result that [`poll`](Store::poll) reported for a key.
    pub fn give_fetched(&self, context: &mut ThreadContext, of: KeyVersion, lookup: Lookup<'_>) {
        let ThreadContext { fetched, old, .. } = context;
        *fetched = Some(Fetched::new(of, lookup, old));
    }

    /// The item of a key whose stripe is locked at this version. It is the [fetched](Store::fetch) one, unless a key of
    /// the stripe has changed since: then the key is looked up again, which may read from the device.
    pub(super) fn take_fetched(
        &self,
        context: &mut ThreadContext,
        key: Key<'_>,
        version: u64,
        now: u32,
    ) -> Result<Header, MissReason> {
        let flushed_below = self.numbers.flushed_below();
        let ThreadContext { io, fetched, old, .. } = context;
        let of = KeyVersion { hash: key.hash(), version };
        let fetched = fetched.take().filter(|fetched| fetched.of == of).unwrap_or_else(|| {
            let mut found = None;
            self.cache.get_many(io, &[key], now, |_, outcome| {
                found = Some(Fetched::new(of, look(outcome, flushed_below), old));
            });
            found.expect("a lookup has an outcome")
        });
        match fetched.found {
            // The item may have expired or been flushed since.
            Ok(header) if header.created_cas < flushed_below => Err(MissReason::Flushed),
            Ok(header) if header.deadline.is_past(now) => Err(MissReason::Expired),
            found => found,
        }
    }
}

impl Fetched {
    fn new(of: KeyVersion, lookup: Lookup<'_>, old: &mut Vec<u8>) -> Self {
        let found = match lookup {
            Lookup::Hit(Item { header, data }) => {
                old.clear();
                old.extend_from_slice(data);
                Ok(header)
            }
            Lookup::Miss(why) => Err(why),
        };
        Self { of, found }
    }
}
