//! Reads of sessions that wait for the device: what was found of their keys until they are answered, in order.

use super::pieces::{KeptPieces, Piece};
use super::session::{Cursor, Input};
use crate::item::{Header, Item};
use crate::limits::{BUFFER_BYTES_KEPT, PARTLY_ANSWERED_KEYS_MAX, PENDING_BYTES_MAX, PENDING_READS_MAX};
use crate::store::{Looked, Why};
use std::ops::Range;

/// What was found of a key.
#[derive(Debug)]
pub(super) enum Found {
    /// Its item, whose data lies apart.
    Hit(Header, Range<usize>),
    Miss(Why),
    /// Its value found no room: it is to be looked up again.
    Later,
    /// It is on its way from the device.
    Awaited,
}

impl Found {
    /// Puts a value beside others, if there is room.
    pub fn of(looked: Looked<'_>, values: &mut Vec<u8>, bytes_max: usize) -> Self {
        match looked {
            Looked::Miss(why) => Self::Miss(why),
            Looked::Hit(Item { header, data }) if values.len() + data.len() <= bytes_max => {
                let begin = values.len();
                values.extend_from_slice(data);
                Self::Hit(header, begin..values.len())
            }
            Looked::Hit(_) => Self::Later,
        }
    }
}

/// The keys of one session's leading reads.
#[derive(Default)]
pub(super) struct PendingRead {
    /// `None`: the session has gone; what it asked for has not come yet.
    owner: Option<usize>,
    /// Keys that were not found yet.
    left: usize,
    /// By their order in the input.
    found: Vec<Found>,
    values: Vec<u8>,
    /// How many of them were answered.
    answered: usize,
    queue: Queue,
    /// The requests that they are of.
    pieces: KeptPieces,
}

/// Where a place is among those of its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Queue {
    /// The first.
    #[default]
    Front,
    /// It waits for others, too.
    Behind,
}

impl PendingRead {
    /// What was found of the next keys that can be answered, and where their values lie.
    pub fn ready(&self) -> (&[Found], &[u8]) {
        if self.left > 0 && self.found.len() > PARTLY_ANSWERED_KEYS_MAX {
            return (&[], &self.values);
        }
        let rest = &self.found[self.answered..];
        let ready = rest.iter().position(|found| matches!(found, Found::Awaited)).unwrap_or(rest.len());
        (&rest[..ready], &self.values)
    }

    /// The next pieces of the requests, of so many keys, and where the input goes on behind them.
    pub fn pieces<'a>(&'a self, input: &'a Input, keys: usize) -> (Vec<Piece<'a>>, Cursor) {
        self.pieces.next(input, keys)
    }
}

/// All of a thread's. A place is used again when everything asked for has come.
#[derive(Default)]
pub(super) struct PendingReads {
    all: Vec<PendingRead>,
    free: Vec<u32>,
    /// Owners of those of which a key can be answered.
    ready: Vec<usize>,
    /// Keys that are on their way from the device.
    waiting: u64,
}

/// The key `nth` of place `id`, as the store knows it.
fn parse(ticket: u64) -> (usize, usize) {
    ((ticket >> 32) as usize, ticket as u32 as usize)
}

impl PendingReads {
    /// Keys that are on their way from the device.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// A place for a session.
    pub fn open(&mut self, owner: usize, queue: Queue) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(PendingRead::default());
            self.all.len() as u32 - 1
        });
        let pending = &mut self.all[id as usize];
        (pending.owner, pending.queue) = (Some(owner), queue);
        id
    }

    /// A key is looked up: its ticket.
    pub fn expect(&mut self, id: u32, nth: usize) -> u64 {
        let pending = &mut self.all[id as usize];
        pending.left += 1;
        self.waiting += 1;
        if pending.found.len() <= nth {
            pending.found.resize_with(nth + 1, || Found::Later);
        }
        pending.found[nth] = Found::Awaited;
        u64::from(id) << 32 | nth as u64
    }

    /// What is known of all keys at first, but for those that are expected.
    pub fn fill(&mut self, id: u32, found: &[Found], values: &[u8]) {
        let pending = &mut self.all[id as usize];
        pending.found.resize_with(found.len(), || Found::Later);
        let queue = pending.queue;
        for (nth, (pending_found, found)) in pending.found.iter_mut().zip(found).enumerate() {
            match found {
                Found::Miss(why) => *pending_found = Found::Miss(*why),
                Found::Hit(header, data) => {
                    let item = Item { header: *header, data: &values[data.clone()] };
                    *pending_found = Found::of(Looked::Hit(item), &mut pending.values, bytes_max(queue, nth));
                }
                Found::Later | Found::Awaited => {}
            }
        }
        if !matches!(pending.found.first(), Some(Found::Awaited)) {
            self.ready.extend(pending.owner);
        }
    }

    /// Keeps the requests that the keys are of, up to this cursor.
    pub fn keep(&mut self, id: u32, input: &Input, pieces: &[Piece<'_>], end: Cursor) {
        self.all[id as usize].pieces.keep(input, pieces, end);
    }

    /// A key was found, or not.
    pub fn tell(&mut self, ticket: u64, looked: Looked<'_>) {
        let (id, nth) = parse(ticket);
        let pending = &mut self.all[id];
        pending.left -= 1;
        self.waiting -= 1;
        match pending.owner {
            Some(_) => {
                pending.found[nth] = Found::of(looked, &mut pending.values, bytes_max(pending.queue, nth))
            }
            None if pending.left == 0 => return self.close(id as u32),
            None => return,
        }
        if nth == pending.answered || pending.left == 0 {
            self.ready.extend(pending.owner);
        }
    }

    /// The next so many keys were answered, and pieces given; whether these were the last.
    pub fn answered(&mut self, id: u32, keys: usize, pieces: usize) -> bool {
        let pending = &mut self.all[id as usize];
        pending.answered += keys;
        pending.pieces.give(pieces);
        pending.answered == pending.found.len()
    }

    /// How many values like the one that found no room, behind `given` keys that are answered, have room in a read at the
    /// front of the queue; and whether what was found by this read takes half of its room or less.
    pub fn fitting(&self, id: u32, given: usize) -> (usize, bool) {
        let PendingRead { answered, queue, values, .. } = &self.all[id as usize];
        let room = bytes_max(*queue, 1);
        ((answered + given) * (PENDING_BYTES_MAX / room), values.len() * 2 <= room)
    }

    /// What is there of a session's keys.
    pub fn get(&self, id: u32) -> &PendingRead {
        &self.all[id as usize]
    }

    /// A session has its answers.
    pub fn close(&mut self, id: u32) {
        let pending = &mut self.all[id as usize];
        (pending.owner, pending.answered) = (None, 0);
        pending.found.clear();
        pending.pieces.clear();
        pending.values.clear();
        pending.values.shrink_to(BUFFER_BYTES_KEPT);
        self.free.push(id);
    }

    /// A session has gone.
    pub fn forget(&mut self, id: u32) {
        let pending = &mut self.all[id as usize];
        (pending.owner, pending.answered) = (None, 0);
        (pending.found, pending.values) = (Vec::new(), Vec::new());
        pending.pieces = KeptPieces::default();
        if pending.left == 0 {
            self.free.push(id);
        }
    }

    /// A session that can be answered further.
    pub fn next_ready(&mut self) -> Option<usize> {
        self.ready.pop()
    }
}

/// The first key of those that come first finds room always, so that there is progress. All places of a session
/// have so much room together, and as much again.
fn bytes_max(queue: Queue, nth: usize) -> usize {
    match (queue, nth) {
        (Queue::Front, 0) => usize::MAX,
        (Queue::Front, _) => PENDING_BYTES_MAX,
        (Queue::Behind, _) => PENDING_BYTES_MAX / PENDING_READS_MAX,
    }
}
