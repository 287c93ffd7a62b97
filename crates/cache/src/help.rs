//! Threads that help with large batches while the machine has cores with nothing to do.

use crate::get::Io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The right to one helping thread, for as long as it lives.
pub(crate) struct Help(Busy);

/// A thread that is at a large batch: every one says so.
pub(crate) struct Working(Busy);

/// The threads of something that looks up large batches, each its own, for as long as this lives. What each of them
/// does beside its lookups keeps its core busy: help would only be in the way, but to wait for a device.
pub struct Team(usize);

/// Threads of teams.
static IN_TEAMS: AtomicUsize = AtomicUsize::new(0);

impl Team {
    /// One thread is no team.
    pub fn of(threads: usize) -> Team {
        let counted = if threads > 1 { threads } else { 0 };
        IN_TEAMS.fetch_add(counted, Ordering::Relaxed);
        Team(counted)
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        IN_TEAMS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

impl Working {
    pub fn begin() -> Working {
        Working(Busy::enter())
    }

    /// Help that waits for a device now and then; `None`: all cores are at large batches already.
    pub fn help(&self) -> Option<Help> {
        Busy::enter_if_idle().map(Help)
    }

    /// Help that computes all the time; `None` also where there are teams for all cores.
    pub fn help_to_compute(&self) -> Option<Help> {
        if IN_TEAMS.load(Ordering::Relaxed) >= threads::cores() { None } else { self.help() }
    }
}

impl Help {
    /// Runs both, the second on the helping thread with its own [`Io`], and waits for them.
    pub fn both<A, B: Send>(
        &self,
        mine: impl FnOnce() -> A,
        theirs: impl FnOnce(&mut Io) -> B + Send,
    ) -> (A, B) {
        threads::both(mine, theirs)
    }
}

use threads::Busy;

#[cfg(not(any(feature = "shuttle", miri)))]
mod threads {
    use super::Io;
    use rayon_core::{ThreadPool, ThreadPoolBuilder};
    use std::cell::RefCell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    thread_local! {
        /// A helping thread's.
        static IO: RefCell<Io> = RefCell::new(Io::new());
    }

    /// As many as there are cores beside the one that asks for help; `None`: there are none.
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();

    /// Threads that are at a large batch, on their own account or helping.
    static BUSY: AtomicUsize = AtomicUsize::new(0);

    pub fn cores() -> usize {
        POOL.get_or_init(|| {
            let others = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
            let builder =
                ThreadPoolBuilder::new().num_threads(others).thread_name(|i| format!("granary-help-{i}"));
            (others > 0).then(|| builder.build().ok()).flatten()
        })
        .as_ref()
        .map_or(1, |pool| pool.current_num_threads() + 1)
    }

    /// One of them.
    pub struct Busy;

    impl Busy {
        pub fn enter() -> Busy {
            BUSY.fetch_add(1, Ordering::Relaxed);
            Busy
        }

        pub fn enter_if_idle() -> Option<Busy> {
            let cores = cores();
            let one_more = |busy| (busy < cores).then_some(busy + 1);
            // Made only where it was counted: its end counts back.
            BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok().then(|| Busy)
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            BUSY.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn both<A, B: Send>(mine: impl FnOnce() -> A, theirs: impl FnOnce(&mut Io) -> B + Send) -> (A, B) {
        let pool = POOL.get().and_then(Option::as_ref).expect("there is help only where there is a pool");
        let mut answer = None;
        let mine = pool.in_place_scope(|scope| {
            scope.spawn(|_| answer = Some(IO.with_borrow_mut(theirs)));
            mine()
        });
        (mine, answer.expect("the scope waits for it"))
    }
}

/// A model checker's threads: there is always help, so that every batch is looked up by two.
#[cfg(any(feature = "shuttle", miri))]
mod threads {
    use super::Io;
    use granary_log::Engine;
    use granary_log::sync::thread;

    pub struct Busy;

    pub fn cores() -> usize {
        2
    }

    impl Busy {
        pub fn enter() -> Busy {
            Busy
        }

        pub fn enter_if_idle() -> Option<Busy> {
            Some(Busy)
        }
    }

    pub fn both<A, B: Send>(mine: impl FnOnce() -> A, theirs: impl FnOnce(&mut Io) -> B + Send) -> (A, B) {
        thread::scope(|scope| {
            let theirs = scope.spawn(|| theirs(&mut Io::with_engine(Engine::Plain)));
            (mine(), theirs.join().expect("it does not panic"))
        })
    }
}

#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod tests {
    use super::{Team, Working};
    use crate::skip::skipped;

    /// Help that was refused leaves the count of busy threads as it was: with too few, everybody is helped; with
    /// fewer than none, nobody is ever again.
    #[test]
    fn help_is_there_again_after_it_was_refused() {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return skipped("one core: nobody can help");
        }
        let find = || {
            let working = Working::begin();
            let help = working.help();
            (working, help)
        };
        let all: Vec<_> = (0..1024).map(|_| find()).collect();
        assert!(all.last().is_some_and(|(_, help)| help.is_none()), "all cores are busy");
        drop(all);
        // Other tests of this process may have it meanwhile.
        let mut tries = (0..10_000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            find().1
        });
        assert!(tries.any(|help| help.is_some()));
        let team = Team::of(1024);
        assert!(Working::begin().help_to_compute().is_none());
        drop((team, Team::of(1)));
        let mut tries = (0..10_000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            Working::begin().help_to_compute()
        });
        assert!(tries.any(|help| help.is_some()));
    }
}
