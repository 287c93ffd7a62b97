//! What a change will find of its key, looked up before the key's stripe is locked: nobody reads from the device under a
//! lock, nor waits for it.

use super::{Looked, Store, ThreadContext, Why, look};
use crate::item::{Header, Item};
use granary_cache::{Key, KeyHash, Outcome};

/// A key, by its hash, as of a version of its stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyVersion {
    hash: KeyHash,
    version: u64,
}

/// What was found of a key.
pub(super) struct Fetched {
    of: KeyVersion,
    /// Its header; the data lies in the context.
    found: Result<Header, Why>,
}

/// Where a key is that is about to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    /// It is known what is there.
    Here,
    /// A read has been begun, and what it brings is to be [given](Store::give_fetched) as this.
    Begun(KeyVersion),
}

impl Store {
    /// Looks up a key that is about to change. If it has to be read from the device, `ticket` is asked, with which
    /// [`go_on`](Store::go_on) tells of it.
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
            now,
            |_| ticket(),
            |_, outcome: Outcome<'_>| {
                *fetched = Some(Fetched::new(of, look(outcome, flushed_below), old));
            },
        );
        if fetched.is_some() { Fetching::Here } else { Fetching::Begun(of) }
    }

    /// Gives what [`go_on`](Store::go_on) told of a key.
    pub fn give_fetched(&self, context: &mut ThreadContext, of: KeyVersion, looked: Looked<'_>) {
        let ThreadContext { fetched, old, .. } = context;
        *fetched = Some(Fetched::new(of, looked, old));
    }

    /// What is there of a key whose stripe is held at this version. It is in RAM, but where somebody has changed the key
    /// or another one of its stripe since it was [fetched](Store::fetch): then it is looked up again.
    pub(super) fn take_fetched(
        &self,
        context: &mut ThreadContext,
        key: Key<'_>,
        version: u64,
        now: u32,
    ) -> Result<Header, Why> {
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
            // It may have come to its end since.
            Ok(header) if header.created_cas < flushed_below => Err(Why::Flushed),
            Ok(header) if header.deadline.is_past(now) => Err(Why::Expired),
            found => found,
        }
    }
}

impl Fetched {
    fn new(of: KeyVersion, looked: Looked<'_>, old: &mut Vec<u8>) -> Self {
        let found = match looked {
            Looked::Hit(Item { header, data }) => {
                old.clear();
                old.extend_from_slice(data);
                Ok(header)
            }
            Looked::Miss(why) => Err(why),
        };
        Self { of, found }
    }
}
