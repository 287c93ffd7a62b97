//! Work that may wait (for a source, the device, a slow hash) has threads of its own: those that serve connections
//! never wait. The number that run at once suits the machine's cores; work does not count while it only waits.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use granary_sql::{Error, give_way};
use tokio::sync::Semaphore;

use crate::limits::{LOGINS_MAX, LOGINS_MIN, TURNS_MAX, TURNS_MIN, TURNS_PER_CORE};

/// Kinds of work. Lookups do not wait for queries, which may take long, nor for the passwords of strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Query,
    Lookup,
    /// The check of a password, which is slow on purpose.
    Login,
}

/// The turns of one kind of work.
struct WorkPermits {
    free: Semaphore,
    /// Number of turns resumed after a wait while none was free. As many turns given back do not become free.
    owed: AtomicUsize,
}

impl WorkPermits {
    fn new() -> Self {
        Self::with_count((cores() * TURNS_PER_CORE).clamp(TURNS_MIN, TURNS_MAX))
    }

    fn with_count(turns: usize) -> Self {
        Self { free: Semaphore::new(turns), owed: AtomicUsize::new(0) }
    }
}

static QUERIES: LazyLock<WorkPermits> = LazyLock::new(WorkPermits::new);
static LOOKUPS: LazyLock<WorkPermits> = LazyLock::new(WorkPermits::new);
static LOGINS: LazyLock<WorkPermits> =
    LazyLock::new(|| WorkPermits::with_count((cores() / 2).clamp(LOGINS_MIN, LOGINS_MAX)));

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

thread_local! {
    /// The kind of work of this thread; `Query` on threads that queries hand tasks to.
    static WORK: Cell<Work> = const { Cell::new(Work::Query) };
}

impl Work {
    fn turns(self) -> &'static WorkPermits {
        match self {
            Work::Query => &QUERIES,
            Work::Lookup => &LOOKUPS,
            Work::Login => &LOGINS,
        }
    }
}

/// The right to run, given back when it is dropped.
pub struct WorkPermit(Work);

impl WorkPermit {
    /// Waits for a turn, in the order of requests.
    pub async fn take(work: Work) -> WorkPermit {
        if let Ok(permit) = work.turns().free.acquire().await {
            permit.forget();
        }
        WorkPermit(work)
    }

    /// Runs `work` on this thread with the turn. `work` must not unwind.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let before = WORK.replace(self.0);
        let done = work();
        WORK.set(before);
        done
    }
}

impl Drop for WorkPermit {
    fn drop(&mut self) {
        let turns = self.0.turns();
        let owed = turns.owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1));
        if owed.is_err() {
            turns.free.add_permits(1);
        }
    }
}

/// Runs `wait` for a thread that has a turn, which others may use meanwhile.
pub fn run_without_permit(wait: &mut dyn FnMut()) {
    let turns = WORK.get().turns();
    turns.free.add_permits(1);
    give_way(wait);
    if turns.free.forget_permits(1) == 0 {
        turns.owed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `work` on a thread that may wait, when it has a turn. A panic becomes an error.
pub async fn run_blocking<T: Send + 'static>(
    of: Work,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let permit = WorkPermit::take(of).await;
    let done = tokio::task::spawn_blocking(move || permit.run(work));
    done.await.unwrap_or_else(|panic| Err(Error::logical_error(panic.to_string())))
}
