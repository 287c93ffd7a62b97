//! Plain `set`s of many clients at once: those at the front of all sessions' inputs are put into the cache together.

use super::Engine;
use super::session::{Input, Output, Session};
use crate::item::Deadline;
use crate::limits::{KEYS_PER_BATCH, WRITTEN_BATCH_BYTES_MAX};
use crate::protocol::{Mode, Put, Request, Step, Taken, reply};
use crate::store::NewItem;

/// Gathers the plain `set`s that a session's input begins with; returns how far they reach.
fn gather<'a>(
    session: usize,
    input: &'a Input,
    now: u32,
    puts: &mut Vec<(usize, Put<'a>)>,
    bytes: &mut usize,
) -> usize {
    let mut len = 0;
    while begins_with_set(&input.rest()[len..])
        && puts.len() < KEYS_PER_BATCH
        && *bytes < WRITTEN_BATCH_BYTES_MAX
    {
        match input.next_after(len) {
            Step::Request(Request::Put(put), taken)
                if put.mode == Mode::Set && !Deadline::of(put.exptime, now).is_past(now) =>
            {
                *bytes += put.data.len();
                len += taken.len;
                puts.push((session, put));
            }
            _ => return len,
        }
    }
    len
}

fn begins_with_set(rest: &[u8]) -> bool {
    rest.starts_with(b"set ")
}

impl Engine {
    /// Stores the items of the plain `set`s that sessions begin with; returns whether there were any.
    pub(super) fn set_many(&mut self, sessions: &mut [Session], now: u32) -> bool {
        if !sessions.iter().any(|session| begins_with_set(session.input.rest())) {
            return false;
        }
        let may: Vec<bool> = sessions.iter().map(Session::may_step).collect();
        let mut parts: Vec<(&Input, &mut Output)> =
            sessions.iter_mut().map(|session| (&session.input, &mut session.output)).collect();
        let (mut puts, mut bytes) = (Vec::new(), 0);
        let taken: Vec<usize> = parts
            .iter()
            .enumerate()
            .map(|(i, (input, _))| if may[i] { gather(i, input, now, &mut puts, &mut bytes) } else { 0 })
            .collect();
        if puts.is_empty() {
            return false;
        }
        let items: Vec<NewItem<'_>> = puts
            .iter()
            .map(|(_, put)| NewItem {
                key: &put.key,
                flags: put.flags,
                deadline: Deadline::of(put.exptime, now),
                data: put.data,
            })
            .collect();
        let Engine { shared, context, .. } = self;
        let mut said = vec!["STORED"; puts.len()];
        shared.store.set_many(context, &items, now, |i| said[i] = reply::NO_ROOM);
        for ((session, put), said) in puts.iter().zip(&said) {
            reply::answer(&mut parts[*session].1.bytes, put.reply, said);
        }
        let counters = self.counters();
        counters.cmd_set.add(puts.len() as u64);
        counters.total_items.add(said.iter().filter(|said| **said != reply::NO_ROOM).count() as u64);
        for (session, len) in sessions.iter_mut().zip(taken) {
            if len > 0 {
                session.note_change();
                session.advance(Taken { len, swallow: 0 });
            }
        }
        true
    }
}
