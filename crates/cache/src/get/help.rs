//! Threads that help with large batches while the machine has cores with nothing to do.

use super::Io;

/// The right to one helping thread, for as long as it lives.
pub(super) struct Help(Busy);

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

pub(super) use threads::Busy;

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
            BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok().then_some(Busy)
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
