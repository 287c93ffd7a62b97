//! A large batch looked up by two threads: each plans half of the keys, then reads half of the places. It takes
//! them half the time, and not a block is read twice.
//!
//! The places that they read are known when both have planned. They begin at the two ends of the file, with what
//! the first keys want, so that the device has something to do meanwhile.

use super::ahead::{Ahead, End};
use super::io::Io;
use super::order::order;
use super::room::Scratch;
use super::{Counts, FalsePositive, Lookup, Outcome, Probe};
use crate::help::{Help, Working};
use crate::key::Key;
use crate::limits::{FIRST_KEYS_DIVISOR, SHARED_KEYS_MIN};
use crate::partition::Partition;
use granary_log::sync::sync::mpsc::{Receiver, Sender, channel};
use std::ops::Range;

impl Partition {
    /// See [`Cache`](crate::Cache).
    pub fn get_many_parallel<S: FnMut(usize, Outcome<'_>) + Send>(
        &self,
        io: &mut Io,
        keys: &[Key<'_>],
        now: u32,
        [sink, other_sink]: [S; 2],
    ) {
        if keys.len() < SHARED_KEYS_MIN {
            return self.get_many(io, keys, now, sink);
        }
        let working = Working::begin();
        let sample_threshold = self.shared.begin_lookup(now);
        let (mut scratch, resolved) = io.begin(keys);
        let lookup = |sink| {
            let (shared, resolved, counts) = (&*self.shared, resolved.as_slice(), Counts::default());
            Lookup { shared, keys, resolved, now, sink, counts, sample_threshold }
        };
        let (mut mine, mut theirs) = (lookup(sink), lookup(other_sink));
        scratch.begin();
        // Without a RAM tier everybody waits for the device, and the sooner it begins the better.
        let waits = self.shared.memory_bytes == 0 && self.shared.flash.is_some();
        match if waits { working.help() } else { working.help_to_compute() } {
            Some(help) => mine.run_in_two(&mut theirs, &help, io, &mut scratch),
            None => mine.read_in_two(&mut theirs, &working, io, &mut scratch),
        }
        mine.count();
        theirs.count();
        io.end((scratch, resolved));
    }
}

/// One of the two, and how it hears of the place from which on the places are the upper thread's: the lower one
/// says so.
enum Half {
    Lower(Sender<u64>),
    Upper(Receiver<u64>),
}

/// Wants that the other thread reads, and those that it has for this one. If it has panicked, there are none.
struct Exchange {
    give: Sender<Vec<Probe>>,
    take: Receiver<Vec<Probe>>,
}

impl<S: FnMut(usize, Outcome<'_>) + Send> Lookup<'_, S> {
    fn run_in_two(&mut self, other: &mut Self, help: &Help, io: &mut Io, scratch: &mut Scratch) {
        let (half, all) = (self.keys.len() / 2, self.keys.len());
        let (tell, middle) = channel();
        let ((to_upper, from_lower), (to_lower, from_upper)) = (channel(), channel());
        let mine = Exchange { give: to_upper, take: from_upper };
        let theirs = Exchange { give: to_lower, take: from_lower };
        let ((), mut false_positives) = help.both(
            || self.look_half_up(0..half, Half::Lower(tell), mine, io, scratch),
            |io| {
                in_own_room(io, |io, room| {
                    other.look_half_up(half..all, Half::Upper(middle), theirs, io, room)
                })
            },
        );
        scratch.false_positives.append(&mut false_positives);
        self.plan_again(scratch, false);
        self.go_on(io, scratch, 2);
    }

    /// Plans alone, and reads what is wanted together if that is much.
    fn read_in_two(&mut self, other: &mut Self, working: &Working, io: &mut Io, scratch: &mut Scratch) {
        self.plan(scratch, 0..self.keys.len());
        let help = if scratch.probes.len() < SHARED_KEYS_MIN { None } else { working.help() };
        let (Some(help), Some(flash)) = (help, &self.shared.flash) else {
            return self.go_on(io, scratch, 1);
        };
        order(&mut scratch.probes, &mut scratch.spare);
        // Wants of one block stay together.
        let middle = scratch.probes[scratch.probes.len() / 2].place;
        let upper = scratch.probes.split_off(scratch.probes.partition_point(|want| want.place < middle));
        let ((), mut false_positives) = help.both(
            || self.fetch(flash, io, scratch),
            |io| {
                in_own_room(io, |io, room| {
                    room.probes = upper;
                    other.fetch(flash, io, room);
                })
            },
        );
        scratch.false_positives.append(&mut false_positives);
        self.plan_again(scratch, false);
        self.go_on(io, scratch, 2);
    }

    /// Plans half of the keys, and reads half of what both halves want.
    fn look_half_up(
        &mut self,
        keys: Range<usize>,
        half: Half,
        exchange: Exchange,
        io: &mut Io,
        scratch: &mut Scratch,
    ) {
        let Some(flash) = &self.shared.flash else { return self.plan(scratch, keys) };
        let first_end = keys.start + keys.len() / FIRST_KEYS_DIVISOR;
        self.plan(scratch, keys.start..first_end);
        let guess = middle_of(&scratch.probes);
        let end = if matches!(half, Half::Lower(_)) { End::Low } else { End::High };
        let mut ahead = Ahead::choose(flash, &scratch.probes, end, guess);
        let reads = io.read_ahead(flash, ahead.extents());
        ahead.truncate(reads.begun());
        if let Half::Lower(tell) = &half {
            let _ = tell.send(guess);
        }
        self.plan(scratch, first_end..keys.end);
        let middle = match half {
            Half::Lower(_) => guess,
            Half::Upper(middle) => middle.recv().unwrap_or(guess),
        };
        exchange.run(scratch, |want| (want.place < middle) == (end == End::Low));
        let long = self.fetch_with(flash, reads, &ahead, scratch);
        self.deliver_long_ones(flash, io, long, scratch);
    }
}

/// Lets a helping thread look up in its own room; gives the places that did not hold their keys.
fn in_own_room(io: &mut Io, look_up: impl FnOnce(&mut Io, &mut Scratch)) -> Vec<FalsePositive> {
    let mut scratch = std::mem::take(io.scratch());
    scratch.begin();
    look_up(io, &mut scratch);
    let false_positives = std::mem::take(&mut scratch.false_positives);
    *io.scratch() = scratch;
    false_positives
}

/// The place in the middle.
fn middle_of(probes: &[Probe]) -> u64 {
    let mut places: Vec<u64> = probes.iter().map(|want| want.place).collect();
    let middle = places.len() / 2;
    if places.is_empty() { 0 } else { *places.select_nth_unstable(middle).1 }
}

impl Exchange {
    /// Gives away the wants that are not one's own; takes what is.
    fn run(self, scratch: &mut Scratch, is_own: impl Fn(&Probe) -> bool) {
        let Scratch { probes, spare, .. } = scratch;
        let mut given = std::mem::take(spare);
        given.clear();
        probes.retain(|want| {
            let stays = is_own(want);
            if !stays {
                given.push(*want);
            }
            stays
        });
        let _ = self.give.send(given);
        *spare = self.take.recv().unwrap_or_default();
        probes.append(spare);
    }
}
