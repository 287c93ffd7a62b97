//! Reads of sessions that wait for the device: keeps what was found of their keys until they are answered, in order.

use super::input::{Cursor, Input};
use super::pieces::{ParkedPieces, Piece};
use crate::item::{Header, Item};
use crate::limits::{BUFFER_BYTES_KEPT, PARTLY_ANSWERED_KEYS_MAX, PENDING_BYTES_MAX, PENDING_READS_MAX};
use crate::store::{Lookup, MissReason};
use std::ops::Range;

/// The state of the lookup of a key.
#[derive(Debug)]
pub(super) enum ReadState {
    /// The item's header, and where its data lies in the separate buffer of values.
    Hit(Header, Range<usize>),
    Miss(MissReason),
    /// The value found no room: the key is to be looked up again.
    Later,
    /// The item is being read from the device.
    Awaited,
}

impl ReadState {
    /// Appends the item's data to `values` if that stays within `bytes_max`.
    pub fn of(lookup: Lookup<'_>, values: &mut Vec<u8>, bytes_max: usize) -> Self {
        match lookup {
            Lookup::Miss(why) => Self::Miss(why),
            Lookup::Hit(Item { header, data }) if values.len() + data.len() <= bytes_max => {
                let begin = values.len();
                values.extend_from_slice(data);
                Self::Hit(header, begin..values.len())
            }
            Lookup::Hit(_) => Self::Later,
        }
    }
}

/// The keys of one session's leading reads.
#[derive(Default)]
pub(super) struct PendingRead {
    /// The session's number; `None`: the session has gone, but reads for it are still under way.
    owner: Option<usize>,
    /// Keys whose lookup has not ended yet.
    left: usize,
    /// Of each key, in the order of the input.
    found: Vec<ReadState>,
    values: Vec<u8>,
    /// The number of keys that were answered.
    answered: usize,
    queue: Queue,
    /// The requests that the keys belong to.
    pieces: ParkedPieces,
}

/// The position of a [`PendingRead`] among those of its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Queue {
    /// The first.
    #[default]
    Front,
    /// Others of the session are answered before it.
    Behind,
}

impl PendingRead {
    /// The results of the next keys that can be answered, and the buffer of their values.
    pub fn ready(&self) -> (&[ReadState], &[u8]) {
        if self.left > 0 && self.found.len() > PARTLY_ANSWERED_KEYS_MAX {
            return (&[], &self.values);
        }
        let rest = &self.found[self.answered..];
        let ready = rest.iter().position(|found| matches!(found, ReadState::Awaited)).unwrap_or(rest.len());
        (&rest[..ready], &self.values)
    }

    /// The next pieces of the requests, of `keys` keys, and the cursor behind them in the input.
    pub fn pieces<'a>(&'a self, input: &'a Input, keys: usize) -> (Vec<Piece<'a>>, Cursor) {
        self.pieces.next(input, keys)
    }
}

/// All pending reads of a thread. A place in `all` is used again when all its reads have come.
#[derive(Default)]
pub(super) struct PendingReads {
    all: Vec<PendingRead>,
    free: Vec<u32>,
    /// Sessions that have a key that can be answered.
    ready: Vec<usize>,
    /// Keys that are being read from the device.
    waiting: u64,
}

/// The place `id` and the key's number `nth` in it, from the ticket that the store was given.
fn parse(ticket: u64) -> (usize, usize) {
    ((ticket >> 32) as usize, ticket as u32 as usize)
}

impl PendingReads {
    /// Keys that are being read from the device.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Opens a place for a session.
    pub fn open(&mut self, owner: usize, queue: Queue) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(PendingRead::default());
            self.all.len() as u32 - 1
        });
        let pending = &mut self.all[id as usize];
        (pending.owner, pending.queue) = (Some(owner), queue);
        id
    }

    /// Notes that a key is being read from the device; returns the ticket of that read.
    pub fn await_key(&mut self, id: u32, nth: usize) -> u64 {
        let pending = &mut self.all[id as usize];
        pending.left += 1;
        self.waiting += 1;
        if pending.found.len() <= nth {
            pending.found.resize_with(nth + 1, || ReadState::Later);
        }
        pending.found[nth] = ReadState::Awaited;
        u64::from(id) << 32 | nth as u64
    }

    /// Notes the results of all keys except those that are being read from the device.
    pub fn fill(&mut self, id: u32, found: &[ReadState], values: &[u8]) {
        let pending = &mut self.all[id as usize];
        pending.found.resize_with(found.len(), || ReadState::Later);
        let queue = pending.queue;
        for (nth, (pending_found, found)) in pending.found.iter_mut().zip(found).enumerate() {
            match found {
                ReadState::Miss(why) => *pending_found = ReadState::Miss(*why),
                ReadState::Hit(header, data) => {
                    let item = Item { header: *header, data: &values[data.clone()] };
                    *pending_found =
                        ReadState::of(Lookup::Hit(item), &mut pending.values, bytes_max(queue, nth));
                }
                ReadState::Later | ReadState::Awaited => {}
            }
        }
        if !matches!(pending.found.first(), Some(ReadState::Awaited)) {
            self.ready.extend(pending.owner);
        }
    }

    /// Keeps the requests that the keys belong to, up to this cursor.
    pub fn store(&mut self, id: u32, input: &Input, pieces: &[Piece<'_>], end: Cursor) {
        self.all[id as usize].pieces.keep(input, pieces, end);
    }

    /// Notes the result of a read from the device.
    pub fn complete(&mut self, ticket: u64, lookup: Lookup<'_>) {
        let (id, nth) = parse(ticket);
        let pending = &mut self.all[id];
        pending.left -= 1;
        self.waiting -= 1;
        match pending.owner {
            Some(_) => {
                pending.found[nth] = ReadState::of(lookup, &mut pending.values, bytes_max(pending.queue, nth))
            }
            None if pending.left == 0 => return self.close(id as u32),
            None => return,
        }
        if nth == pending.answered || pending.left == 0 {
            self.ready.extend(pending.owner);
        }
    }

    /// Notes that the next `keys` keys were answered with `pieces` pieces; returns whether these were the last.
    pub fn answered(&mut self, id: u32, keys: usize, pieces: usize) -> bool {
        let pending = &mut self.all[id as usize];
        pending.answered += keys;
        pending.pieces.give(pieces);
        pending.answered == pending.found.len()
    }

    /// The number of values that fit a read at the front of the queue, estimated from the one that found no room here
    /// after `given` more keys; and whether the values found by this read take half of its room or less.
    pub fn fitting(&self, id: u32, given: usize) -> (usize, bool) {
        let PendingRead { answered, queue, values, .. } = &self.all[id as usize];
        let room = bytes_max(*queue, 1);
        ((answered + given) * (PENDING_BYTES_MAX / room), values.len() * 2 <= room)
    }

    /// The state of a place.
    pub fn get(&self, id: u32) -> &PendingRead {
        &self.all[id as usize]
    }

    /// Closes a place all of whose keys are answered.
    pub fn close(&mut self, id: u32) {
        let pending = &mut self.all[id as usize];
        (pending.owner, pending.answered) = (None, 0);
        pending.found.clear();
        pending.pieces.clear();
        pending.values.clear();
        pending.values.shrink_to(BUFFER_BYTES_KEPT);
        self.free.push(id);
    }

    /// Drops a place whose session has gone.
    pub fn cancel(&mut self, id: u32) {
        let pending = &mut self.all[id as usize];
        (pending.owner, pending.answered) = (None, 0);
        (pending.found, pending.values) = (Vec::new(), Vec::new());
        pending.pieces = ParkedPieces::default();
        if pending.left == 0 {
            self.free.push(id);
        }
    }

    /// The number of a session that can be answered further.
    pub fn next_ready(&mut self) -> Option<usize> {
        self.ready.pop()
    }
}

/// Room for values, in bytes. The first key at the front always finds room, so that there is progress. The place at the
/// front has [`PENDING_BYTES_MAX`], and all those behind it together have as much again.
fn bytes_max(queue: Queue, nth: usize) -> usize {
    match (queue, nth) {
        (Queue::Front, 0) => usize::MAX,
        (Queue::Front, _) => PENDING_BYTES_MAX,
        (Queue::Behind, _) => PENDING_BYTES_MAX / PENDING_READS_MAX,
    }
}
