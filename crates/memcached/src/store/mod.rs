//! Items in a cache: many keys are read without a lock; the changes of a key are made one after the other.
//!
//! Little of the cache is used: it is read (`begin_many`, `poll`, and `get_in_memory` while a stripe is held), written
//! (`put_many_with`, `delete_many`) and closed. Which items go to flash is the cache's business.

mod cas;
mod context;
mod fetch;
mod options;
mod reads;
mod stripes;
pub mod testing;
mod time_reached;

pub use context::ThreadContext;
pub use fetch::Fetch;
pub use options::{OpenError, StoreOptions};

use crate::clock;
use crate::item::{Deadline, Header, Item};
use crate::limits::{ITEM_FLAGS_BYTES, ITEM_OVERHEAD_BYTES};
use crate::protocol::Exptime;
use cas::{CasNumbers, FileState};
use context::ChangeBuffers;
use fetch::{Fetches, Found};
use granary_cache::{Cache, Entry, FlashOptions, Key, MemoryLookups, Outcome, Scan, create_folders};
use reads::Reads;
use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering};
use stripes::Stripes;
use time_reached::{Clock, TimeReached};

/// The result of looking up a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// The item.
    Hit(Item<'a>),
    /// There is none.
    Miss(MissReason),
}

/// The reasons why there is no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissReason {
    /// The cache does not have it.
    Unknown,
    /// It has expired.
    Expired,
    /// It was flushed.
    Flushed,
}

/// The effect of a change on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Leaves it as it is.
    Leave,
    /// Deletes it, also if the lookup found nothing: the index may have lost a version that is still on flash, which
    /// the next recovery would find.
    Remove,
    /// The item gets this header and keeps its data.
    Mark(Header),
    /// It remains the same item for the memory of reads, with this header and the data in [`ChangeContext::data`].
    Amend(Header),
    /// It becomes a new item of this header and the data in [`ChangeContext::data`].
    Write(Header),
}

/// The means of a decision about a change.
pub struct ChangeContext<'a> {
    /// The current second.
    pub now: u32,
    /// Receives new data.
    pub data: &'a mut Vec<u8>,
    number: &'a mut dyn FnMut() -> u64,
}

impl<'a> ChangeContext<'a> {
    /// A context that takes numbers from `number`, each of which is greater than the one before.
    pub fn new(now: u32, data: &'a mut Vec<u8>, number: &'a mut dyn FnMut() -> u64) -> Self {
        Self { now, data, number }
    }

    /// The header of a new item.
    pub fn header(&mut self, flags: u32, deadline: Deadline) -> Header {
        Header::new((self.number)(), self.now, flags, deadline)
    }

    /// Gives the header of a changed item a new number.
    pub fn set_new_cas(&mut self, header: &mut Header) {
        header.created_cas = (self.number)();
        header.cas = header.created_cas;
    }
}

/// There is no room for an item, because the device is behind; an older item of the key is gone, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// The key of a change is not in RAM: nothing was changed. The change is to be tried again with this fetch
/// ([`ThreadContext::set_fetch`]) once it has been [read](Store::read).
#[derive(Debug)]
pub struct OnFlash(pub Fetch);

/// A new item for [`Store::set_many`]; its deadline must not be past.
#[derive(Clone, Copy, Debug)]
pub struct NewItem<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// The client's own bits.
    pub flags: u32,
    /// Its deadline.
    pub deadline: Deadline,
    /// Its value.
    pub data: &'a [u8],
}

/// The items. Shared by threads, each of which has a [`ThreadContext`] of its own.
pub struct Store {
    cache: Cache,
    numbers: CasNumbers,
    stripes: Stripes,
    reads: Reads,
    time: TimeReached,
    item_bytes_max: usize,
    /// The second in which a planned flush last failed.
    flush_failed_at: AtomicU32,
}

impl Store {
    /// Opens the store, with the items that it held when it was closed or killed.
    pub fn open(options: &StoreOptions) -> Result<Store, OpenError> {
        let refused = |source| OpenError::Folder { path: options.path.clone(), source };
        create_folders(&options.path).map_err(refused)?;
        // First, as options that are refused give up nothing.
        let cache = Cache::open(options.cache()?)?;
        if options.flash_bytes == 0
            && FlashOptions::invalidate(&options.flash_path(), options.memory_folder.as_deref())?
        {
            // The items on flash will miss the changes from here on.
            let path = options.path.display();
            tracing::warn!(
                "{path}: the items on SSD are given up, for this start is told to use none (items.bin may be removed)"
            );
        }
        Self::from_cache(cache, options)
    }

    /// Opens the store on a device at hand.
    #[cfg(test)]
    pub(crate) fn open_on(
        device: Box<dyn granary_cache::Device>,
        options: &StoreOptions,
    ) -> Result<Store, OpenError> {
        Self::from_cache(Cache::open_on(device, options.cache()?)?, options)
    }

    fn from_cache(cache: Cache, options: &StoreOptions) -> Result<Store, OpenError> {
        let refused = |source| OpenError::Folder { path: options.path.clone(), source };
        let (numbers, found) = CasNumbers::open(options.numbers_path()).map_err(refused)?;
        if found == FileState::Missing {
            if !cache.is_empty() {
                let path = options.numbers_path();
                tracing::warn!("{} is missing or damaged: the items are given up", path.display());
            }
            // The items may have been flushed, and their numbers would be given again.
            cache.clear().map_err(|error| refused(error.into()))?;
        }
        let (time, clock) = TimeReached::open(&options.time_path(), clock::unix_time()).map_err(refused)?;
        match clock {
            Clock::Onward => {}
            Clock::StartFrom(second) => clock::start_from(second),
            Clock::SetBack(seconds) => {
                if !cache.is_empty() {
                    tracing::warn!(
                        "the clock was set back by {seconds} s since the last stop: the items are given up, for what had expired would be there again"
                    );
                }
                cache.clear().map_err(|error| refused(error.into()))?;
            }
        }
        let (stripes, reads) = (Stripes::new(), Reads::new());
        let (item_bytes_max, flush_failed_at) = (options.item_bytes_max, AtomicU32::new(0));
        Ok(Store { cache, numbers, stripes, reads, time, item_bytes_max, flush_failed_at })
    }

    /// Closes the store; the next start finds the items.
    ///
    /// # Errors
    /// The items or their numbers could not be closed cleanly: some or all items may be missing at the next start.
    pub fn close(self) -> io::Result<()> {
        let Store { cache, numbers, .. } = self;
        let closed = cache.close().map_err(io::Error::from);
        match (closed, numbers.close()) {
            (Err(items), Err(numbers)) => Err(io::Error::new(items.kind(), format!("{items}; {numbers}"))),
            (items, numbers) => items.and(numbers),
        }
    }

    /// Greatest size of an item, as memcached counts it.
    pub fn item_bytes_max(&self) -> usize {
        self.item_bytes_max
    }

    /// The hashed key for this store.
    pub fn key<'a>(&self, key: &'a [u8]) -> Key<'a> {
        self.cache.key(key)
    }

    /// Returns once the device keeps all changes so far, where that is asked for ([`StoreOptions::sync_changes`]); else
    /// once a kill would not undo them, which it mostly does at once.
    ///
    /// # Errors
    /// The files beside the data can neither record the changes nor be made void.
    pub fn sync_changes(&self) -> io::Result<()> {
        Ok(self.cache.sync_changes()?)
    }

    /// Whether changes should wait a moment for write buffers.
    pub fn is_behind(&self) -> bool {
        self.cache.is_behind()
    }

    /// The statistics of the cache.
    pub fn cache_stats(&self) -> granary_cache::Stats {
        self.cache.stats()
    }

    /// A new context, for one thread.
    pub fn context(&self) -> ThreadContext {
        ThreadContext::new(granary_cache::Pending::new(&self.cache))
    }

    /// The time to judge items by, for a thread that read the clock at `now`. What one thread has called expired is expired
    /// for all, whatever second their turns began in.
    fn latest(&self, now: u32) -> u32 {
        now.max(self.time.seconds())
    }

    /// Looks keys up without waiting: calls `sink(i, lookup)` for those in RAM, and `ticket(i)` for the others, whose
    /// results [`poll`](Self::poll) reports with that ticket.
    pub fn begin_many(
        &self,
        context: &mut ThreadContext,
        keys: &[Key<'_>],
        now: u32,
        ticket: impl FnMut(usize) -> u64,
        mut sink: impl FnMut(usize, Lookup<'_>),
    ) {
        let flushed_below = self.numbers.flushed_below();
        let sink = |i, outcome: Outcome<'_>| sink(i, look(outcome, flushed_below));
        self.cache.begin_many(&mut context.pending, keys, self.latest(now), ticket, sink);
    }

    /// Submits reads, and calls `sink(ticket, lookup)` for those that have come. To be called after `begin_many`, and
    /// when [`ThreadContext::event`] is readable.
    pub fn poll(&self, context: &mut ThreadContext, now: u32, mut sink: impl FnMut(u64, Lookup<'_>)) {
        // Items that were flushed meanwhile are reported as misses.
        let flushed_below = self.numbers.flushed_below();
        self.cache.poll(&mut context.pending, self.latest(now), |ticket, outcome| {
            sink(ticket, look(outcome, flushed_below))
        });
    }

    /// Visits items, except expired and flushed ones, in steps of some milliseconds. Returns whether there may be more.
    pub fn scan_on(
        &self,
        context: &mut ThreadContext,
        scan: &mut Scan,
        now: u32,
        mut visit: impl FnMut(&[u8], Item<'_>),
    ) -> bool {
        let (flushed_below, now) = (self.numbers.flushed_below(), self.latest(now));
        self.cache.scan_on(&mut context.io, scan, |key, value, expires_at| {
            let item = value.and_then(|value| Item::decode(value, expires_at));
            let is_there = |item: &Item<'_>| {
                item.header.created_cas >= flushed_below && !item.header.deadline.is_past(now)
            };
            if let Some(item) = item.filter(is_there) {
                visit(key, item);
            }
        })
    }

    /// Seconds since the item that leaves RAM next was stored or, as far as that is remembered, read.
    pub fn age(&self, now: u32) -> u32 {
        let mut oldest = now;
        self.cache.next_victim(|key, value| {
            let item = value.and_then(|value| Item::decode(value, 0));
            let last = item.map(|item| item.header.stored_at.max(self.last_read(key).unwrap_or(0)));
            oldest = oldest.min(last.unwrap_or(now));
        });
        now - oldest
    }

    /// Remembers that a key was read.
    pub fn note_read(&self, key: Key<'_>, now: u32) {
        self.reads.note(key, now);
    }

    /// The second in which a key was last read, as far as that is remembered.
    pub fn last_read(&self, key: Key<'_>) -> Option<u32> {
        self.reads.last(key)
    }

    /// Stores items in order, so that the later of two with the same key remains; calls `refused(i)` for those that
    /// find no room.
    pub fn set_many(
        &self,
        context: &mut ThreadContext,
        items: &[NewItem<'_>],
        now: u32,
        mut refused: impl FnMut(usize),
    ) {
        let keys: Vec<Key<'_>> = items.iter().map(|item| self.key(item.key)).collect();
        let mut held = self.stripes.lock_many(keys.iter().map(|key| key.hash()));
        let now = self.latest(now);
        let ChangeBuffers { value, .. } = &mut context.changes;
        value.clear();
        let mut ends = Vec::with_capacity(items.len());
        for item in items {
            Header::new(self.numbers.next(), now, item.flags, item.deadline).encode(value);
            value.extend_from_slice(item.data);
            ends.push(value.len());
        }
        let mut begin = 0;
        let mut entries = Vec::with_capacity(items.len());
        for ((item, key), end) in items.iter().zip(&keys).zip(ends) {
            let (bytes, expires_at) = (&value[begin..end], item.deadline.last_second());
            entries.push(Entry { key: *key, value: Some(bytes), expires_at });
            begin = end;
        }
        let mut was_refused = vec![false; if held.have_fetches() { items.len() } else { 0 }];
        self.cache.put_many_with(&entries, |i, _| {
            if let Some(was_refused) = was_refused.get_mut(i) {
                *was_refused = true;
            }
            refused(i);
        });
        for (Entry { key, value, expires_at }, was_refused) in entries.iter().zip(was_refused) {
            let stored = value.filter(|_| !was_refused).and_then(|value| Item::decode(value, *expires_at));
            let found = || Found::of(stored.map_or(Lookup::Miss(MissReason::Unknown), Lookup::Hit));
            held.fetches(key.hash()).tell(key.bytes(), found);
        }
        keys.iter().for_each(|key| self.reads.forget(*key));
    }

    /// Changes a key as `decide` says, which gets the item that is there and may write new data. No other thread
    /// changes the key meanwhile. Returns what `decide` returned. Never waits for the device.
    ///
    /// # Errors
    /// [`OnFlash`]: the key is not in RAM, and was not fetched.
    pub fn change<R>(
        &self,
        context: &mut ThreadContext,
        key: Key<'_>,
        now: u32,
        decide: impl FnOnce(Lookup<'_>, &mut ChangeContext<'_>) -> (Change, R),
    ) -> Result<Result<R, NoRoom>, OnFlash> {
        let mut fetches = self.stripes.lock(key.hash());
        self.change_held(&mut fetches, &mut context.changes, key, now, decide)
    }

    /// Like [`change`](Self::change), for a caller that holds the key's stripe.
    fn change_held<R>(
        &self,
        fetches: &mut Fetches,
        buffers: &mut ChangeBuffers,
        key: Key<'_>,
        now: u32,
        decide: impl FnOnce(Lookup<'_>, &mut ChangeContext<'_>) -> (Change, R),
    ) -> Result<Result<R, NoRoom>, OnFlash> {
        // Read under the lock, which may have been waited for.
        let (now, flushed_below) = (self.latest(now), self.numbers.flushed_below());
        let ChangeBuffers { memory, fetch, old, new, value } = buffers;
        // The fetch ends here: it need not be told of this change.
        let fetched = fetch.take().and_then(|fetch| fetch.result(key.bytes()));
        let in_memory = match &fetched {
            Some(_) => None,
            None => self.look_in_memory(memory, old, key, now),
        };
        let others;
        let lookup = match (&fetched, in_memory) {
            (Some(fetched), _) => fetched.lookup(flushed_below, now),
            (None, Some(Ok(header))) => Lookup::Hit(Item { header, data: old }),
            (None, Some(Err(why))) => Lookup::Miss(why),
            (None, None) => {
                let fetch = fetches.begin(key.bytes());
                // It is there already if another change has had the key read.
                others = fetch.result(key.bytes());
                match &others {
                    Some(fetched) => fetched.lookup(flushed_below, now),
                    None => return Err(OnFlash(fetch)),
                }
            }
        };
        new.clear();
        let mut number = || self.numbers.next();
        let mut change_context = ChangeContext::new(now, new, &mut number);
        let (change, result) = decide(lookup, &mut change_context);
        let (header, data) = match (change, lookup) {
            (Change::Leave, _) | (Change::Mark(_), Lookup::Miss(_)) => return Ok(Ok(result)),
            (Change::Remove, _) => {
                self.cache.delete_many(&[key]);
                fetches.tell(key.bytes(), || Found::Missing(MissReason::Unknown));
                return Ok(Ok(result));
            }
            (Change::Mark(header), Lookup::Hit(item)) => (header, item.data),
            (Change::Amend(header) | Change::Write(header), _) => (header, &new[..]),
        };
        value.clear();
        header.encode(value);
        let header_len = value.len();
        if !header.deadline.is_past(now) {
            // An item that is past is stored without its data: it hides an older version, and later misses count as
            // expired.
            value.extend_from_slice(data);
        }
        let expires_at = header.deadline.last_second();
        let mut kept = Ok(result);
        let entry = Entry { key, value: Some(&value[..]), expires_at };
        self.cache.put_many_with(&[entry], |_, _| kept = Err(NoRoom));
        fetches.tell(key.bytes(), || match &kept {
            Ok(_) => Found::of(Lookup::Hit(Item { header, data: &value[header_len..] })),
            Err(NoRoom) => Found::Missing(MissReason::Unknown),
        });
        if matches!(change, Change::Write(_)) {
            self.reads.forget(key);
        }
        Ok(kept)
    }

    /// The item of a key, whose data is copied to `data`, or why there is none. `None`: it may be on flash.
    fn look_in_memory(
        &self,
        memory: &mut MemoryLookups,
        data: &mut Vec<u8>,
        key: Key<'_>,
        now: u32,
    ) -> Option<Result<Header, MissReason>> {
        let (mut found, flushed_below) = (None, self.numbers.flushed_below());
        self.cache.get_in_memory(memory, key, now, |outcome| {
            found = Some(match look(outcome, flushed_below) {
                Lookup::Hit(item) => {
                    data.clear();
                    data.extend_from_slice(item.data);
                    Ok(item.header)
                }
                Lookup::Miss(why) => Err(why),
            });
        });
        found
    }

    /// Flushes all items: now, or at a later second. The flush, or the plan, is on the device when this returns.
    pub fn flush(&self, delay: Exptime, now: u32) -> io::Result<()> {
        let deadline = Deadline::of(Exptime(delay.0.max(0)), now);
        match deadline.left(now) {
            None | Some(0) => self.flush_now(),
            Some(seconds) => self.numbers.flush_later(now.saturating_add(seconds)),
        }
    }

    /// Holds all stripes, as a change that has read a flushed item must not write it back afterwards.
    fn flush_now(&self) -> io::Result<()> {
        let held = self.stripes.lock_all();
        self.flush_held(&held, self.numbers.flush_at(), CasNumbers::flush)
    }

    /// Flushes all items by `flush`, which ends the flush planned for the second `plan`, for a caller that holds all
    /// stripes.
    fn flush_held(
        &self,
        held: &[MutexGuard<'_, Fetches>],
        plan: u32,
        flush: impl FnOnce(&CasNumbers) -> io::Result<()>,
    ) -> io::Result<()> {
        flush(&self.numbers).or_else(|error| {
            // Emptying the cache needs no space on the disk.
            tracing::warn!(%error, "the numbers of a flush_all cannot be written down: the cache is emptied instead");
            held.iter().for_each(|fetches| fetches.tell_cleared());
            self.cache.clear()?;
            self.numbers.forget_plan(plan);
            Ok(())
        })
    }

    /// Carries out a planned flush whose second has come. To be called first with each new `now`.
    pub fn tick(&self, now: u32) {
        self.time.note(now);
        self.cache.note_time(now);
        let is_due = |plan| (1..=now).contains(&plan);
        // A flush that failed is tried again once a second.
        if !is_due(self.numbers.flush_at()) || self.flush_failed_at.load(Ordering::Relaxed) == now {
            return;
        }
        // Other threads that come here meanwhile wait, so that they do not see flushed items.
        let held = self.stripes.lock_all();
        let plan = self.numbers.flush_at();
        if is_due(plan)
            && let Err(error) = self.flush_held(&held, plan, |numbers| numbers.flush_planned(plan))
        {
            tracing::error!(%error, "the planned flush_all waits: the cache cannot be emptied");
            self.flush_failed_at.store(now, Ordering::Relaxed);
        }
    }

    /// Bytes of an item as memcached counts them.
    pub fn item_bytes(key: &[u8], flags: u32, data: usize) -> usize {
        let flags = if flags == 0 { 0 } else { ITEM_FLAGS_BYTES };
        ITEM_OVERHEAD_BYTES + key.len() + flags + data
    }
}

fn look(outcome: Outcome<'_>, flushed_below: u64) -> Lookup<'_> {
    let (value, expires_at) = match outcome {
        Outcome::Hit { value, expires_at } => (value, expires_at),
        Outcome::Expired { .. } => return Lookup::Miss(MissReason::Expired),
        Outcome::Negative { .. } | Outcome::Miss => return Lookup::Miss(MissReason::Unknown),
    };
    match Item::decode(value, expires_at) {
        Some(item) if item.header.created_cas < flushed_below => Lookup::Miss(MissReason::Flushed),
        Some(item) => Lookup::Hit(item),
        None => Lookup::Miss(MissReason::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use granary_cache::{Device, MemoryDevice};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    const FLASH_BYTES: u64 = 64 << 20;

    /// Memory whose syncs may be refused.
    struct Syncing {
        bytes: MemoryDevice,
        refuses: Arc<AtomicBool>,
    }

    impl Device for Syncing {
        fn size(&self) -> u64 {
            self.bytes.size()
        }

        fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
            self.bytes.read_at(offset, bytes)
        }

        fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
            self.bytes.write_at(offset, buffers)
        }

        fn sync(&self) -> io::Result<()> {
            match self.refuses.load(Ordering::Relaxed) {
                true => Err(io::Error::from_raw_os_error(5)),
                false => self.bytes.sync(),
            }
        }
    }

    #[test]
    fn a_stop_that_fails_is_reported_and_the_numbers_are_written_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = StoreOptions::new(folder.path(), 1 << 20, FLASH_BYTES);
        options.memory_folder = None;
        for refuses in [false, true] {
            let is_refused = Arc::new(AtomicBool::new(false));
            let device = Syncing { bytes: MemoryDevice::new(FLASH_BYTES), refuses: Arc::clone(&is_refused) };
            let store = Store::open_on(Box::new(device), &options).unwrap();
            let next = store.numbers.next();
            is_refused.store(refuses, Ordering::Relaxed);
            assert_eq!(store.close().is_err(), refuses);
            let (numbers, _) = CasNumbers::open(options.numbers_path()).unwrap();
            assert_eq!(numbers.next(), next + 1);
        }
    }
}
