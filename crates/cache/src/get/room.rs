//! Room to plan a lookup in, and who has it between lookups.

use super::{FalsePositive, Probe};
use crate::batch::ByShard;
use crate::limits::{LENT_ROOM_KEYS_MIN, SPARE_ROOMS_MAX};
use crate::search::Search;
use granary_log::Extent;
use granary_log::sync::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// What a lookup plans in. It allocates nothing once this has grown to the size of the batches.
#[derive(Default)]
pub(in crate::get) struct Scratch {
    pub by_shard: ByShard,
    pub probes: Vec<Probe>,
    /// Room to sort them in.
    pub spare: Vec<Probe>,
    pub false_positives: Vec<FalsePositive>,
    pub extents: Vec<Extent>,
    pub record: Vec<u8>,
    pub search: Search,
    /// Of lookups that go on: the numbers under which keys of the batch wait.
    pub ids: Vec<Option<u32>>,
}

impl Scratch {
    /// Nothing is wanted yet.
    pub fn begin(&mut self) {
        self.probes.clear();
        self.false_positives.clear();
    }
}

/// A batch's scratch space, and which of its keys are resolved: lookups change the one and share the other.
pub(in crate::get) type Room = (Scratch, Vec<AtomicBool>);

/// Room of large batches is lent by the process: it takes as much as there are such batches at the same time, not
/// as there are threads that ever had one. The last that came back goes first: it is in the processor's caches.
static SPARE: Mutex<Vec<Room>> = Mutex::new(Vec::new());

/// Room for the lookup of so many keys, none of which is resolved; out of `own` if they are few.
pub(super) fn borrow(own: &mut Room, keys: usize) -> Room {
    let (scratch, mut resolved) = match keys < LENT_ROOM_KEYS_MIN {
        true => std::mem::take(own),
        false => SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default(),
    };
    resolved.clear();
    resolved.resize_with(keys, || AtomicBool::new(false));
    (scratch, resolved)
}

/// Takes it back when the lookup has ended.
pub(super) fn give_back(own: &mut Room, room: Room) {
    if room.1.len() < LENT_ROOM_KEYS_MIN {
        *own = room;
        return;
    }
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if spare.len() < SPARE_ROOMS_MAX {
        spare.push(room);
    }
}
