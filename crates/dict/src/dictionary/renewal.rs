//! Freshness on demand: entries are forgotten or asked for anew before their lifetime is over.

use super::Dictionary;
use super::requests::direct_claim;
use crate::cache_store::CacheStore;
use crate::environment::WaitPermit;
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::{Batch, FlightTable, lock, unique};
use crate::row::KeyBatch;
use arrow::array::ArrayRef;
use granary_cache::Key;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

impl Dictionary {
    /// Forgets every entry, as SYSTEM RELOAD DICTIONARY does; requests under way are answered, but not cached. A source
    /// that was left alone after a failure may be asked again: the user who reloads has mended it. Existing connections
    /// and the processes of a pool are not used again. A layout that holds all rows loads them anew, and shows the old
    /// ones until the load is complete.
    ///
    /// # Errors
    /// The cache cannot be emptied, or an error of the source, which leaves the old rows.
    pub fn reload(&self) -> Result<(), DictError> {
        self.core.access.connections.renew()?;
        // Before requests are forgotten, so that later ones are made on new connections.
        self.core.pool.drop_connections();
        self.forget_all()?;
        self.core.access.storage.full_load().map_or(Ok(()), |full_load| full_load.reload(self))
    }

    /// Forgets every entry.
    ///
    /// # Errors
    /// The cache cannot be emptied.
    pub(super) fn forget_all(&self) -> Result<(), DictError> {
        if let Some(store) = self.core.access.storage.store() {
            self.forget_requests();
            store.cache().clear().map_err(|e| {
                DictError::new(
                    Code::CannotOpenFile,
                    format!("Cannot empty the cache of {}: {e}", self.core.access.name()),
                )
            })?;
        }
        self.core.note_use();
        lock(&self.core.access.backoff).reset();
        lock(&self.core.access.refused_keys).clear();
        self.core.opened_at.store(self.core.access.clock.now(), Ordering::Relaxed);
        Ok(())
    }

    /// Refuses a layout that holds all rows: it cannot forget or renew a single row.
    fn refuse_keys_of_full_load(&self) -> Result<(), DictError> {
        match self.core.access.storage.full_load() {
            None => Ok(()),
            Some(_) => Err(DictError::new(
                Code::UnsupportedMethod,
                format!(
                    "Dictionary {} has the layout {}, which holds all rows; SYSTEM RELOAD DICTIONARY loads them anew",
                    self.definition.full_name(),
                    self.definition.layout.name()
                ),
            )),
        }
    }

    /// Forgets these keys (as for [`get`](Self::get)): the next lookup of them asks the source. That holds across a
    /// kill and a loss of power, too.
    ///
    /// # Errors
    /// `UNSUPPORTED_METHOD` if the layout holds all rows; `CANNOT_OPEN_FILE` if the cache's files cannot be synced.
    pub fn invalidate(&self, keys: &[ArrayRef]) -> Result<(), DictError> {
        self.refuse_keys_of_full_load()?;
        let encoded = self.core.access.key_format.encode(keys)?;
        if let Some(store) = self.core.access.storage.store() {
            self.forget_requests_of(&encoded);
            let keys: Vec<Key<'_>> =
                (0..encoded.len()).map(|row| store.cache().key(encoded.get(row))).collect();
            store.cache().delete_many(&keys);
            store.sync_changes()?;
        }
        Ok(())
    }

    /// Asks the source for these keys now, cached or not, and returns how many of them it has. Cached rows stay if the
    /// source fails.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get) and [`invalidate`](Self::invalidate).
    pub fn refresh(&self, keys: &[ArrayRef]) -> Result<usize, DictError> {
        self.refuse_keys_of_full_load()?;
        self.refresh_at(&self.wait_permit()?, keys)
    }

    /// Refreshes keys, waiting at `place`.
    pub(super) fn refresh_at(&self, place: &WaitPermit, keys: &[ArrayRef]) -> Result<usize, DictError> {
        self.core.note_use();
        let encoded = self.core.access.key_format.encode(keys)?;
        if encoded.len() > limits::KEYS_PER_LOOKUP_MAX {
            return Err(self.too_many_keys());
        }
        let rows = self.possible_rows(keys, encoded.len());
        let mut batch = Batch::new(&self.core.access, &[], encoded);
        let (unique, places) = unique(&batch.keys, &rows);
        let deadline = self.deadline();
        let claim = match self.core.access.storage.store() {
            Some(_) => {
                // A request that began earlier would bring older rows, and one that began in between may be caching its
                // rows already: the table stays locked between the two calls.
                let mut table = self.forget_under_way(&batch.keys);
                let claim = self.claim_in(&mut table, &batch.keys, keys, &unique, deadline)?;
                debug_assert_eq!(claim.mine, 0..claim.flights.len(), "none is joined");
                claim.flights.iter().for_each(|flight| flight.renew());
                claim
            }
            None => {
                let chosen: Vec<u32> = unique.iter().map(|&(row, _)| row).collect();
                direct_claim(self.launch(keys, &chosen, deadline)?)
            }
        };
        self.fetch(&mut batch, place, claim, &rows, &places, deadline)?;
        self.core.access.storage.store().map_or(Ok(()), CacheStore::sync_changes)?;
        Ok(batch.finish().found().true_count())
    }

    /// Requests under way for these keys are answered, but neither cached nor joined: their rows may be older than this
    /// call. Keys that were refused after a failure may be asked for again.
    pub(super) fn forget_requests_of(&self, keys: &KeyBatch) {
        drop(self.forget_under_way(keys));
    }

    /// Does the same and returns the locked table: as long as it is locked, nothing else is under way for these keys.
    fn forget_under_way(&self, keys: &KeyBatch) -> MutexGuard<'_, FlightTable> {
        lock(&self.core.access.refused_keys).remove((0..keys.len()).map(|row| keys.get(row)));
        let table = lock(&self.core.access.table);
        // A thread that caches rows has done so, or will see what is forgotten.
        let epoch = self.core.access.epoch.write().unwrap_or_else(PoisonError::into_inner);
        table.forget(keys);
        drop(epoch);
        table
    }

    /// Forgets the requests under way for all keys.
    pub(super) fn forget_requests(&self) {
        // Lock order everywhere: the table, then the epoch. Once both have moved on, no old row is cached.
        let mut table = lock(&self.core.access.table);
        *self.core.access.epoch.write().unwrap_or_else(PoisonError::into_inner) += 1;
        table.clear();
    }
}
