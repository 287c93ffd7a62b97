//! The cache: one partition, or several among which the hash of a key chooses.
//!
//! A partition is a cache of its own: index, RAM tier, policy and a part of the file. Block numbers in the index are
//! relative to the partition, so they take fewer bits.

use crate::codec::OwnCodecs;
use crate::drive::{self, Helpers, Io, MemoryLookups, Pending};
use crate::entry::{Entry, Refusal, StoredEntry};
use crate::error::Error;
use crate::framing::{Log, Records};
use crate::key::{Key, KeyHasher};
use crate::limits::{PUT_CHUNK, SHARED_KEYS_MIN};
use crate::lookup::Outcome;
use crate::opening::Opening;
use crate::options::{Builder, Options};
use crate::partition::Partition;
use crate::scan::Scan;
use crate::single_flight::SingleFlight;
use crate::stats::Stats;
use granary_log::device::Device;
use granary_log::sync::Arc;
use granary_log::sync::atomic::{AtomicU64, Ordering};
use granary_log::{Engine, OpenError, Opened};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A cache. Shared by threads; dropping it stops it cleanly, and it is warm when opened again.
pub struct Cache {
    /// Before the partitions: the thread that trains ends while the files are still this cache's.
    codecs: OwnCodecs,
    /// Their number is a power of two.
    pub(crate) partitions: Vec<Partition>,
    pub(crate) single_flight: SingleFlight,
    /// Entries refused by the device that a failed flush has reported.
    reported_refused: AtomicU64,
    /// The path of the cache, for errors; empty: it is in RAM only.
    path: PathBuf,
}

impl Cache {
    /// Builds the options of a cache and opens it; without flash it is in RAM only.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens a cache, with what it held when it was stopped or killed. The folder that its path is in must be there. A
    /// cache whose files were made with other sizes or by an older format starts empty, which the log (`tracing`) says.
    ///
    /// # Errors
    /// An option makes no sense, or sizes do not fit together (`Invalid`, `Geometry`, `OneSegment`); the file or a file
    /// beside it cannot be made, read or reserved (`Device`, `State`), or is not the cache's (`Foreign`); another cache
    /// has it (`InUse`); a thread cannot be started (`Thread`).
    pub fn open(options: Options) -> Result<Cache, OpenError> {
        options.check()?;
        let Some(flash) = &options.flash else {
            let codecs = OwnCodecs::in_memory(options.compression, &options.applications);
            let partitions = vec![Partition::in_memory(&options, Arc::clone(&codecs))];
            return Ok(Self::of(partitions, codecs, PathBuf::new()));
        };
        Self::start(&options, |log| Log::open_partitions(flash.framing()?, log, flash.partitions))
    }

    /// Opens a cache as [`open`](Self::open) does, with the flash part on a given device.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), and `Invalid` if the options name no flash.
    pub fn open_on(device: Box<dyn Device>, options: Options) -> Result<Cache, OpenError> {
        options.check()?;
        let Some(flash) = &options.flash else {
            let reason = "a device is for a cache on flash".to_owned();
            return Err(OpenError::Invalid { option: "flash", reason });
        };
        Self::start(&options, |log| Log::open_partitions_on(flash.framing()?, device, log, flash.partitions))
    }

    fn start(
        options: &Options,
        open: impl FnOnce(&granary_log::Options) -> Result<Vec<Opened<Records>>, OpenError>,
    ) -> Result<Cache, OpenError> {
        let (logs, claims, codecs) = Opening::new(options)?.open_logs(open)?;
        let options = options.of_partition();
        let start = |((log, recovered), claim)| {
            Partition::start(&options, log, recovered, claim, Arc::clone(&codecs))
        };
        let partitions: io::Result<_> = logs.into_iter().zip(claims.into_files()).map(start).collect();
        let path = options.flash.map(|flash| flash.path).unwrap_or_default();
        let partitions = partitions.map_err(|source| OpenError::Thread { path: path.clone(), source })?;
        Ok(Self::of(partitions, codecs, path))
    }

    fn of(partitions: Vec<Partition>, codecs: OwnCodecs, path: PathBuf) -> Self {
        let single_flight = SingleFlight::default();
        Self { partitions, codecs, single_flight, reported_refused: AtomicU64::new(0), path }
    }

    /// Hashes keys for this cache.
    pub fn hasher(&self) -> KeyHasher {
        self.partitions[0].shared.hasher
    }

    /// The threads that help with large batches.
    pub fn helpers(&self) -> &Helpers {
        &self.partitions[0].shared.helpers
    }

    /// A key to ask this cache for, or to put or delete here.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        self.hasher().key(bytes)
    }

    /// Looks up a batch. `sink(i, outcome)` is called once for each key, in any order. `now` is the Unix time in
    /// seconds.
    ///
    /// No lock is held over I/O, nor while the sink is called: it may use the cache, also for keys of the batch. A
    /// block that cannot be read, or fails its check, is a miss.
    ///
    /// Once the scratch space of `io` has grown, a lookup of one key allocates nothing, unless its value is longer than
    /// 1 MiB, or 256 KiB if it is compressed. A batch may allocate a list of its probes for each partition, to sort
    /// them, and two lists if it is divided among partitions: of the places of all keys, and of a partition's keys.
    /// With [`Engine::Pool`] each read allocates up to three times.
    pub fn get_many(
        &self,
        io: &mut Io,
        keys: &[Key<'_>],
        now: u32,
        mut sink: impl FnMut(usize, Outcome<'_>),
    ) {
        self.for_each_partition(keys, Key::hash, |partition, keys, positions| {
            drive::get_many(&partition.shared, io, keys, now, |i, outcome| {
                sink(positions.position(i), outcome)
            });
        });
    }

    /// Looks up keys that are in RAM or nowhere. Keys that may be on flash are neither passed to the sink nor counted.
    #[cfg(feature = "async")]
    pub(crate) fn get_many_in_memory(
        &self,
        io: &mut Io,
        keys: &[Key<'_>],
        now: u32,
        mut sink: impl FnMut(usize, Outcome<'_>),
    ) {
        self.for_each_partition(keys, Key::hash, |partition, keys, positions| {
            let sink = |i, outcome: Outcome<'_>| sink(positions.position(i), outcome);
            drive::get_many_in_memory(&partition.shared, io, keys, now, sink);
        });
    }

    /// Looks up a key that is in RAM or nowhere. If it may be on flash, the sink is not called, and nothing is counted.
    #[doc(hidden)]
    pub fn get_in_memory(
        &self,
        lookups: &mut MemoryLookups,
        key: Key<'_>,
        now: u32,
        mut sink: impl FnMut(Outcome<'_>),
    ) {
        self.for_each_partition(&[key], Key::hash, |partition, _, _| {
            drive::get_in_memory(&partition.shared, lookups, key, now, &mut sink);
        });
    }

    /// Whether the cache has a part on flash.
    #[cfg(feature = "async")]
    pub(crate) fn is_on_flash(&self) -> bool {
        self.partitions[0].shared.flash.is_some()
    }

    /// Looks up a batch as [`get_many`](Self::get_many) does, with the help of another thread if the batch is large and
    /// a core has no other batch to look up. If all cores are busy ([`Team`](crate::Team)) and there is a RAM tier, it
    /// helps with reads only. The outcome of each key goes to one of the sinks. The helping thread's job, its sorted
    /// probes and its list of keys not found where the index pointed are allocated for each batch that it helps with.
    pub fn get_many_parallel<S: FnMut(usize, Outcome<'_>) + Send>(
        &self,
        io: &mut Io,
        keys: &[Key<'_>],
        now: u32,
        mut sinks: [S; 2],
    ) {
        self.for_each_partition(keys, Key::hash, |partition, keys, positions| {
            let [sink, other_sink] =
                sinks.each_mut().map(|sink| |i, outcome: Outcome<'_>| sink(positions.position(i), outcome));
            if keys.len() < SHARED_KEYS_MIN {
                return drive::get_many(&partition.shared, io, keys, now, sink);
            }
            drive::get_many_parallel(&partition.shared, io, keys, now, [sink, other_sink]);
        });
    }

    /// Looks up a batch as [`get_many`](Self::get_many) does, but never waits: keys that need no read go to
    /// `sink(i, outcome)` at once; for the others `ticket(i)` is called, and [`poll`](Self::poll) delivers their
    /// outcomes with the tickets. Each outcome was true at some moment since the call.
    pub fn begin_many(
        &self,
        pending: &mut Pending,
        keys: &[Key<'_>],
        now: u32,
        mut ticket: impl FnMut(usize) -> u64,
        mut sink: impl FnMut(usize, Outcome<'_>),
    ) {
        self.for_each_partition(keys, Key::hash, |partition, keys, positions| {
            let (ticket, sink) = (
                |i| ticket(positions.position(i)),
                |i, outcome: Outcome<'_>| sink(positions.position(i), outcome),
            );
            drive::begin_many(&partition.shared, pending, keys, now, ticket, sink);
        });
    }

    /// Submits reads and delivers completed lookups: `sink(ticket, outcome)`. Call it after
    /// [`begin_many`](Self::begin_many), and whenever [`Pending::event`] is readable. It waits for the device in two
    /// cases: for values longer than 128 KiB, and, for up to 100 ms, after a read that failed.
    pub fn poll(&self, pending: &mut Pending, now: u32, sink: impl FnMut(u64, Outcome<'_>)) {
        drive::poll(|partition| &*self.partitions[partition].shared, pending, now, sink);
    }

    /// Sets the current time, in seconds of Unix time, as each lookup does: expired entries leave before others of
    /// their age. For callers that may store for long without a lookup.
    pub fn note_time(&self, now: u32) {
        self.partitions.iter().for_each(|partition| partition.shared.note_time(now));
    }

    /// Stores a batch: a copy to the write buffer, or to RAM. Never waits for the device: if that is too far behind, or
    /// an entry is too large, the entry is not stored, but its older versions are removed, and it is counted. Returns
    /// the entries that were not stored, by their places in the batch, in any order; the result may be ignored.
    pub fn put_many(&self, entries: &[Entry<'_>]) -> Vec<(usize, Refusal)> {
        let mut refused = Vec::new();
        self.put_many_with(entries, |i, why| refused.push((i, why)));
        refused
    }

    /// Stores a batch as [`put_many`](Self::put_many) does; `refused(i, why)` is called for each entry that was not
    /// stored.
    pub fn put_many_with(&self, entries: &[Entry<'_>], mut refused: impl FnMut(usize, Refusal)) {
        self.codecs.encode_entries(entries, |stored| {
            for (chunk, stored) in stored.chunks(PUT_CHUNK).enumerate() {
                let first = chunk * PUT_CHUNK;
                let mut refusals = Vec::new();
                let mut deleted = self.single_flight.change(
                    stored,
                    |entry| entry.key,
                    |stored| self.put_stored(stored, &mut |i, why| refusals.push((i, why))),
                    |keys| self.delete_stored(keys),
                );
                deleted.retain(|i| refusals.iter().all(|(refused, _)| refused != i));
                refusals.extend(deleted.into_iter().map(|i| (i, Refusal::Superseded)));
                refusals.into_iter().for_each(|(i, why)| refused(first + i, why));
            }
        });
    }

    /// Stores a value that was made for its key. Unlike other puts it does not cancel the making of that key's value,
    /// for the caller is the one that makes it.
    pub(crate) fn put_made(&self, entry: Entry<'_>) {
        self.single_flight.begin_store(entry.key.hash());
        self.codecs.encode_entries(&[entry], |stored| self.put_stored(stored, &mut |_, _| ()));
        self.single_flight.end_store();
    }

    fn put_stored(&self, entries: &[StoredEntry<'_>], refused: &mut dyn FnMut(usize, Refusal)) {
        self.for_each_partition(
            entries,
            |entry| entry.key.hash(),
            |partition, entries, positions| {
                partition.shared.put_many(entries, |i, why| refused(positions.position(i), why))
            },
        );
    }

    /// Stores a batch as [`put_many_with`](Self::put_many_with) does, but waits for a device that is behind, for
    /// `timeout` in all, so that a burst longer than the write buffers is stored completely.
    pub fn put_many_waiting(
        &self,
        entries: &[Entry<'_>],
        timeout: Duration,
        mut refused: impl FnMut(usize, Refusal),
    ) {
        for batch in self.batches_with_room(entries, timeout) {
            let first = batch.start;
            self.put_many_with(&entries[batch], |i, why| refused(first + i, why));
        }
    }

    /// Whether puts need a write buffer and soon find none until the device has taken one. A caller that can delay the
    /// next batch avoids refusals.
    pub fn is_behind(&self) -> bool {
        self.partitions.iter().any(Partition::is_behind)
    }

    /// Removes keys, for good: no kill brings them back. After a loss of power see
    /// [`sync_changes`](Self::sync_changes). A removal is never refused: if the log has no room, it waits in the
    /// journal; if that cannot be written, which the log (`tracing`) says, a kill leaves the cache empty.
    pub fn delete_many(&self, keys: &[Key<'_>]) {
        self.single_flight.change(
            keys,
            |key| *key,
            |keys| self.delete_stored(keys),
            |keys| self.delete_stored(keys),
        );
    }

    fn delete_stored(&self, keys: &[Key<'_>]) {
        self.for_each_partition(keys, Key::hash, |partition, keys, _| partition.shared.delete_many(keys));
    }

    /// Returns once no loss of power brings back what was deleted or overwritten before the call. Without flash, and
    /// with [`PowerLoss::StartEmpty`](crate::PowerLoss), that is so at once.
    ///
    /// # Errors
    /// The journal cannot be synced, nor the cache be made to start empty.
    pub fn sync_changes(&self) -> Result<(), Error> {
        let synced = self.partitions.iter().try_for_each(Partition::sync_changes);
        synced.map_err(|source| Error::Sync { path: self.path.clone(), source })
    }

    /// Visits every entry, expired and negative ones too: its key, its value (`None`: negative), and when it expires,
    /// in seconds since 1970 (0: never). An entry that is put or removed meanwhile may or may not be visited; one that
    /// moves between RAM and flash may be visited once, twice or not at all; a copy in RAM of an entry whose place on
    /// flash was reused is not visited. No entry over several blocks is read twice. Partitions are visited one after
    /// the other: first entries in RAM only, then those on the device, in its order.
    pub fn scan(&self, io: &mut Io, mut visit: impl FnMut(&[u8], Option<&[u8]>, u32)) {
        let mut scan = Scan::default();
        while self.scan_on(io, &mut scan, &mut visit) {}
    }

    /// One step of a [`scan`](Self::scan): about `SCAN_STEP_BYTES` of entries, or one that is longer. Returns whether
    /// there may be more. Any time may pass between steps; a slow visitor blocks no other thread.
    pub fn scan_on(
        &self,
        io: &mut Io,
        scan: &mut Scan,
        visit: impl FnMut(&[u8], Option<&[u8]>, u32),
    ) -> bool {
        let Some(partition) = self.partitions.get(scan.partition()) else { return false };
        partition.shared.scan_on(io, scan, visit) || scan.go_to_next() < self.partitions.len()
    }

    /// Visits the next victim of each shard's RAM, the entry that leaves it next unless it is read: key and value.
    pub fn next_victim(&self, mut visit: impl FnMut(Key<'_>, Option<&[u8]>)) {
        self.partitions.iter().for_each(|partition| partition.next_victim(&mut visit));
    }

    /// Seals what was put so far and waits until it is written to the device, which is not told to sync it: a loss of
    /// power may take it. DRAM first, what is in RAM stays there.
    ///
    /// # Errors
    /// The device refused entries, of any thread, now or since the last failed flush: they are lost, and so are older
    /// versions of their keys.
    pub fn flush(&self) -> Result<(), Error> {
        self.in_all(Partition::flush).map_err(|source| {
            let refused: u64 = self.partitions.iter().map(Partition::refused_entries).sum();
            let reported = self.reported_refused.fetch_max(refused, Ordering::Relaxed);
            Error::Flush { path: self.path.clone(), lost: refused.saturating_sub(reported), source }
        })
    }

    /// Forgets everything, for good.
    ///
    /// # Errors
    /// The operating system refuses: readers find nothing, but after a crash some of it may be there again.
    pub fn clear(&self) -> Result<(), Error> {
        let cleared = self.single_flight.change_all(|| self.in_all(Partition::clear));
        cleared.map_err(|source| Error::Clear { path: self.path.clone(), source })
    }

    /// Calls `each` for all partitions, even if it fails for one; returns the first error.
    fn in_all(&self, each: impl Fn(&Partition) -> io::Result<()>) -> io::Result<()> {
        let results: Vec<_> = self.partitions.iter().map(each).collect();
        results.into_iter().collect()
    }

    /// Counters and sizes.
    pub fn stats(&self) -> Stats {
        let mut stats: Stats = self.partitions.iter().map(Partition::stats).sum();
        self.codecs.add_to(&mut stats);
        stats
    }

    /// Stops cleanly: all that was put is on the device, and the cache is warm when it is opened again. Dropping a
    /// cache does the same, but cannot report errors.
    ///
    /// # Errors
    /// The cache could not be stopped cleanly: it may start empty. If the device refuses what is in RAM only, that is
    /// lost, or with a [`memory_folder`](crate::FlashOptions::memory_folder) stays there, as through a kill.
    pub fn close(self) -> Result<(), Error> {
        let Self { codecs, partitions, path, .. } = self;
        // Waits for the thread that trains, while the files are still this cache's.
        drop(codecs);
        // All of them, even if one fails.
        let closed: Vec<_> = partitions.into_iter().map(Partition::close).collect();
        closed.into_iter().collect::<io::Result<()>>().map_err(|source| Error::Close { path, source })
    }

    /// Stops as a kill would: write buffers are lost, nothing is marked as clean. For tests.
    pub(crate) fn abandon(self) {
        let Self { codecs, partitions, .. } = self;
        drop(codecs);
        partitions.into_iter().for_each(Partition::abandon);
    }

    /// Checks every structure against itself. For tests; other threads must be at rest.
    pub(crate) fn validate(&self) {
        self.partitions.iter().for_each(Partition::validate);
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Builder {
    /// Opens the cache, with what it held when it was stopped or killed.
    ///
    /// # Errors
    /// Flash has options but no path, and those of [`Cache::open`].
    pub fn open(self) -> Result<Cache, OpenError> {
        Cache::open(self.options()?)
    }
}

impl Pending {
    /// A `Pending` for this cache only.
    pub fn new(cache: &Cache) -> Self {
        Self::with_engine(cache, Engine::Ring)
    }

    /// A `Pending` for this cache only, with `engine`, or the next best.
    pub fn with_engine(cache: &Cache, engine: Engine) -> Self {
        Self::over(cache.partitions[0].shared.flash.as_ref(), engine)
    }
}
