//! Changes of one key, and their counters. One that fails with [`OnFlash`] has changed, counted and answered nothing.

use super::Engine;
use crate::commands::{self, Shown, StoreOutcome, Terms};
use crate::counters::Counters;
use crate::item::{Deadline, Header, Item};
use crate::protocol::{Direction, Exptime, KeyForm, Meta, MetaFlags, Mode, Put, Reply, WithCas, reply};
use crate::store::{Change, ChangeContext, Lookup, NoRoom, OnFlash};
use granary_cache::Key;

impl Engine {
    pub(super) fn put(&mut self, put: &Put<'_>, now: u32) -> Result<StoreOutcome, OnFlash> {
        let Engine { shared, context, .. } = self;
        let store = &shared.store;
        let terms = Terms {
            key_form: KeyForm::Text,
            invalidate: false,
            explicit_cas: None,
            item_bytes_max: store.item_bytes_max(),
        };
        let stored = store
            .change(context, store.key(&put.key), now, |lookup, change_context| {
                commands::put(put, &terms, lookup, change_context)
            })?
            .map_or(StoreOutcome::NoRoom, |(stored, _)| stored);
        count_put(self.counters(), put.mode, stored);
        Ok(stored)
    }

    pub(super) fn meta_set(
        &mut self,
        put: &Put<'_>,
        flags: &MetaFlags<'_>,
        now: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), OnFlash> {
        let Engine { shared, context, .. } = self;
        let (store, limit, begin) = (&shared.store, shared.store.item_bytes_max(), out.len());
        let stored = store.change(context, store.key(&put.key), now, |lookup, change_context| {
            commands::meta_set(put, flags, limit, lookup, change_context, out)
        })?;
        let stored = stored.unwrap_or_else(|NoRoom| {
            out.truncate(begin);
            reply::line(out, reply::NO_ROOM);
            StoreOutcome::NoRoom
        });
        count_put(self.counters(), put.mode, stored);
        Ok(())
    }

    pub(super) fn delete(&mut self, key: &[u8], now: u32) -> Result<bool, OnFlash> {
        let Engine { shared, context, .. } = self;
        let delete = |lookup: Lookup<'_>, _: &mut ChangeContext<'_>| {
            (Change::Remove, matches!(lookup, Lookup::Hit(_)))
        };
        Ok(shared.store.change(context, shared.store.key(key), now, delete)?.unwrap_or(true))
    }

    pub(super) fn arithmetic(
        &mut self,
        key: &[u8],
        direction: Direction,
        delta: u64,
        reply: Reply,
        now: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), OnFlash> {
        let Engine { shared, context, .. } = self;
        let counted =
            shared.store.change(context, shared.store.key(key), now, |lookup, change_context| {
                let Lookup::Hit(item) = lookup else { return (Change::Leave, None) };
                match commands::count(item, direction, delta, change_context) {
                    Ok((change, value)) => (change, Some(Ok(value))),
                    Err(error) => (Change::Leave, Some(Err(error))),
                }
            })?;
        let counted = match counted {
            Ok(counted) => counted,
            Err(NoRoom) => {
                reply::answer(out, reply, reply::NO_ROOM_TO_COUNT);
                return Ok(());
            }
        };
        match counted {
            None => reply::answer(out, reply, "NOT_FOUND"),
            Some(Ok(value)) => reply::answer(out, reply, itoa::Buffer::new().format(value)),
            Some(Err(_)) => reply::answer(out, reply, commands::NON_NUMERIC),
        }
        if !matches!(counted, Some(Err(_))) {
            count_arithmetic(self.counters(), direction, counted.is_some());
        }
        Ok(())
    }

    /// Gives an item a new end, and shows it to `show`.
    pub(super) fn touch<R>(
        &mut self,
        key: Key<'_>,
        exptime: Exptime,
        now: u32,
        show: impl FnOnce(Item<'_>) -> R,
    ) -> Result<Result<Option<R>, NoRoom>, OnFlash> {
        let Engine { shared, context, .. } = self;
        let deadline = Deadline::of(exptime, now);
        let shown = shared.store.change(context, key, now, |lookup, _| {
            let Lookup::Hit(item) = lookup else {
                // A touch that ends an item is a delete.
                return (if deadline.is_past(now) { Change::Remove } else { Change::Leave }, None);
            };
            let header = Header { deadline, ..item.header };
            let change = if header == item.header { Change::Leave } else { Change::Mark(header) };
            (change, Some(show(item)))
        })?;
        let Ok(shown) = shown else { return Ok(Err(NoRoom)) };
        let counters = self.counters();
        counters.cmd_touch.add(1);
        match shown {
            Some(_) => {
                counters.touch_hits.add(1);
                self.shared.store.note_read(key, now);
            }
            None => counters.touch_misses.add(1),
        }
        Ok(Ok(shown))
    }

    pub(super) fn get_and_touch(
        &mut self,
        key: &[u8],
        with_cas: WithCas,
        exptime: Exptime,
        now: u32,
        out: &mut Vec<u8>,
    ) -> Result<Result<(), NoRoom>, OnFlash> {
        let begin = out.len();
        let touched = self.touch(self.shared.store.key(key), exptime, now, |item| {
            let cas = (with_cas == WithCas::Yes).then_some(item.header.cas);
            reply::value(out, key, item.header.flags, cas, item.data);
        })?;
        let Ok(found) = touched else {
            out.truncate(begin);
            return Ok(Err(NoRoom));
        };
        let counters = self.counters();
        counters.cmd_get.add(1);
        counters.get_hits.add(u64::from(found.is_some()));
        counters.get_misses.add(u64::from(found.is_none()));
        Ok(Ok(()))
    }

    pub(super) fn meta_get(&mut self, meta: &Meta<'_>, now: u32, out: &mut Vec<u8>) -> Result<(), OnFlash> {
        let key = self.shared.store.key(&meta.key);
        let Engine { shared, context, .. } = self;
        let (last_read, begin) = (shared.store.last_read(key), out.len());
        let shown = shared.store.change(context, key, now, |lookup, change_context| {
            let (change, found) = commands::meta_get(meta, lookup, last_read, change_context, out);
            let why = match lookup {
                Lookup::Miss(why) => Some(why),
                Lookup::Hit(_) => None,
            };
            (change, (found, why))
        })?;
        let Ok((found, why)) = shown else {
            out.truncate(begin);
            reply::line(out, reply::NO_ROOM);
            return Ok(());
        };
        let counters = self.counters();
        counters.cmd_get.add(1);
        if meta.flags.exptime.is_some() {
            counters.cmd_touch.add(1);
            counters.touch_hits.add(u64::from(found));
        }
        match why {
            Some(why) if !found => self.count_miss(why),
            _ => counters.get_hits.add(1),
        }
        if found && !meta.flags.unnoticed {
            self.shared.store.note_read(key, now);
        }
        Ok(())
    }

    pub(super) fn meta_delete(
        &mut self,
        meta: &Meta<'_>,
        now: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), OnFlash> {
        let Engine { shared, context, .. } = self;
        let (key, begin) = (shared.store.key(&meta.key), out.len());
        let deleted = shared.store.change(context, key, now, |lookup, change_context| {
            commands::meta_delete(meta, lookup, change_context, out)
        })?;
        let Ok(found) = deleted else {
            out.truncate(begin);
            reply::line(out, reply::NO_ROOM);
            return Ok(());
        };
        count_delete(self.counters(), found);
        Ok(())
    }

    pub(super) fn meta_arithmetic(
        &mut self,
        meta: &Meta<'_>,
        direction: Direction,
        now: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), OnFlash> {
        let Engine { shared, context, .. } = self;
        let (key, begin) = (shared.store.key(&meta.key), out.len());
        let counted = shared.store.change(context, key, now, |lookup, change_context| {
            commands::meta_arithmetic(meta, direction, lookup, change_context, out)
        })?;
        let Ok(found) = counted else {
            out.truncate(begin);
            reply::line(out, reply::NO_ROOM_TO_COUNT);
            return Ok(());
        };
        if let Some(found) = found {
            count_arithmetic(self.counters(), direction, found);
        }
        Ok(())
    }

    pub(super) fn debug(&mut self, key: &[u8], now: u32, out: &mut Vec<u8>) -> Result<(), OnFlash> {
        let Engine { shared, context, .. } = self;
        let hashed = shared.store.key(key);
        let last_read = shared.store.last_read(hashed);
        let shown = shared.store.change(context, hashed, now, |lookup, _| {
            match lookup {
                Lookup::Hit(item) => commands::debug(key, item, Shown { last_read, now }, out),
                Lookup::Miss(_) => reply::line(out, "EN"),
            }
            (Change::Leave, ())
        })?;
        debug_assert!(shown.is_ok(), "nothing is stored");
        self.counters().cmd_meta.add(1);
        Ok(())
    }
}

pub(super) fn count_delete(counters: &Counters, found: bool) {
    counters.delete_hits.add(u64::from(found));
    counters.delete_misses.add(u64::from(!found));
}

fn count_put(counters: &Counters, mode: Mode, stored: StoreOutcome) {
    counters.cmd_set.add(1);
    counters.total_items.add(u64::from(stored == StoreOutcome::Stored));
    if mode == Mode::Cas {
        match stored {
            StoreOutcome::Stored => counters.cas_hits.add(1),
            StoreOutcome::Exists => counters.cas_badval.add(1),
            StoreOutcome::NotFound | StoreOutcome::Refused => counters.cas_misses.add(1),
            StoreOutcome::NoRoom => {}
        }
    }
}

fn count_arithmetic(counters: &Counters, direction: Direction, found: bool) {
    match (direction, found) {
        (Direction::Up, true) => counters.incr_hits.add(1),
        (Direction::Up, false) => counters.incr_misses.add(1),
        (Direction::Down, true) => counters.decr_hits.add(1),
        (Direction::Down, false) => counters.decr_misses.add(1),
    }
}
