//! Requests to the source: made, handed to its threads, waited for, and what is said where that fails.

use super::Dictionary;
use crate::config::LayoutKind;
use crate::environment::WaitPermit;
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::{Batch, Claim, Flight, JobInput, Loaded, Refused};
use arrow::array::{ArrayRef, UInt32Array};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

impl Dictionary {
    /// When a lookup that begins to wait now times out.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.definition.layout.update.query_wait_timeout_ms)
    }

    /// Makes the flights that bring `rows` of `keys`.
    pub(super) fn launch(
        &self,
        keys: &[ArrayRef],
        rows: &[u32],
        deadline: Instant,
    ) -> Result<Vec<Arc<Flight>>, DictError> {
        let epoch = *self.core.access.epoch.read().unwrap_or_else(PoisonError::into_inner);
        let flight = |chunk: &[u32]| {
            let rows = UInt32Array::from(chunk.to_vec());
            let arrays = keys
                .iter()
                .map(|array| arrow::compute::take(array, &rows, None))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| DictError::new(Code::LimitExceeded, e.to_string()))?;
            let encoded = self.core.access.key_format.encode(&arrays)?;
            Ok(Arc::new(Flight::new(arrays, encoded, epoch, deadline)))
        };
        rows.chunks(self.definition.layout.update.max_keys_per_request as usize).map(flight).collect()
    }

    /// Hands the claim's own flights to the source threads. All of them complete, whatever this returns.
    pub(super) fn start(&self, claim: &Claim) -> Result<(), DictError> {
        let timeout = Duration::from_millis(self.definition.layout.update.update_queue_push_timeout_ms);
        let mut outcome = Ok(());
        for flight in &claim.flights[claim.mine.clone()] {
            // After one wait in vain, the others do not wait.
            let timeout = if outcome.is_ok() { timeout } else { Duration::ZERO };
            let (access, flight) = (self.core.access.clone(), flight.clone());
            let keys = flight.keys.len();
            let job = Box::new(move |input: JobInput<'_>| access.run(&flight, input));
            let pushed = self.core.pool.push(job, keys, timeout);
            outcome = outcome.and(pushed.map_err(|refused| self.refused(refused)));
        }
        outcome
    }

    /// A place to wait for the source.
    ///
    /// # Errors
    /// 510 if too many wait already.
    pub(crate) fn wait_permit(&self) -> Result<WaitPermit, DictError> {
        self.core.access.waiting.wait_permit().ok_or_else(|| self.too_many_waiting())
    }

    /// Starts the claim's own flights, waits for all until `deadline`, and shows them. Returns how many of `rows` the
    /// source has.
    pub(super) fn fetch(
        &self,
        batch: &mut Batch<'_>,
        place: &WaitPermit,
        claim: Claim,
        rows: &[u32],
        places: &[u32],
        deadline: Instant,
    ) -> Result<usize, DictError> {
        self.start(&claim)?;
        let mut loaded = Vec::with_capacity(claim.flights.len());
        let outcomes = place.wait(|| {
            let outcomes = claim.flights.iter().map(|flight| flight.wait(deadline));
            outcomes.collect::<Vec<_>>()
        });
        for outcome in outcomes.ok_or_else(|| self.core.access.not_started())? {
            match outcome {
                Some(Ok(rows)) => loaded.push(rows),
                Some(Err(error)) => return Err(self.failed(error)),
                None => {
                    let update = &self.definition.layout.update;
                    return Err(self.core.access.timed_out(update.query_wait_timeout_ms));
                }
            }
        }
        let failure = |&(flight, slot): &(u32, u32)| loaded[flight as usize].failure(slot);
        if loaded.iter().any(|flight: &Arc<Loaded>| !flight.failures.is_empty())
            && let Some(error) = claim.tickets.iter().find_map(failure)
        {
            return Err(self.failed(error.clone()));
        }
        let row = |unique: usize| {
            let (flight, slot) = claim.tickets[unique];
            loaded[flight as usize].row(slot)
        };
        batch.fill(rows, places, claim.tickets.len(), row)
    }

    fn refused(&self, refused: Refused) -> DictError {
        let name = self.core.access.name();
        let full = || {
            let timeout = self.definition.layout.update.update_queue_push_timeout_ms;
            format!(
                "Cannot push to internal update queue in dictionary {name}. Timelimit of {timeout} ms. exceeded"
            )
        };
        let message = match refused {
            Refused::Full(waiting) => format!(
                "{}. Current queue size is {waiting}, and MAX_UPDATE_QUEUE_SIZE lets no more requests wait",
                full()
            ),
            Refused::FullOfKeys(keys) => format!(
                "{}. The requests that wait for the source ask for {keys} keys, and with {} no more are added, \
                 whatever MAX_UPDATE_QUEUE_SIZE is: look up fewer keys at once, or let lookups wait for longer \
                 (UPDATE_QUEUE_PUSH_TIMEOUT_MILLISECONDS)",
                full(),
                limits::QUEUE_KEYS_MAX
            ),
            Refused::Closed => format!("Dictionary {name} is being dropped"),
            Refused::NoThread(e) => {
                format!("Dictionary {name} cannot ask its source, for no thread can be started: {e}")
            }
        };
        DictError::new(Code::CacheDictionaryUpdateFail, message)
    }

    pub(crate) fn too_many_waiting(&self) -> DictError {
        DictError::new(
            Code::CacheDictionaryUpdateFail,
            format!(
                "Dictionary {} is missing keys, and as many lookups are waiting for sources already as may \
                 ({} of one dictionary, {} of all)",
                self.core.access.name(),
                limits::LOOKUPS_WAITING_OF_ONE_MAX,
                limits::LOOKUPS_WAITING_MAX
            ),
        )
    }

    pub(super) fn failed(&self, error: DictError) -> DictError {
        match self.definition.layout.kind {
            LayoutKind::Direct | LayoutKind::FullLoad(_) => error,
            LayoutKind::Ssd(_) | LayoutKind::Memory { .. } => DictError::new(
                Code::CacheDictionaryUpdateFail,
                format!("Update failed for dictionary '{}': {error}", self.core.access.name()),
            )
            .for_the_cause_of(&error),
        }
    }
}

/// DIRECT shares no flights: the caller starts all of them, which bring the unique keys in order.
pub(super) fn direct_claim(flights: Vec<Arc<Flight>>) -> Claim {
    let tickets = |(at, flight): (usize, &Arc<Flight>)| {
        (0..flight.keys.len() as u32).map(move |slot| (at as u32, slot)).collect::<Vec<_>>()
    };
    Claim { tickets: flights.iter().enumerate().flat_map(tickets).collect(), mine: 0..flights.len(), flights }
}
