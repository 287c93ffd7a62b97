//! One request of one client.

use super::Engine;
use super::session::{Output, Session};
use crate::commands::{self, Shown, Terms, Verdict};
use crate::counters::Counters;
use crate::item::Deadline;
use crate::protocol::{
    Direction, Exptime, KeyForm, Meta, MetaFlags, Mode, Put, Reply, Request, Step, keys_from, reply,
};
use crate::store::{Change, Looked};
use granary_cache::Key;

/// Where a request leaves its session.
enum Done {
    Whole,
    /// There is no room for more replies: it goes on with the key that begins here.
    Until(usize),
    LoggedIn,
    /// It is one of those that are carried out together.
    NotHere,
}

impl Engine {
    /// Carries out the next request, unless it is a read; whether there was one.
    pub(super) fn step(&mut self, session: &mut Session, now: u32) -> bool {
        if !session.may_step() {
            return false;
        }
        let Session { input, output, ending, wanted } = session;
        *wanted = 0;
        let (request, taken) = match input.next() {
            Step::Incomplete(len) => {
                *wanted = len;
                return false;
            }
            Step::End(why) => {
                *ending = Some(why);
                return false;
            }
            Step::Swallow(taken) => {
                input.advance(taken);
                return true;
            }
            Step::Request(request, taken) => (request, taken),
        };
        let begin = input.resume;
        let done = self.carry_out(request, begin, output, now);
        match done {
            Done::NotHere => return false,
            Done::Until(resume) => input.resume = resume,
            Done::Whole => input.advance(taken),
            Done::LoggedIn => {
                input.advance(taken);
                input.grant();
            }
        }
        true
    }

    fn carry_out(&mut self, request: Request<'_>, begin: usize, output: &mut Output, now: u32) -> Done {
        let out = &mut output.bytes;
        match request {
            Request::Get { .. } => return Done::NotHere,
            Request::Gat { keys, with_cas, exptime } => {
                for (at, key) in keys_from(keys, begin) {
                    if !output.has_room() {
                        return Done::Until(at);
                    }
                    self.get_and_touch(key, with_cas, exptime, now, &mut output.bytes);
                }
                reply::line(&mut output.bytes, "END");
            }
            Request::Put(put) => {
                let said = match self.put(&put, now) {
                    Verdict::Stored => "STORED",
                    Verdict::Refused => "NOT_STORED",
                    Verdict::Exists => "EXISTS",
                    Verdict::NotFound => "NOT_FOUND",
                };
                reply::answer(out, put.reply, said);
            }
            Request::Delete { key, reply } => {
                let found = self.delete(key, now);
                self.counters().delete_hits.add(u64::from(found));
                self.counters().delete_misses.add(u64::from(!found));
                reply::answer(out, reply, if found { "DELETED" } else { "NOT_FOUND" });
            }
            Request::Arithmetic { key, direction, delta, reply } => {
                self.arithmetic(key, direction, delta, reply, now, out);
            }
            Request::Touch { key, exptime, reply } => {
                let found = self.touch(Key::new(key), exptime, now, |_| ());
                reply::answer(out, reply, if found.is_some() { "TOUCHED" } else { "NOT_FOUND" });
            }
            Request::MetaGet(meta) => self.meta_get(&meta, now, out),
            Request::MetaSet(put, flags) => self.meta_set(&put, &flags, now, out),
            Request::MetaDelete(meta) => {
                let key = Key::new(&meta.key);
                let Engine { shared, lane, .. } = self;
                let found = shared
                    .store
                    .change(lane, key, now, |looked, hand| commands::meta_delete(&meta, looked, hand, out));
                self.counters().delete_hits.add(u64::from(found));
                self.counters().delete_misses.add(u64::from(!found));
            }
            Request::MetaArithmetic(meta, direction) => {
                let key = Key::new(&meta.key);
                let Engine { shared, lane, .. } = self;
                let found = shared.store.change(lane, key, now, |looked, hand| {
                    commands::meta_arithmetic(&meta, direction, looked, hand, out)
                });
                count_arithmetic(self.counters(), direction, found);
            }
            Request::MetaDebug(key) => self.debug(&key, now, out),
            Request::TooLarge { key, drop_older, reply } => {
                self.counters().store_too_large.add(1);
                if drop_older {
                    self.delete(&key, now);
                }
                reply::answer(out, reply, "SERVER_ERROR object too large for cache");
            }
            Request::Flush { delay, reply } => {
                self.counters().cmd_flush.add(1);
                match self.shared.store.flush(delay, now) {
                    Ok(()) => reply::answer(out, reply, "OK"),
                    Err(error) => {
                        tracing::error!(%error, "flush_all failed");
                        reply::line(out, "SERVER_ERROR flush_all cannot be written down");
                    }
                }
            }
            Request::Stats(group) => self.stats(group, out),
            Request::ResetStats => {
                self.shared.counters.iter().for_each(Counters::reset);
                reply::line(out, "RESET");
            }
            Request::Login(text) => return self.login(text, out),
            Request::Say(line) => reply::line(out, line),
            Request::Nothing => {}
        }
        Done::Whole
    }

    fn put(&mut self, put: &Put<'_>, now: u32) -> Verdict {
        let Engine { shared, lane, .. } = self;
        let store = &shared.store;
        let terms = Terms {
            key_form: KeyForm::Text,
            invalidate: false,
            explicit_cas: None,
            item_bytes_max: store.item_bytes_max(),
        };
        let (stored, _) = store
            .change(lane, Key::new(&put.key), now, |looked, hand| commands::put(put, &terms, looked, hand));
        count_put(self.counters(), put.mode, stored);
        stored
    }

    fn meta_set(&mut self, put: &Put<'_>, flags: &MetaFlags<'_>, now: u32, out: &mut Vec<u8>) {
        let Engine { shared, lane, .. } = self;
        let (store, limit) = (&shared.store, shared.store.item_bytes_max());
        let stored = store.change(lane, Key::new(&put.key), now, |looked, hand| {
            commands::meta_set(put, flags, limit, looked, hand, out)
        });
        count_put(self.counters(), put.mode, stored);
    }

    fn delete(&mut self, key: &[u8], now: u32) -> bool {
        let Engine { shared, lane, .. } = self;
        shared
            .store
            .change(lane, Key::new(key), now, |looked, _| (Change::Remove, matches!(looked, Looked::Hit(_))))
    }

    fn arithmetic(
        &mut self,
        key: &[u8],
        direction: Direction,
        delta: u64,
        reply: Reply,
        now: u32,
        out: &mut Vec<u8>,
    ) {
        let Engine { shared, lane, .. } = self;
        let counted = shared.store.change(lane, Key::new(key), now, |looked, hand| {
            let Looked::Hit(item) = looked else { return (Change::Leave, None) };
            match commands::count(item, direction, delta, hand) {
                Ok((change, value)) => (change, Some(Ok(value))),
                Err(error) => (Change::Leave, Some(Err(error))),
            }
        });
        match counted {
            None => reply::answer(out, reply, "NOT_FOUND"),
            Some(Ok(value)) => reply::answer(out, reply, itoa::Buffer::new().format(value)),
            Some(Err(_)) => reply::answer(out, reply, commands::NON_NUMERIC),
        }
        if !matches!(counted, Some(Err(_))) {
            count_arithmetic(self.counters(), direction, counted.is_some());
        }
    }

    /// Gives an item a new end, and shows it to `show`.
    fn touch<R>(
        &mut self,
        key: Key<'_>,
        exptime: Exptime,
        now: u32,
        show: impl FnOnce(crate::item::Item<'_>) -> R,
    ) -> Option<R> {
        let Engine { shared, lane, .. } = self;
        let shown = shared.store.change(lane, key, now, |looked, _| {
            let Looked::Hit(item) = looked else { return (Change::Leave, None) };
            let mut header = item.header;
            header.deadline = Deadline::of(exptime, now);
            let change = if header == item.header { Change::Leave } else { Change::Mark(header) };
            (change, Some(show(item)))
        });
        let counters = self.counters();
        counters.cmd_touch.add(1);
        match shown {
            Some(_) => {
                counters.touch_hits.add(1);
                self.shared.store.note_read(key, now);
            }
            None => counters.touch_misses.add(1),
        }
        shown
    }

    fn get_and_touch(&mut self, key: &[u8], with_cas: bool, exptime: Exptime, now: u32, out: &mut Vec<u8>) {
        let found = self.touch(Key::new(key), exptime, now, |item| {
            let cas = with_cas.then_some(item.header.cas);
            reply::value(out, key, item.header.flags, cas, item.data);
        });
        let counters = self.counters();
        counters.cmd_get.add(1);
        counters.get_hits.add(u64::from(found.is_some()));
        counters.get_misses.add(u64::from(found.is_none()));
    }

    fn meta_get(&mut self, meta: &Meta<'_>, now: u32, out: &mut Vec<u8>) {
        let key = Key::new(&meta.key);
        let Engine { shared, lane, .. } = self;
        let last_read = shared.store.last_read(key);
        let (found, why) = shared.store.change(lane, key, now, |looked, hand| {
            let (change, found) = commands::meta_get(meta, looked, last_read, hand, out);
            let why = match looked {
                Looked::Miss(why) => Some(why),
                Looked::Hit(_) => None,
            };
            (change, (found, why))
        });
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
    }

    fn debug(&mut self, key: &[u8], now: u32, out: &mut Vec<u8>) {
        let Engine { shared, lane, .. } = self;
        let hashed = Key::new(key);
        let last_read = shared.store.last_read(hashed);
        shared.store.get_many(lane, &[hashed], now, |_, looked| match looked {
            Looked::Hit(item) => commands::debug(key, item, Shown { last_read, now }, out),
            Looked::Miss(_) => reply::line(out, "EN"),
        });
        self.counters().cmd_meta.add(1);
    }

    /// `user password`, words beyond are not looked at.
    fn login(&self, text: &[u8], out: &mut Vec<u8>) -> Done {
        let mut words = keys_from(text, 0).map(|(_, word)| word);
        let (Some(user), Some(password)) = (words.next(), words.next()) else {
            reply::line(out, "CLIENT_ERROR bad authentication token format");
            return Done::Whole;
        };
        let counters = self.counters();
        counters.auth_cmds.add(1);
        if self.shared.users.as_ref().is_none_or(|users| users.know(user, password)) {
            reply::line(out, "STORED");
            return Done::LoggedIn;
        }
        counters.auth_errors.add(1);
        reply::line(out, "CLIENT_ERROR authentication failure");
        Done::Whole
    }
}

fn count_put(counters: &Counters, mode: Mode, stored: Verdict) {
    counters.cmd_set.add(1);
    counters.total_items.add(u64::from(stored == Verdict::Stored));
    if mode == Mode::Cas {
        match stored {
            Verdict::Stored => counters.cas_hits.add(1),
            Verdict::Exists => counters.cas_badval.add(1),
            Verdict::NotFound | Verdict::Refused => counters.cas_misses.add(1),
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
