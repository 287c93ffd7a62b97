//! Threads that help with large batches while the machine has idle cores, and scratch memory for such batches.

mod threads;

use super::io::Io;
use crate::limits::{LENT_WORKSPACE_KEYS_MIN, SPARE_WORKSPACES_MAX};
use crate::lookup::Workspace;
use granary_log::sync::atomic::AtomicBool;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use threads::Threads;

/// Threads that help with large batches: one for each core except the asking thread's. They start at the first such
/// batch. Caches can share them: a process needs one `Helpers`.
#[derive(Clone, Default)]
pub struct Helpers(Arc<HelperPool>);

#[derive(Default)]
struct HelperPool {
    threads: Threads,
    /// Threads that work on a large batch, their own or another's.
    busy: AtomicUsize,
    /// Threads of teams.
    in_teams: AtomicUsize,
    /// Workspaces of large batches, which are lent: their number grows with the batches at the same time, not with all
    /// threads that ever had one. The last one returned is lent first: it is in the processor's caches.
    spare: Mutex<Vec<Box<Workspace>>>,
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy = self.0.busy.load(Ordering::Relaxed);
        f.debug_struct("Helpers").field("busy", &busy).finish_non_exhaustive()
    }
}

/// Marks the calling thread as working on a large batch.
pub(crate) struct Working<'a>(Busy<'a>);

/// The right to one helping thread, for as long as it lives.
pub(crate) struct Help<'a>(Busy<'a>);

/// A thread that counts as busy until this is dropped.
struct Busy<'a>(&'a HelperPool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Threads that each look up large batches of their own, while this lives. Their other work keeps their cores busy, so
/// help would only compete with it, except for waiting for a device.
#[derive(Debug)]
pub struct Team {
    helpers: Helpers,
    threads: usize,
}

impl Drop for Team {
    fn drop(&mut self) {
        self.helpers.0.in_teams.fetch_sub(self.threads, Ordering::Relaxed);
    }
}

impl Helpers {
    /// Helpers whose threads are not started.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers `threads` threads that each look up large batches of their own. One thread is no team.
    pub fn team(&self, threads: usize) -> Team {
        let threads = if threads > 1 { threads } else { 0 };
        self.0.in_teams.fetch_add(threads, Ordering::Relaxed);
        Team { helpers: self.clone(), threads }
    }

    /// Notes that the calling thread works on a large batch.
    pub(crate) fn begin(&self) -> Working<'_> {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        Working(Busy(&self.0))
    }

    /// A workspace to look up `keys` keys, none of which is resolved; it is taken from `own` if they are few.
    pub(super) fn lend(&self, own: &mut Option<Box<Workspace>>, keys: usize) -> Box<Workspace> {
        assert!(u32::try_from(keys).is_ok(), "a batch has fewer than 2^32 keys");
        let found = if keys < LENT_WORKSPACE_KEYS_MIN { own.take() } else { self.spare().pop() };
        let mut workspace = found.unwrap_or_default();
        workspace.resolved.clear();
        workspace.resolved.resize_with(keys, || AtomicBool::new(false));
        workspace
    }

    /// Takes a workspace back when the lookup has ended.
    pub(super) fn take_back(&self, own: &mut Option<Box<Workspace>>, workspace: Box<Workspace>) {
        if workspace.resolved.len() < LENT_WORKSPACE_KEYS_MIN {
            *own = Some(workspace);
            return;
        }
        let mut spare = self.spare();
        if spare.len() < SPARE_WORKSPACES_MAX {
            spare.push(workspace);
        }
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Box<Workspace>>> {
        self.0.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Working<'a> {
    /// Help that also waits for a device; `None`: all cores work on large batches already.
    pub fn help(&self) -> Option<Help<'a>> {
        let state = self.0.0;
        let one_more = |busy| state.threads.has_idle(busy).then_some(busy + 1);
        // Made only if it was counted, as dropping it decrements the count.
        state.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Help(Busy(state)))
    }

    /// Help that only computes; `None` also if teams use all cores.
    pub fn help_to_compute(&self) -> Option<Help<'a>> {
        let state = self.0.0;
        if state.in_teams.load(Ordering::Relaxed) >= state.threads.cores() { None } else { self.help() }
    }
}

impl Help<'_> {
    /// Runs `mine` here and `theirs` on the helping thread with its own [`Io`], and waits for both.
    pub fn both<A, B: Send>(
        &self,
        mine: impl FnOnce() -> A,
        theirs: impl FnOnce(&mut Io) -> B + Send,
    ) -> (A, B) {
        self.0.0.threads.both(mine, theirs)
    }
}

#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod tests {
    use super::Helpers;
    use crate::skip::skipped;

    /// Refused help leaves the count of busy threads unchanged: a lower one would grant too much help, and one that
    /// wraps below 0 none ever again.
    #[test]
    fn help_is_there_again_after_it_was_refused() {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return skipped("one core: nobody can help");
        }
        let helpers = Helpers::new();
        let find = || {
            let working = helpers.begin();
            let help = working.help();
            (working, help)
        };
        let all: Vec<_> = (0..1024).map(|_| find()).collect();
        assert!(all.last().is_some_and(|(_, help)| help.is_none()), "all cores are busy");
        drop(all);
        assert!(find().1.is_some());
        let team = helpers.team(1024);
        assert!(helpers.begin().help_to_compute().is_none());
        drop((team, helpers.team(1)));
        assert!(helpers.begin().help_to_compute().is_some());
    }

    /// A pool's thread that waits for help would run other work of its pool while it holds locks.
    #[test]
    fn a_thread_of_a_pool_is_not_helped() {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return skipped("one core: nobody can help");
        }
        let helpers = Helpers::new();
        let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(pool.install(|| helpers.begin().help().is_none()), "an application's");
        let working = helpers.begin();
        let (_, theirs) = working.help().unwrap().both(|| (), |_| helpers.begin().help().is_none());
        assert!(theirs, "our own");
    }
}
