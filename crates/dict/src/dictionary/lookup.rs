//! A lookup of a batch: the cache is probed, and what it lacks is asked for once by all lookups that miss it.

use super::Dictionary;
use super::requests::direct_claim;
use crate::cache_store::CacheStore;
use crate::error::DictError;
use crate::lookup::{Batch, Claim, FlightTable, Freshness, lock, unique};
use crate::row::KeyBatch;
use arrow::array::ArrayRef;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// How often a lookup probes the cache again because requests completed meanwhile, before it asks the source itself.
const PROBES_MAX: usize = 8;

impl Dictionary {
    /// The rows whose keys the source may have.
    pub(super) fn possible_rows(&self, keys: &[ArrayRef], count: usize) -> Vec<u32> {
        let rows = 0..count as u32;
        match self.core.access.lookup_format.impossible(keys) {
            None => rows.collect(),
            Some(nulls) => rows.filter(|&row| nulls.is_valid(row as usize)).collect(),
        }
    }

    /// Looks up `rows` of a batch in the cache, and asks for those that it lacks.
    pub(super) fn look_up(
        &self,
        batch: &mut Batch<'_>,
        store: &CacheStore,
        rows: &[u32],
        keys: &[ArrayRef],
    ) -> Result<(), DictError> {
        let access = &*self.core.access;
        let update = &self.definition.layout.update;
        let now = access.clock.now();
        let freshness = Freshness {
            now,
            latest: access.latest_end(now),
            expired: update.expired,
            strict_max_seconds: update
                .strict_max_lifetime_seconds
                .unwrap_or(self.definition.lifetime.max_seconds),
        };
        let mut completed = access.completed.load(Ordering::SeqCst);
        batch.probe(store, rows, freshness, access);
        for probe in 1.. {
            if batch.missing.is_empty() {
                if !batch.stale.is_empty() {
                    self.refresh_stale(batch, keys);
                }
                return Ok(());
            }
            // One missing key makes the lookup wait for the whole update, stale keys included.
            let wanted: Vec<u32> = batch.missing.iter().chain(&batch.stale).copied().collect();
            let (unique, places) = unique(&batch.keys, &wanted);
            let unless_completed = (probe < PROBES_MAX).then_some(completed);
            // Without a place to wait at, no request is begun.
            let (place, deadline) = (self.wait_permit()?, self.deadline());
            if let Some(claim) = self.claim(&batch.keys, keys, &unique, unless_completed, deadline)? {
                access.counters.keys_missed.add(batch.missing.len());
                let found = self.fetch(batch, &place, claim, &wanted, &places, deadline)?;
                access.counters.keys_found_at_source.add(found);
                return Ok(());
            }
            completed = access.completed.load(Ordering::SeqCst);
            let missing = std::mem::take(&mut batch.missing);
            batch.probe(store, &missing, freshness, access);
        }
        Ok(())
    }

    /// Asks the source for `rows` of a batch, whatever else is under way.
    pub(super) fn look_up_directly(
        &self,
        batch: &mut Batch<'_>,
        rows: &[u32],
        keys: &[ArrayRef],
    ) -> Result<(), DictError> {
        let counters = &self.core.access.counters;
        let (unique, places) = unique(&batch.keys, rows);
        let chosen: Vec<u32> = unique.iter().map(|&(row, _)| row).collect();
        let (place, deadline) = (self.wait_permit()?, self.deadline());
        let claim = direct_claim(self.launch(keys, &chosen, deadline)?);
        counters.keys_missed.add(rows.len());
        let found = self.fetch(batch, &place, claim, rows, &places, deadline)?;
        counters.keys_found_at_source.add(found);
        Ok(())
    }

    /// Starts updates of stale rows without waiting. The lookup does not fail if that fails.
    fn refresh_stale(&self, batch: &Batch<'_>, keys: &[ArrayRef]) {
        let mut stale = batch.stale.clone();
        stale.retain(|&row| self.core.access.may_ask_for([batch.keys.get(row as usize)].into_iter()).is_ok());
        let (unique, _) = unique(&batch.keys, &stale);
        if let Ok(Some(claim)) = self.claim(&batch.keys, keys, &unique, None, self.deadline()) {
            let _ = self.start(&claim);
        }
    }

    /// Splits keys into those under way and those that the caller has to ask for, all wanted until `deadline`; `None`
    /// if requests completed since `unless_completed` was read.
    fn claim(
        &self,
        keys: &KeyBatch,
        arrays: &[ArrayRef],
        unique: &[(u32, u64)],
        unless_completed: Option<u64>,
        deadline: Instant,
    ) -> Result<Option<Claim>, DictError> {
        let access = &*self.core.access;
        let mut table = lock(&access.table);
        if unless_completed.is_some_and(|completed| completed != access.completed.load(Ordering::SeqCst)) {
            return Ok(None);
        }
        let claim = self.claim_in(&mut table, keys, arrays, unique, deadline)?;
        let joined = claim.tickets.iter().filter(|(flight, _)| !claim.mine.contains(&(*flight as usize)));
        access.counters.keys_joined.add(joined.count());
        Ok(Some(claim))
    }

    /// Like [`claim`](Self::claim), in a table that the caller has locked.
    pub(super) fn claim_in(
        &self,
        table: &mut FlightTable,
        keys: &KeyBatch,
        arrays: &[ArrayRef],
        unique: &[(u32, u64)],
        deadline: Instant,
    ) -> Result<Claim, DictError> {
        let access = &*self.core.access;
        table.claim(keys, unique, deadline, |mine| {
            access.may_ask()?;
            access.may_ask_for(mine.iter().map(|&row| keys.get(row as usize))).map_err(|e| self.failed(e))?;
            self.launch(arrays, mine, deadline)
        })
    }
}
