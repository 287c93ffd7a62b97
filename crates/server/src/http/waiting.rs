//! Work that may wait (for a source, the device, a slow hash) has threads of its own: those that serve connections
//! never wait. So much of it runs at once as the machine has use for; what only waits does not count meanwhile.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use granary_sql::{Error, give_way};
use tokio::sync::Semaphore;

use crate::limits::{LOOKUPS_AT_ONCE_MAX, LOOKUPS_AT_ONCE_MIN, LOOKUPS_PER_CORE};

/// Turns that are free.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, usize::from);
    Semaphore::new((cores * LOOKUPS_PER_CORE).clamp(LOOKUPS_AT_ONCE_MIN, LOOKUPS_AT_ONCE_MAX))
});

/// Turns that were taken up again after a wait when there was none. Those given back next do not become free.
static OWED: AtomicUsize = AtomicUsize::new(0);

/// The right to run, given back when it is dropped.
pub struct Turn;

impl Turn {
    /// Waits for one, in the order of those who ask.
    pub async fn take() -> Turn {
        if let Ok(permit) = TURNS.acquire().await {
            permit.forget();
        }
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let owed = OWED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1));
        if owed.is_err() {
            TURNS.add_permits(1);
        }
    }
}

/// Runs a wait of somebody who has a turn, which others have meanwhile.
pub fn without_a_turn(wait: &mut dyn FnMut()) {
    TURNS.add_permits(1);
    give_way(wait);
    if TURNS.forget_permits(1) == 0 {
        OWED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does work there when it is its turn. A panic is an error like any other.
pub async fn may_wait<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let turn = Turn::take().await;
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    done.await.unwrap_or_else(|panic| Err(Error::logical_error(panic.to_string())))
}
