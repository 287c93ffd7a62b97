//! Work of a start, divided into parts that run on all cores.

use crate::sync::Mutex;
use crate::sync::thread::{self, Scope};
use std::io;

/// The number of threads for a start's work: one a core, at most `most`.
pub fn threads(most: usize) -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get()).min(most)
}

/// Calls `work` with each part, on one thread a core, or as many as the process may start. The calling thread is one of
/// them.
pub fn each_in_parallel<T: Send>(parts: Vec<T>, work: impl Fn(T) + Sync) {
    let threads = threads(parts.len());
    let parts = Mutex::new(parts);
    let next = || parts.lock().expect("no panic under the lock").pop();
    let work_on = || {
        while let Some(part) = next() {
            work(part);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            if let Err(error) = start(scope, work_on) {
                tracing::warn!(%error, "the start is slower: no more threads can be started for it");
                break;
            }
        }
        work_on();
    });
}

#[cfg(not(feature = "shuttle"))]
fn start<'s>(scope: &'s Scope<'s, '_>, work: impl FnOnce() + Send + 's) -> io::Result<()> {
    thread::Builder::new().spawn_scoped(scope, work).map(drop)
}

#[cfg(feature = "shuttle")]
fn start<'s>(scope: &'s Scope<'s, '_>, work: impl FnOnce() + Send + 's) -> io::Result<()> {
    drop(scope.spawn(work));
    Ok(())
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_done_once() {
        for parts in [0, 1, 2, 7] {
            let done = Mutex::new(Vec::new());
            each_in_parallel((0..parts).collect(), |part| done.lock().expect("no panic").push(part));
            let mut done = done.into_inner().expect("no panic");
            done.sort_unstable();
            assert!(done.into_iter().eq(0..parts));
        }
    }
}
