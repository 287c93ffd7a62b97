//! Where the two threads of a batch hand each other what is the other's.

use crate::lookup::Probe;
use granary_log::sync::sync::{Condvar, Mutex, MutexGuard};
use std::mem::take;

/// The two threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Lower,
    Upper,
}

/// Lives as long as the batch.
#[derive(Default)]
pub(super) struct Meeting {
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
struct State {
    /// Blocks below it are the lower thread's.
    middle: Option<u64>,
    /// Probes for each side.
    handed: [Option<Vec<Probe>>; 2],
    /// A thread has ended, perhaps by a panic: it hands nothing over any more.
    has_left: [bool; 2],
}

impl Meeting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The block that divides the batch: what the first of the two that asks proposes.
    pub fn middle(&self, proposed: u64) -> u64 {
        *self.state().middle.get_or_insert(proposed)
    }

    /// Hands the other side its probes, and waits for those that the other has for this one; none, if it has left.
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

    /// Says at its end, however that comes, that this side hands nothing over any more.
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
