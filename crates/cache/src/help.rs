//! Threads that help with large batches while the machine has cores with nothing to do.

use crate::get::Io;

/// The right to one helping thread, for as long as it lives.
pub(crate) struct Help(Busy);

impl Help {
    /// To be asked by every thread that begins a large batch; `None`: all cores are at large batches already.
    pub fn find() -> (Busy, Option<Help>) {
        let busy = Busy::enter();
        (busy, Busy::enter_if_idle().map(Help))
    }

    /// Runs both, the second on the helping thread with its own [`Io`], and waits for them.
    pub fn both<A, B: Send>(
        &self,
        mine: impl FnOnce() -> A,
        theirs: impl FnOnce(&mut Io) -> B + Send,
    ) -> (A, B) {
        threads::both(mine, theirs)
    }
}

pub(crate) use threads::Busy;

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

    fn cores() -> usize {
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
    use super::Help;

    /// Help that was refused leaves the count of busy threads as it was: with too few, everybody is helped; with
    /// fewer than none, nobody is ever again.
    #[test]
    fn help_is_there_again_after_it_was_refused() {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        let all: Vec<_> = (0..1024).map(|_| Help::find()).collect();
        assert!(all.last().is_some_and(|(_, help)| help.is_none()), "all cores are busy");
        drop(all);
        // Other tests of this process may have it meanwhile.
        let mut tries = (0..10_000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            Help::find().1
        });
        assert!(tries.any(|help| help.is_some()));
    }
}
