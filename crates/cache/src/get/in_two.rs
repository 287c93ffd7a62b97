//! A large batch looked up by two threads: each plans half of the keys, then reads half of the places. It takes
//! them half the time, and not a block is read twice.

use super::io::Io;
use super::order::order;
use super::room::Scratch;
use super::{Counts, Lookup, Outcome};
use crate::cache::{Cache, Flash};
use crate::help::Help;
use crate::key::Key;
use crate::limits::SHARED_KEYS_MIN;

impl Cache {
    /// As [`get_many`](Self::get_many), with the help of another thread where the batch is large and a core has
    /// no other batch to look up. The outcome of each key goes to one of the sinks.
    pub fn get_many_in_two<S: FnMut(usize, Outcome<'_>) + Send>(
        &self,
        io: &mut Io,
        keys: &[Key<'_>],
        now: u32,
        [sink, other_sink]: [S; 2],
    ) {
        if keys.len() < SHARED_KEYS_MIN {
            return self.get_many(io, keys, now, sink);
        }
        let (_busy, help) = Help::find();
        let Some(help) = help else { return self.get_many(io, keys, now, sink) };
        let watched_below = self.shared.begin_lookup(now);
        let (mut scratch, resolved) = io.begin(keys);
        let lookup = |sink| {
            let (shared, resolved, counts) = (&*self.shared, resolved.as_slice(), Counts::default());
            Lookup { shared, keys, resolved, now, sink, counts, watched_below }
        };
        let (mut mine, mut theirs) = (lookup(sink), lookup(other_sink));
        mine.run_in_two(&mut theirs, &help, io, &mut scratch);
        mine.count();
        theirs.count();
        io.end((scratch, resolved));
    }
}

impl<S: FnMut(usize, Outcome<'_>) + Send> Lookup<'_, S> {
    fn run_in_two(&mut self, other: &mut Self, help: &Help, io: &mut Io, scratch: &mut Scratch) {
        let (half, all) = (self.keys.len() / 2, self.keys.len());
        let ((), mut wants) = help.both(
            || {
                self.plan(scratch, 0..half);
                order(&mut scratch.wants, &mut scratch.spare);
            },
            |io| {
                let scratch = io.scratch();
                other.plan(scratch, half..all);
                order(&mut scratch.wants, &mut scratch.spare);
                std::mem::take(&mut scratch.wants)
            },
        );
        let Some(flash) = &self.shared.flash else { return };
        scratch.wants.append(&mut wants);
        order(&mut scratch.wants, &mut scratch.spare);
        let mut round = 1;
        if scratch.wants.len() >= SHARED_KEYS_MIN {
            self.fetch_in_two(other, help, flash, io, scratch);
            self.plan_again(scratch, false);
            round += 1;
        }
        self.go_on(io, scratch, round);
    }

    fn fetch_in_two(
        &mut self,
        other: &mut Self,
        help: &Help,
        flash: &Flash,
        io: &mut Io,
        scratch: &mut Scratch,
    ) {
        // Wants of one block stay together.
        let middle = scratch.wants[scratch.wants.len() / 2].place;
        let upper = scratch.wants.split_off(scratch.wants.partition_point(|want| want.place < middle));
        let ((), mut tried) = help.both(
            || self.fetch(flash, io, scratch),
            |io| {
                let mut scratch = std::mem::take(io.scratch());
                scratch.wants = upper;
                other.fetch(flash, io, &mut scratch);
                *io.scratch() = scratch;
                std::mem::take(&mut io.scratch().tried)
            },
        );
        scratch.tried.append(&mut tried);
    }
}
