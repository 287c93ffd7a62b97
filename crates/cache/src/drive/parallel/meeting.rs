//! Exchange of probes between the two threads of a batch.

use crate::lookup::Probe;
use granary_log::sync::{Condvar, Mutex, MutexGuard};
use std::mem::take;

/// One of the two threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Lower,
    Upper,
}

/// The exchange of one batch.
#[derive(Default)]
pub(super) struct Meeting {
    state: Mutex<MeetingState>,
    came: Condvar,
}

#[derive(Default)]
struct MeetingState {
    /// Blocks below it belong to the lower thread.
    middle: Option<u64>,
    /// Probes for each side.
    handed: [Option<Vec<Probe>>; 2],
    /// Sides whose thread has ended, perhaps by a panic, and hands over nothing more.
    has_left: [bool; 2],
}

impl Meeting {
    fn state(&self) -> MutexGuard<'_, MeetingState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The block that divides the batch: the proposal of the first thread that asks.
    pub fn middle(&self, proposed: u64) -> u64 {
        *self.state().middle.get_or_insert(proposed)
    }

    /// Hands the other side its probes, and waits for the probes that it has for this side; returns none if it has
    /// ended.
    pub fn exchange(&self, side: Side, for_other: Vec<Probe>) -> Vec<Probe> {
        let (own, other) = (side as usize, 1 - side as usize);
        let mut state = self.state();
        state.handed[other] = Some(for_other);
        self.came.notify_all();
        while state.handed[own].is_none() && !state.has_left[other] {
            state = self.came.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        take(&mut state.handed[own]).unwrap_or_default()
    }

    /// Returns a guard whose drop, also in a panic, notes that this side hands over nothing more.
    pub fn attend(&self, side: Side) -> impl Drop + '_ {
        Attendance { meeting: self, side }
    }
}

struct Attendance<'a> {
    meeting: &'a Meeting,
    side: Side,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        self.meeting.state().has_left[self.side as usize] = true;
        self.meeting.came.notify_all();
    }
}
