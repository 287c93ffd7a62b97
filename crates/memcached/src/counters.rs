//! Counters of what was done: each thread counts for itself; a reader adds the threads' counters up.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread adds to and all read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the counter's thread calls this.
    pub fn add(&self, n: u64) {
        if n > 0 {
            self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }

    /// Sets a figure that is no sum; only the counter's thread calls this.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counters of one thread.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: Counter,)* }

        /// Sums of counters.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals { $($(#[$doc])* pub $name: u64,)* }

        impl Totals {
            /// Adds the counters of a thread.
            pub fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.get();)*
            }

            /// Returns what each counter has grown by since `base`.
            pub fn since(self, base: Self) -> Self {
                Self { $($name: self.$name.saturating_sub(base.$name),)* }
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections,
    /// Keys asked for.
    cmd_get,
    /// Items to store.
    cmd_set,
    /// Flushes.
    cmd_flush,
    /// Touches asked for, whether or not the item was there.
    cmd_touch,
    /// `me` and `mn`.
    cmd_meta,
    /// Keys found.
    get_hits,
    /// Keys not found, expired and flushed ones among them.
    get_misses,
    /// Keys found expired.
    get_expired,
    /// Keys found flushed.
    get_flushed,
    /// Items to delete that were not there.
    delete_misses,
    /// Items deleted.
    delete_hits,
    /// Items to count up that were not there.
    incr_misses,
    /// Items counted up.
    incr_hits,
    /// Items to count down that were not there.
    decr_misses,
    /// Items counted down.
    decr_hits,
    /// `cas` of an item that was not there.
    cas_misses,
    /// `cas` that stored.
    cas_hits,
    /// `cas` with another number than the item's.
    cas_badval,
    /// Items touched.
    touch_hits,
    /// Items to touch that were not there.
    touch_misses,
    /// Items refused for their size.
    store_too_large,
    /// Logins.
    auth_cmds,
    /// Logins refused.
    auth_errors,
    /// Connections closed for doing nothing.
    idle_kicks,
    /// Turns that ended before everything that the connection had sent was read.
    conn_yields,
    /// Keys that wait for reads of the device now.
    reads_waiting,
    /// Bytes read from clients.
    bytes_read,
    /// Bytes written to clients.
    bytes_written,
    /// Items stored.
    total_items,
}
