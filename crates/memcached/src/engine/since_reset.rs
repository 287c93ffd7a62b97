//! Figures since the last `stats reset`. What counts them only grows: others read it, too.

use super::ServerState;
use crate::counters::Totals;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The time from which on figures are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The start of the server.
    Start,
    /// The last `stats reset`, if there was one.
    Reset,
}

macro_rules! figures {
    ($($name:ident),* $(,)?) => {
        /// Figures of the cache and of the acceptor that `stats reset` resets.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Others { $(pub(super) $name: u64,)* }

        impl Others {
            /// Returns what each figure has grown by since `base`; 0 for an estimate that has become smaller.
            fn since(self, base: Self) -> Self {
                Self { $($name: self.$name.saturating_sub(base.$name),)* }
            }
        }
    };
}

figures! {
    rejected_connections,
    listen_disabled_num,
    time_in_listen_disabled_us,
    store_no_memory,
    evictions,
    reclaimed,
    expired_unfetched,
    evicted_unfetched,
    get_extstore,
    recache_from_extstore,
    badcrc_from_extstore,
    extstore_compact_rescues,
}

/// The figures at the last `stats reset`.
#[derive(Debug, Default)]
pub(super) struct ResetBase {
    totals: Totals,
    others: Others,
}

impl ServerState {
    /// `stats reset`.
    pub(super) fn reset_stats(&self) {
        let others = self.others_since_start(&self.store.cache_stats());
        // This one is no sum.
        let totals = Totals { reads_waiting: 0, ..self.totals_since_start() };
        *self.reset_base.lock().unwrap_or_else(PoisonError::into_inner) = ResetBase { totals, others };
    }

    /// The threads' counters, added up.
    pub(super) fn totals(&self, since: Since) -> Totals {
        let base = self.reset_base.lock().unwrap_or_else(PoisonError::into_inner);
        match since {
            Since::Start => self.totals_since_start(),
            Since::Reset => self.totals_since_start().since(base.totals),
        }
    }

    /// The other figures, by the cache's counters.
    pub(super) fn others(&self, cache: &granary_cache::Stats, since: Since) -> Others {
        let base = self.reset_base.lock().unwrap_or_else(PoisonError::into_inner);
        match since {
            Since::Start => self.others_since_start(cache),
            Since::Reset => self.others_since_start(cache).since(base.others),
        }
    }

    fn totals_since_start(&self) -> Totals {
        let mut totals = Totals::default();
        self.counters.iter().for_each(|counters| totals.add(counters));
        totals
    }

    fn others_since_start(&self, cache: &granary_cache::Stats) -> Others {
        Others {
            rejected_connections: self.rejected.load(Ordering::Relaxed),
            listen_disabled_num: self.accept_failures.load(Ordering::Relaxed),
            time_in_listen_disabled_us: self.accept_pause_us.load(Ordering::Relaxed),
            store_no_memory: cache.puts_dropped + cache.puts_too_large,
            evictions: cache.evicted(),
            reclaimed: cache.expired_memory,
            expired_unfetched: cache.expired_unfetched,
            evicted_unfetched: cache.evicted_unfetched,
            get_extstore: cache.hits_flash,
            recache_from_extstore: cache.promoted,
            badcrc_from_extstore: cache.corrupt_blocks,
            extstore_compact_rescues: cache.taken_back + cache.reinserted,
        }
    }
}
