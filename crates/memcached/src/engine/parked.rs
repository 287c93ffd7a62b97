//! Reads of sessions that wait for the device: what was found of their keys until all are there.

use crate::item::{Header, Item};
use crate::limits::{BUFFER_BYTES_KEPT, PARKED_BYTES_MAX};
use crate::store::{Looked, Why};
use std::ops::Range;

/// What was found of a key.
#[derive(Debug)]
pub(super) enum Found {
    /// Its item, whose data lies apart.
    Hit(Header, Range<usize>),
    Miss(Why),
    /// It is not there yet, or its value found no room: then it is to be looked up again.
    Later,
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
pub(super) struct Parked {
    /// `None`: the session has gone; what it asked for has not come yet.
    owner: Option<usize>,
    /// Keys that were not found yet.
    left: usize,
    /// By their order in the input.
    pub found: Vec<Found>,
    pub values: Vec<u8>,
}

/// All of a thread's. A place is used again when everything asked for has come.
#[derive(Default)]
pub(super) struct ParkingLot {
    all: Vec<Parked>,
    free: Vec<u32>,
    /// Owners of those that became complete.
    ripe: Vec<usize>,
}

/// The key `nth` of place `id`, as the store knows it.
fn parse(ticket: u64) -> (usize, usize) {
    ((ticket >> 32) as usize, ticket as u32 as usize)
}

impl ParkingLot {
    /// A place for a session.
    pub fn open(&mut self, owner: usize) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(Parked::default());
            self.all.len() as u32 - 1
        });
        self.all[id as usize].owner = Some(owner);
        id
    }

    /// A key is looked up: its ticket.
    pub fn expect(&mut self, id: u32, nth: usize) -> u64 {
        self.all[id as usize].left += 1;
        u64::from(id) << 32 | nth as u64
    }

    /// What is known of all keys at first.
    pub fn fill(&mut self, id: u32, found: &[Found], values: &[u8]) {
        let parked = &mut self.all[id as usize];
        for (nth, found) in found.iter().enumerate() {
            let found = match found {
                Found::Miss(why) => Found::Miss(*why),
                Found::Hit(header, data) => {
                    let item = Item { header: *header, data: &values[data.clone()] };
                    Found::of(Looked::Hit(item), &mut parked.values, bytes_max(nth))
                }
                Found::Later => Found::Later,
            };
            parked.found.push(found);
        }
    }

    /// A key was found, or not.
    pub fn tell(&mut self, ticket: u64, looked: Looked<'_>) {
        let (id, nth) = parse(ticket);
        let parked = &mut self.all[id];
        parked.left -= 1;
        match parked.owner {
            Some(_) => parked.found[nth] = Found::of(looked, &mut parked.values, bytes_max(nth)),
            None if parked.left == 0 => return self.close(id as u32),
            None => return,
        }
        if parked.left == 0 {
            self.ripe.extend(parked.owner);
        }
    }

    /// Whether all keys were looked up.
    pub fn is_complete(&self, id: u32) -> bool {
        self.all[id as usize].left == 0
    }

    /// What is there of a session's keys.
    pub fn get(&self, id: u32) -> &Parked {
        &self.all[id as usize]
    }

    /// A session has its answers.
    pub fn close(&mut self, id: u32) {
        let parked = &mut self.all[id as usize];
        parked.owner = None;
        parked.found.clear();
        parked.values.clear();
        parked.values.shrink_to(BUFFER_BYTES_KEPT);
        self.free.push(id);
    }

    /// A session has gone.
    pub fn forget(&mut self, id: u32) {
        let parked = &mut self.all[id as usize];
        parked.owner = None;
        (parked.found, parked.values) = (Vec::new(), Vec::new());
        if parked.left == 0 {
            self.free.push(id);
        }
    }

    /// A session of which everything was found lately.
    pub fn next_ripe(&mut self) -> Option<usize> {
        self.ripe.pop()
    }
}

/// The first key finds room always, so that there is progress.
fn bytes_max(nth: usize) -> usize {
    if nth == 0 { usize::MAX } else { PARKED_BYTES_MAX }
}
