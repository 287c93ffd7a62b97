//! Plain `set`s of many clients at once: those at the front of all sessions' inputs are put into the cache together.

use super::Engine;
use super::input::Input;
use super::session::Session;
use crate::item::Deadline;
use crate::limits::{KEYS_PER_BATCH, WRITTEN_BATCH_BYTES_MAX};
use crate::protocol::{Mode, Put, Request, Step, Taken, reply};
use crate::store::NewItem;
use std::time::Instant;

/// Items that sessions begin with, each with the number of its session.
#[derive(Default)]
struct Gathered<'a> {
    puts: Vec<(usize, Put<'a>)>,
    bytes: usize,
}

impl<'a> Gathered<'a> {
    /// Adds the items that a session's input begins with, at most `most`; returns how far they reach.
    fn add(&mut self, session: usize, input: &'a Input, now: u32, most: usize) -> usize {
        let mut len = 0;
        let puts_max = KEYS_PER_BATCH.min(self.puts.len() + most);
        while begins_with_set(&input.rest()[len..])
            && self.puts.len() < puts_max
            && self.bytes < WRITTEN_BATCH_BYTES_MAX
        {
            match input.next_after(len) {
                Step::Request(Request::Put(put), taken)
                    if put.mode == Mode::Set && !Deadline::of(put.exptime, now).is_past(now) =>
                {
                    self.bytes += put.data.len();
                    len += taken.len;
                    self.puts.push((session, put));
                }
                _ => return len,
            }
        }
        len
    }
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
        let mut gathered = Gathered::default();
        let (mut taken, mut outputs) = (Vec::with_capacity(may.len()), Vec::with_capacity(may.len()));
        // Without write buffers each item has a wait of its own.
        let is_behind = self.is_behind();
        let most = if is_behind { 1 } else { KEYS_PER_BATCH };
        let mut stalled = Vec::new();
        for (i, Session { input, output, write_stall, .. }) in sessions.iter_mut().enumerate() {
            let mut len = if may[i] { gathered.add(i, input, now, most) } else { 0 };
            if is_behind && len > 0 && write_stall.begin(Instant::now(), self.write_stall_max) {
                if let Some((_, put)) = gathered.puts.pop() {
                    stalled.push((i, input.to_park(&Request::Put(put), Taken { len, swallow: 0 })));
                }
                len = 0;
            }
            taken.push(len);
            outputs.push(output);
        }
        let puts = gathered.puts;
        if puts.is_empty() {
            stalled.into_iter().for_each(|(session, put)| sessions[session].input.park(put));
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
            reply::answer(&mut outputs[*session].bytes, put.reply, said);
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
        stalled.into_iter().for_each(|(session, put)| sessions[session].input.park(put));
        true
    }
}
