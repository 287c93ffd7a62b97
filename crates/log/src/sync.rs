//! Locks, atomics and threads: the standard library's, or those of a model checker that tries interleavings
//! (`--features shuttle`, for tests).

#[cfg(not(feature = "shuttle"))]
pub use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak, atomic,
    },
    thread,
};

#[cfg(feature = "shuttle")]
pub use shuttle::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak, atomic,
    },
    thread,
};
