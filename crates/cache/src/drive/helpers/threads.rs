//! The helping threads themselves.

pub(super) use imp::Threads;

#[cfg(not(any(feature = "shuttle", miri)))]
mod imp {
    use crate::drive::io::Io;
    use rayon_core::{ThreadPool, ThreadPoolBuilder};
    use std::cell::RefCell;
    use std::sync::OnceLock;

    thread_local! {
        /// A helping thread's `Io`: rings belong to threads.
        static IO: RefCell<Io> = RefCell::new(Io::new());
    }

    /// Lends `io`, or a new one if it is lent already: a helping thread that asks for help while it delivers runs the
    /// other part itself.
    fn with_free<T>(io: &RefCell<Io>, work: impl FnOnce(&mut Io) -> T) -> T {
        match io.try_borrow_mut() {
            Ok(mut io) => work(&mut io),
            Err(_) => work(&mut Io::new()),
        }
    }

    /// One thread for each core except the asking thread's.
    #[derive(Default)]
    pub struct Threads(OnceLock<Option<ThreadPool>>);

    impl Threads {
        fn pool(&self) -> Option<&ThreadPool> {
            let start = || {
                let others = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
                let builder =
                    ThreadPoolBuilder::new().num_threads(others).thread_name(|i| format!("granary-help-{i}"));
                (others > 0).then(|| builder.build().ok()).flatten()
            };
            self.0.get_or_init(start).as_ref()
        }

        pub fn cores(&self) -> usize {
            self.pool().map_or(1, |pool| pool.current_num_threads() + 1)
        }

        /// Whether a core is idle while `busy` threads work, and the calling thread is not of a pool, ours or an
        /// application's: while such a thread waited for help, it would run other work of its pool, which may wait for
        /// locks that it holds.
        pub fn has_idle(&self, busy: usize) -> bool {
            busy < self.cores() && rayon_core::current_thread_index().is_none()
        }

        pub fn both<A, B: Send>(
            &self,
            mine: impl FnOnce() -> A,
            theirs: impl FnOnce(&mut Io) -> B + Send,
        ) -> (A, B) {
            let pool = self.pool().expect("there is help only where there is a pool");
            let mut answer = None;
            let mine = pool.in_place_scope(|scope| {
                scope.spawn(|_| answer = Some(IO.with(|io| with_free(io, theirs))));
                mine()
            });
            (mine, answer.expect("the scope waits for it"))
        }
    }
}

/// For model checkers: every batch gets help.
#[cfg(any(feature = "shuttle", miri))]
mod imp {
    use crate::drive::io::Io;
    use granary_log::Engine;
    use granary_log::sync::thread;

    #[derive(Default)]
    pub struct Threads;

    impl Threads {
        pub fn cores(&self) -> usize {
            2
        }

        pub fn has_idle(&self, _busy: usize) -> bool {
            true
        }

        pub fn both<A, B: Send>(
            &self,
            mine: impl FnOnce() -> A,
            theirs: impl FnOnce(&mut Io) -> B + Send,
        ) -> (A, B) {
            thread::scope(|scope| {
                let theirs = scope.spawn(|| theirs(&mut Io::with_engine(Engine::Plain)));
                (mine(), theirs.join().expect("it does not panic"))
            })
        }
    }
}
