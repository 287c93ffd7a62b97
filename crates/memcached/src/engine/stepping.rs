//! One request of one client.

use super::Engine;
use super::changing::count_delete;
use super::connections::Peer;
use super::dumping::Dump;
use super::pending::Queue;
use super::session::{Output, Session, WriteStall};
use super::since_reset::Since;
use super::stats::Flush;
use crate::commands::{self, StoreOutcome};
use crate::protocol::{BAD_EXPTIME, Exptime, OnTooLarge, Request, Step, WithCas, keys_from, reply};
use crate::store::{Fetch, NoRoom, OnFlash};
use std::sync::Arc;

/// The outcome of an attempt to carry out a request.
enum StepOutcome {
    Whole,
    /// There is no room for more replies: it goes on with the key that begins here.
    OutputFull(usize),
    LoggedIn,
    /// A key is read from the device, to this place: it goes on then, with the key that begins here.
    NeedsFetch {
        resume: usize,
        id: u32,
        fetch: Fetch,
    },
    /// There is no write buffer for what it stores: it goes on later with the key that begins here.
    Stalled(usize),
    /// A list of all items is to be sent.
    Dump(Dump),
    /// It is one of those that are carried out together.
    Batched,
}

impl Engine {
    /// Carries out the next request, unless it is a read; whether there was one.
    pub(super) fn step(&mut self, session: &mut Session, now: u32) -> bool {
        if !session.may_step() || session.keys_left() == 0 || !session.take_step() {
            return false;
        }
        let Session { input, output, ending, wanted, number, fetched, dump, peer, write_stall, .. } = session;
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
        let done = match stores(&request) && self.stall_write(write_stall) {
            true => StepOutcome::Stalled(begin),
            false => {
                self.context.set_fetch(fetched.take());
                let done =
                    self.carry_out(&request, begin, *number, (output, write_stall), peer.as_ref(), now);
                *fetched = self.context.take_fetch();
                done
            }
        };
        if matches!(done, StepOutcome::Whole | StepOutcome::LoggedIn | StepOutcome::Dump(_)) {
            *write_stall = WriteStall::default();
            *fetched = None;
        }
        let parked = match done {
            StepOutcome::NeedsFetch { .. } | StepOutcome::Stalled(_) | StepOutcome::OutputFull(_) => {
                input.to_park(&request, taken)
            }
            _ => None,
        };
        input.park(parked);
        match done {
            StepOutcome::Batched => return false,
            StepOutcome::Stalled(resume) => {
                input.resume = resume;
                return false;
            }
            StepOutcome::OutputFull(resume) => input.resume = resume,
            StepOutcome::NeedsFetch { resume, id, fetch } => {
                input.resume = resume;
                session.wait_for_fetch(id, fetch);
                return false;
            }
            StepOutcome::Whole => input.advance(taken),
            StepOutcome::Dump(begun) => {
                input.advance(taken);
                *dump = Some(begun);
            }
            StepOutcome::LoggedIn => {
                input.advance(taken);
                input.authenticate();
            }
        }
        true
    }

    /// Carries out a request from the key that begins at `resume` on, and has keys read that are not in RAM.
    fn carry_out(
        &mut self,
        request: &Request<'_>,
        mut resume: usize,
        session_number: usize,
        (output, write_stall): (&mut Output, &mut WriteStall),
        peer: Option<&Arc<Peer>>,
        now: u32,
    ) -> StepOutcome {
        loop {
            match self.try_request(request, &mut resume, (&mut *output, &mut *write_stall), peer, now) {
                Ok(done) => return done,
                Err(OnFlash(fetch)) => match self.read(session_number, &fetch, now) {
                    Some(id) => return StepOutcome::NeedsFetch { resume, id, fetch },
                    // It was in a write buffer, or has come to RAM.
                    None => self.context.set_fetch(Some(fetch)),
                },
            }
        }
    }

    /// Carries out a request from the key that begins at `resume` on. `resume` follows the keys that are done.
    fn try_request(
        &mut self,
        request: &Request<'_>,
        resume: &mut usize,
        (output, write_stall): (&mut Output, &mut WriteStall),
        peer: Option<&Arc<Peer>>,
        now: u32,
    ) -> Result<StepOutcome, OnFlash> {
        let out = &mut output.bytes;
        match request {
            Request::Get { .. } => return Ok(StepOutcome::Batched),
            Request::Gat { keys, with_cas, exptime } => {
                let terms = (*with_cas, *exptime);
                return self.get_and_touch_many(keys, terms, resume, (output, write_stall), now);
            }
            Request::Put(put) => {
                let said = match self.put(put, now)? {
                    StoreOutcome::Stored => "STORED",
                    StoreOutcome::Refused => "NOT_STORED",
                    StoreOutcome::Exists => "EXISTS",
                    StoreOutcome::NotFound => "NOT_FOUND",
                    StoreOutcome::NoRoom => reply::NO_ROOM,
                };
                reply::answer(out, put.reply, said);
            }
            Request::Delete { key, reply } => {
                let found = self.delete(key, now)?;
                count_delete(self.counters(), found);
                reply::answer(out, *reply, if found { "DELETED" } else { "NOT_FOUND" });
            }
            Request::Arithmetic { key, direction, delta, reply } => {
                self.arithmetic(key, *direction, *delta, *reply, now, out)?;
            }
            Request::Touch { key, exptime, reply } => {
                let said = match self.touch(self.shared.store.key(key), *exptime, now, |_| ())? {
                    Ok(Some(())) => "TOUCHED",
                    Ok(None) => "NOT_FOUND",
                    Err(NoRoom) => reply::NO_ROOM,
                };
                reply::answer(out, *reply, said);
            }
            Request::MetaGet(meta) => self.meta_get(meta, now, out)?,
            Request::MetaSet(put, flags) => self.meta_set(put, flags, now, out)?,
            Request::MetaDelete(meta) => self.meta_delete(meta, now, out)?,
            Request::MetaArithmetic(meta, direction) => self.meta_arithmetic(meta, *direction, now, out)?,
            Request::MetaDebug(key) => self.debug(key, now, out)?,
            Request::TooLarge { key, older, reply } => {
                if *older == OnTooLarge::DropOld {
                    self.delete(key, now)?;
                }
                self.counters().store_too_large.add(1);
                reply::answer(out, *reply, "SERVER_ERROR object too large for cache");
            }
            Request::Flush { delay, reply } => reply::answer(out, *reply, self.flush(*delay, now)),
            Request::Dump(form) => match self.shared.dumps.begin(*form) {
                Some(dump) => return Ok(StepOutcome::Dump(dump)),
                None => reply::line(out, "BUSY currently processing crawler request"),
            },
            Request::Stats(group) => self.shared.stats(*group, Since::Reset, peer, now, out),
            Request::ResetStats => {
                self.shared.reset_stats();
                reply::line(out, "RESET");
            }
            Request::Login(text) => return Ok(self.login(text, out)),
            Request::Say(line) => reply::line(out, line),
            Request::Nothing => {}
        }
        Ok(StepOutcome::Whole)
    }

    /// Answers a `gat`, from the key that begins at `resume` on.
    fn get_and_touch_many(
        &mut self,
        keys: &[u8],
        (with_cas, exptime): (WithCas, Exptime),
        resume: &mut usize,
        (output, write_stall): (&mut Output, &mut WriteStall),
        now: u32,
    ) -> Result<StepOutcome, OnFlash> {
        for (at, key) in keys_from(keys, *resume) {
            *resume = at;
            if !output.has_room() {
                return Ok(StepOutcome::OutputFull(at));
            }
            // The keys before it may have filled the last write buffer.
            if self.stall_write(write_stall) {
                return Ok(StepOutcome::Stalled(at));
            }
            if self.get_and_touch(key, with_cas, exptime, now, &mut output.bytes)?.is_err() {
                reply::line(&mut output.bytes, reply::NO_ROOM);
                return Ok(StepOutcome::Whole);
            }
        }
        reply::line(&mut output.bytes, "END");
        Ok(StepOutcome::Whole)
    }

    /// Carries out a `flush_all`; returns its reply.
    fn flush(&self, delay: Option<Exptime>, now: u32) -> &'static str {
        self.counters().cmd_flush.add(1);
        if self.shared.settings.flush == Flush::Refused {
            return "CLIENT_ERROR flush_all not allowed";
        }
        let Some(delay) = delay else { return BAD_EXPTIME };
        match self.shared.store.flush(delay, now) {
            Ok(()) => "OK",
            Err(error) => {
                tracing::error!(%error, "flush_all failed");
                "SERVER_ERROR flush_all cannot be written down"
            }
        }
    }

    /// Has the key of a fetch read. `None`: the fetch is complete; else the place that the key comes to.
    fn read(&mut self, session_number: usize, fetch: &Fetch, now: u32) -> Option<u32> {
        let Engine { shared, context, pending, .. } = self;
        let mut place = None;
        shared.store.read(context, fetch, now, || {
            let id = pending.open(session_number, Queue::Front);
            place = Some(id);
            pending.await_key(id, 0)
        });
        place
    }

    /// `user password`: the password is all that is behind the first blank, as in memcached 1.6.45.
    fn login(&self, text: &[u8], out: &mut Vec<u8>) -> StepOutcome {
        let Some(blank) = text.iter().position(|byte| *byte == b' ') else {
            reply::line(out, "CLIENT_ERROR bad authentication token format");
            return StepOutcome::Whole;
        };
        let (user, password) = (&text[..blank], &text[blank + 1..]);
        let counters = self.counters();
        counters.auth_cmds.add(1);
        if self.shared.users.as_ref().is_none_or(|users| users.accepts(user, password)) {
            reply::line(out, "STORED");
            return StepOutcome::LoggedIn;
        }
        counters.auth_errors.add(1);
        reply::line(out, "CLIENT_ERROR authentication failure");
        StepOutcome::Whole
    }
}

/// Whether a request may put something into the cache: then it waits for write buffers.
fn stores(request: &Request<'_>) -> bool {
    match request {
        Request::Put(_)
        | Request::Delete { .. }
        | Request::Arithmetic { .. }
        | Request::Touch { .. }
        | Request::Gat { .. }
        | Request::MetaSet(..)
        | Request::MetaDelete(_)
        | Request::MetaArithmetic(..)
        | Request::TooLarge { older: OnTooLarge::DropOld, .. } => true,
        Request::MetaGet(meta) => !commands::is_plain(meta),
        Request::Get { .. }
        | Request::TooLarge { .. }
        | Request::MetaDebug(_)
        | Request::Flush { .. }
        | Request::Dump(_)
        | Request::Stats(_)
        | Request::ResetStats
        | Request::Login(_)
        | Request::Say(_)
        | Request::Nothing => false,
    }
}
