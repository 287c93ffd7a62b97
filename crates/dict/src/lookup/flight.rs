//! Single flight: the requests under way, and which of them brings which key.

use crate::error::DictError;
use crate::row::KeyBatch;
use arrow::array::ArrayRef;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Instant;
use twox_hash::XxHash3_64;

/// One request to the source, and where its answer will be.
pub(crate) struct Flight {
    /// The keys as the source takes them.
    pub arrays: Vec<ArrayRef>,
    /// The same keys as bytes; a key's place here is its slot.
    pub keys: KeyBatch,
    /// The cache's epoch when the request was made; a reload since then makes the answer too old to cache.
    pub epoch: u64,
    /// Slots of keys that were forgotten since: their rows are not cached.
    forgotten: Forgotten,
    /// Whether its rows replace cached ones.
    renews: AtomicBool,
    /// Its number in the table, once it is inserted.
    number: OnceLock<u32>,
    /// The latest deadline of the lookups that wait for it.
    wanted_until: Mutex<Instant>,
    outcome: Mutex<Option<Result<Arc<Loaded>, DictError>>>,
    completed: Condvar,
}

/// A bit for each slot of a flight; none before the first is set.
#[derive(Default)]
struct Forgotten(OnceLock<Box<[AtomicU64]>>);

impl Forgotten {
    fn set(&self, slot: u32, slots: usize) {
        let words = self.0.get_or_init(|| (0..slots.div_ceil(64)).map(|_| AtomicU64::new(0)).collect());
        words[slot as usize / 64].fetch_or(1 << (slot % 64), Ordering::Relaxed);
    }

    fn has(&self, slot: u32) -> bool {
        let word = |words: &[AtomicU64]| words[slot as usize / 64].load(Ordering::Relaxed);
        self.0.get().is_some_and(|words| word(words) & (1 << (slot % 64)) != 0)
    }
}

/// The encoded rows of a flight.
#[derive(Default)]
pub(crate) struct Loaded {
    pub bytes: Vec<u8>,
    /// Where each slot's row is in `bytes`; `None`: the source does not have the key.
    pub rows: Vec<Option<(usize, usize)>>,
    /// The slots of each request that was answered, and when it began, in Unix seconds: no row of them is older, and
    /// their lifetimes begin then.
    pub answered: Vec<(Range<usize>, u64)>,
    /// Slots for which it is unknown whether the source has the key, and why.
    pub failures: Vec<(Range<usize>, DictError)>,
}

impl Loaded {
    pub fn row(&self, slot: u32) -> Option<&[u8]> {
        self.rows[slot as usize].map(|(start, end)| &self.bytes[start..end])
    }

    /// Why nothing is known of a slot.
    pub fn failure(&self, slot: u32) -> Option<&DictError> {
        let failure = self.failures.iter().find(|(slots, _)| slots.contains(&(slot as usize)));
        failure.map(|(_, error)| error)
    }
}

impl Flight {
    pub fn new(arrays: Vec<ArrayRef>, keys: KeyBatch, epoch: u64, wanted_until: Instant) -> Flight {
        Flight {
            arrays,
            keys,
            epoch,
            forgotten: Forgotten::default(),
            renews: AtomicBool::new(false),
            number: OnceLock::new(),
            wanted_until: Mutex::new(wanted_until),
            outcome: Mutex::new(None),
            completed: Condvar::new(),
        }
    }

    /// Whether this slot's row may be older than the moment at which its key was forgotten. Set and read under the
    /// epoch's lock.
    pub fn is_forgotten(&self, slot: u32) -> bool {
        self.forgotten.has(slot)
    }

    /// Makes its rows replace cached ones, which are deleted first.
    pub fn renew(&self) {
        self.renews.store(true, Ordering::SeqCst);
    }

    /// Whether [`renew`](Self::renew) was called.
    pub fn renews(&self) -> bool {
        self.renews.load(Ordering::SeqCst)
    }

    /// The latest deadline of the lookups that wait for it.
    pub fn wanted_until(&self) -> Instant {
        *lock(&self.wanted_until)
    }

    fn want_until(&self, deadline: Instant) {
        let mut until = lock(&self.wanted_until);
        *until = deadline.max(*until);
    }

    /// Wakes all waiters. The first outcome stays.
    pub fn complete(&self, outcome: Result<Arc<Loaded>, DictError>) {
        let mut slot = lock(&self.outcome);
        slot.get_or_insert(outcome);
        self.completed.notify_all();
    }

    /// The outcome; `None` if it is not there by `deadline`.
    pub fn wait(&self, deadline: Instant) -> Option<Result<Arc<Loaded>, DictError>> {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return Some(outcome.clone());
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            outcome = self
                .completed
                .wait_timeout(outcome, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
    }
}

/// A lock whose data stay whole even if a holder panicked: they are written in one step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The keys of `rows`, each once, in order of first appearance, and each row's place among them.
pub(crate) fn unique(keys: &KeyBatch, rows: &[u32]) -> (Vec<(u32, u64)>, Vec<u32>) {
    let mut seen: HashTable<u32> = HashTable::with_capacity(rows.len());
    let mut unique: Vec<(u32, u64)> = Vec::with_capacity(rows.len());
    let mut places = Vec::with_capacity(rows.len());
    for &row in rows {
        let key = keys.get(row as usize);
        let hash = XxHash3_64::oneshot(key);
        let entry = seen.entry(
            hash,
            |&place| keys.get(unique[place as usize].0 as usize) == key,
            |&place| unique[place as usize].1,
        );
        let place = match entry {
            hashbrown::hash_table::Entry::Occupied(found) => *found.get(),
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                let place = unique.len() as u32;
                vacant.insert(place);
                unique.push((row, hash));
                place
            }
        };
        places.push(place);
    }
    (unique, places)
}

/// Which flight brings each of a lookup's missing keys.
pub(crate) struct Claim {
    pub flights: Vec<Arc<Flight>>,
    /// For each unique key: the place of its flight, and its slot there.
    pub tickets: Vec<(u32, u32)>,
    /// The places of the flights that the caller has to start.
    pub mine: std::ops::Range<usize>,
}

/// The keys under way.
///
/// Removing a flight leaves its entries, which are dead from then on: they are removed together when no flight is left,
/// or when dead entries outnumber the others.
#[derive(Default)]
pub(crate) struct FlightTable {
    entries: HashTable<Entry>,
    flights: HashMap<u32, Arc<Flight>>,
    /// The number of the next flight.
    next: u32,
    /// Entries whose flights are gone.
    dead: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Lower half of the key's hash.
    hash: u32,
    flight: u32,
    slot: u32,
}

impl Entry {
    /// Spreads a hash for the table, which wants well-mixed bits at both ends.
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl FlightTable {
    /// Splits keys (rows of `keys` with their hashes) into those under way, which are waited for until `deadline` too,
    /// and those to be asked for, of whose rows `launch` makes flights.
    pub fn claim(
        &mut self,
        keys: &KeyBatch,
        unique: &[(u32, u64)],
        deadline: Instant,
        launch: impl FnOnce(&[u32]) -> Result<Vec<Arc<Flight>>, DictError>,
    ) -> Result<Claim, DictError> {
        let mut flights: Vec<Arc<Flight>> = Vec::new();
        let mut known: HashMap<u32, u32> = HashMap::new();
        let mut tickets = Vec::with_capacity(unique.len());
        let (mut mine, mut mine_places) = (Vec::new(), Vec::new());
        for (place, &(row, hash)) in unique.iter().enumerate() {
            match self.find(hash as u32, keys.get(row as usize)) {
                Some((number, flight, slot)) => {
                    let at = *known.entry(number).or_insert_with(|| {
                        flight.want_until(deadline);
                        flights.push(flight.clone());
                        flights.len() as u32 - 1
                    });
                    tickets.push((at, slot));
                }
                None => {
                    tickets.push((u32::MAX, 0));
                    mine.push(row);
                    mine_places.push(place);
                }
            }
        }
        let first = flights.len();
        if !mine.is_empty() {
            flights.extend(launch(&mine)?);
        }
        self.entries.reserve(mine.len(), |entry| Entry::spread(entry.hash));
        let mut places = mine_places.into_iter();
        for (at, flight) in flights.iter().enumerate().skip(first) {
            let number = self.next;
            self.next = number.wrapping_add(1);
            let _ = flight.number.set(number);
            self.flights.insert(number, flight.clone());
            for (slot, place) in (0..flight.keys.len() as u32).zip(&mut places) {
                tickets[place] = (at as u32, slot);
                let entry = Entry { hash: unique[place].1 as u32, flight: number, slot };
                self.entries.insert_unique(Entry::spread(entry.hash), entry, |e| Entry::spread(e.hash));
            }
        }
        Ok(Claim { mine: first..flights.len(), flights, tickets })
    }

    /// The flight that brings a key, with its number, and the key's slot there.
    fn find(&self, hash: u32, key: &[u8]) -> Option<(u32, &Arc<Flight>, u32)> {
        if self.entries.is_empty() {
            return None;
        }
        let brings = |entry: &Entry| {
            entry.hash == hash
                && self.flights.get(&entry.flight).is_some_and(|flight| {
                    flight.keys.get(entry.slot as usize) == key && !flight.is_forgotten(entry.slot)
                })
        };
        let entry = self.entries.find(Entry::spread(hash), brings)?;
        Some((entry.flight, self.flights.get(&entry.flight)?, entry.slot))
    }

    /// Removes a flight's keys, except those that another flight brings by now.
    pub fn remove(&mut self, flight: &Arc<Flight>) {
        let Some(number) = flight.number.get() else { return };
        // It is gone already if all were forgotten.
        if self.flights.remove(number).is_none() {
            return;
        }
        self.dead += flight.keys.len();
        if self.flights.is_empty() {
            self.clear();
        } else if self.dead * 2 > self.entries.len() {
            self.entries.retain(|entry| self.flights.contains_key(&entry.flight));
            self.dead = 0;
        }
    }

    /// Forgets keys: flights under way for them are neither joined nor cached. The caller holds the epoch's lock.
    pub fn forget(&self, keys: &KeyBatch) {
        for row in 0..keys.len() {
            let key = keys.get(row);
            if let Some((_, flight, slot)) = self.find(XxHash3_64::oneshot(key) as u32, key) {
                flight.forgotten.set(slot, flight.keys.len());
            }
        }
    }

    /// Forgets all flights, so that keys missed from now on are asked for anew.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.flights.clear();
        self.dead = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{KeyFormat, number_key};
    use arrow::array::UInt64Array;
    use std::time::Duration;

    fn batch(keys: &[u64]) -> (Vec<ArrayRef>, KeyBatch) {
        let arrays: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(keys.to_vec()))];
        let encoded = KeyFormat::Simple.encode(&arrays).unwrap();
        (arrays, encoded)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    /// Claims keys; those not under way go in flights of `size` keys.
    fn claim(table: &mut FlightTable, keys: &[u64], size: usize) -> Claim {
        let encoded = batch(keys).1;
        let rows: Vec<u32> = (0..keys.len() as u32).collect();
        let (unique, _) = unique(&encoded, &rows);
        let launch = |mine: &[u32]| {
            let chunks = mine.chunks(size).map(|chunk| {
                let (arrays, encoded) = batch(&Vec::from_iter(chunk.iter().map(|&row| keys[row as usize])));
                Arc::new(Flight::new(arrays, encoded, 0, soon()))
            });
            Ok(chunks.collect())
        };
        table.claim(&encoded, &unique, soon(), launch).unwrap()
    }

    #[test]
    fn a_key_is_joined_while_its_flight_is_there_and_asked_for_anew_afterwards() {
        let mut table = FlightTable::default();
        let first = claim(&mut table, &[1, 2, 3, 4, 5], 2);
        assert_eq!((first.flights.len(), first.mine.clone()), (3, 0..3));
        let second = claim(&mut table, &[5, 9, 2], 10);
        assert_eq!(second.mine.len(), 1);
        for (ticket, key) in second.tickets.iter().zip([5u64, 9, 2]) {
            let found = second.flights[ticket.0 as usize].keys.get(ticket.1 as usize);
            assert_eq!(found, number_key(&key.to_le_bytes()));
        }
        assert!(Arc::ptr_eq(&second.flights[second.tickets[2].0 as usize], &first.flights[0]));
        table.remove(&first.flights[0]);
        let third = claim(&mut table, &[1, 2, 3], 10);
        assert_eq!(third.flights[third.mine.start].keys.len(), 2, "3 is still under way");
    }

    #[test]
    fn a_forgotten_key_is_asked_for_anew_and_others_are_joined() {
        let mut table = FlightTable::default();
        let first = claim(&mut table, &[1, 2, 3], 10);
        table.forget(&batch(&[2, 7]).1);
        let flight = &first.flights[0];
        assert_eq!([0, 1, 2].map(|slot| flight.is_forgotten(slot)), [false, true, false]);
        let second = claim(&mut table, &[1, 2, 3], 10);
        assert_eq!((second.flights.len(), second.mine.clone()), (2, 1..2));
        assert_eq!(second.flights[1].keys.get(0), number_key(&2u64.to_le_bytes()));
        // Only the newer request is known for the key, and it can be forgotten too.
        table.forget(&batch(&[2]).1);
        assert!(second.flights[1].is_forgotten(0));
        assert_eq!(claim(&mut table, &[2], 10).mine.len(), 1);
        table.remove(flight);
        table.remove(&second.flights[1]);
        assert_eq!(claim(&mut table, &[2], 10).mine.len(), 0, "the third is still under way");
    }

    #[test]
    fn nothing_stays_of_flights_that_are_gone() {
        let (mut table, mut under_way) = (FlightTable::default(), Vec::new());
        for round in 0..200u64 {
            // The last flight of each round stays a while, so that the table is never empty.
            let keys = Vec::from_iter(round * 50..round * 50 + 100);
            let claimed = claim(&mut table, &keys, 10);
            let mine = &claimed.flights[claimed.mine.clone()];
            under_way.extend(mine.iter().cloned());
            for flight in under_way.drain(..under_way.len() - 1) {
                table.remove(&flight);
                table.remove(&flight);
            }
            let live: usize = table.flights.values().map(|flight| flight.keys.len()).sum();
            assert_eq!(table.entries.len(), live + table.dead);
            assert!(table.dead <= live.max(table.entries.len() / 2), "{} of {live}", table.dead);
        }
        table.remove(&under_way[0]);
        assert_eq!((table.entries.len(), table.dead, table.flights.len()), (0, 0, 0));
    }
}
