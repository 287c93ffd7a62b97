//! A large batch's blocks, read and looked through by two threads: this one and a helper. The helper keeps
//! what it finds, for `sink` is this thread's.

use super::fetch::Wanted;
use super::io::{Io, Scratch};
use super::{Counts, Lookup, Outcome, Tried};
use crate::cache::Flash;
use crate::limits::{HELPED_BYTES_MAX, HELPED_READS, KEPT_BYTES_SPARE};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the helper found: outcomes, with their values one after the other.
#[derive(Default)]
pub(super) struct Kept {
    values: Vec<u8>,
    outcomes: Vec<KeptOutcome>,
}

struct KeptOutcome {
    key: u32,
    tag: Tag,
    expires_at: u32,
    value_len: usize,
}

#[derive(Clone, Copy)]
enum Tag {
    Hit,
    Negative,
    ExpiredHit,
    ExpiredNegative,
    Miss,
}

impl Kept {
    fn push(&mut self, key: usize, outcome: Outcome<'_>) {
        let (tag, value, expires_at) = match outcome {
            Outcome::Hit { value, expires_at } => (Tag::Hit, value, expires_at),
            Outcome::Negative { expires_at } => (Tag::Negative, &[][..], expires_at),
            Outcome::Expired { value: Some(value), expires_at } => (Tag::ExpiredHit, value, expires_at),
            Outcome::Expired { value: None, expires_at } => (Tag::ExpiredNegative, &[][..], expires_at),
            Outcome::Miss => (Tag::Miss, &[][..], 0),
        };
        self.values.extend_from_slice(value);
        self.outcomes.push(KeptOutcome { key: key as u32, tag, expires_at, value_len: value.len() });
    }

    /// Hands everything over, and forgets it.
    fn drain(&mut self, mut sink: impl FnMut(u32, Outcome<'_>)) {
        let mut values = self.values.as_slice();
        for KeptOutcome { key, tag, expires_at, value_len } in self.outcomes.drain(..) {
            let value;
            (value, values) = values.split_at(value_len);
            let outcome = match tag {
                Tag::Hit => Outcome::Hit { value, expires_at },
                Tag::Negative => Outcome::Negative { expires_at },
                Tag::ExpiredHit => Outcome::Expired { value: Some(value), expires_at },
                Tag::ExpiredNegative => Outcome::Expired { value: None, expires_at },
                Tag::Miss => Outcome::Miss,
            };
            sink(key, outcome);
        }
        self.values.clear();
        self.values.shrink_to(KEPT_BYTES_SPARE);
    }
}

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    /// As `read_stored` of everything: both threads take the next few reads until there are none. If the helper
    /// is busy with another's batch, this thread does all of it.
    pub(super) fn fetch_helped(
        &mut self,
        flash: &Flash,
        io: &mut Io,
        wanted: &Wanted<'_>,
        scratch: &mut Scratch,
    ) {
        let Some(pool) = pool() else {
            return self.read_stored(flash, io, wanted, 0..wanted.reads(), scratch);
        };
        let mut kept = std::mem::take(&mut scratch.kept);
        // What the helper keeps stays small.
        let most = (HELPED_BYTES_MAX / Io::extent_bytes_max(flash.log.geometry().block_size())).max(2);
        let all = Reads::new(0..wanted.reads(), most);
        while let Some(reads) = all.next() {
            let reads = Reads::new(reads, HELPED_READS.min(most / 2));
            let (mut counts, mut tried) = (Counts::default(), Vec::new());
            let (shared, keys, now, watched_below) = (self.shared, self.keys, self.now, self.watched_below);
            pool.in_place_scope(|scope| {
                scope.spawn(|_| {
                    let sink = |key: usize, outcome: Outcome<'_>| kept.push(key, outcome);
                    let lookup = Lookup { shared, keys, now, sink, counts: Counts::default(), watched_below };
                    (counts, tried) = lookup.help(flash, wanted, &reads);
                });
                while let Some(reads) = reads.next() {
                    self.read_stored(flash, io, wanted, reads, scratch);
                }
            });
            self.counts.add(&counts);
            scratch.tried.append(&mut tried);
            kept.drain(|key, outcome| {
                // Both may have found an entry of this key.
                if !std::mem::replace(&mut scratch.resolved[key as usize], true) {
                    (self.sink)(key as usize, outcome);
                }
            });
        }
        scratch.kept = kept;
    }

    /// The helper's part.
    fn help(mut self, flash: &Flash, wanted: &Wanted<'_>, reads: &Reads) -> (Counts, Vec<Tried>) {
        HELPER.with_borrow_mut(|io| {
            let mut scratch = std::mem::take(&mut io.scratch);
            scratch.resolved.clear();
            scratch.resolved.resize(self.keys.len(), false);
            scratch.tried.clear();
            while let Some(reads) = reads.next() {
                self.read_stored(flash, io, wanted, reads, &mut scratch);
            }
            let tried = std::mem::take(&mut scratch.tried);
            io.scratch = scratch;
            (self.counts, tried)
        })
    }
}

thread_local! {
    static HELPER: RefCell<Io> = RefCell::new(Io::new());
}

/// The threads that help, one less than there are cores; `None`: there are none.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get) - 1;
        let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("granary-read-{i}"));
        if threads == 0 { None } else { pool.build().ok() }
    });
    POOL.as_ref()
}

/// Reads that threads take some at a time.
struct Reads {
    next: AtomicUsize,
    end: usize,
    step: usize,
}

impl Reads {
    fn new(reads: Range<usize>, step: usize) -> Self {
        Self { next: AtomicUsize::new(reads.start), end: reads.end, step }
    }

    fn next(&self) -> Option<Range<usize>> {
        // It tells nothing of other memory, so the order does not matter.
        let start = self.next.fetch_add(self.step, Ordering::Relaxed);
        (start < self.end).then(|| start..(start + self.step).min(self.end))
    }
}
