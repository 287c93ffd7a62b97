//! A volume: opened, read, written, closed.

use crate::checkpoint::{self, CheckpointHeader};
use crate::checksums::Checksums;
use crate::committer::Committer;
use crate::config::{Config, Error, Files};
use crate::framing::{Blocks, Summary};
use crate::limits::CHECKSUM_BYTES;
use crate::map::Map;
use crate::read::{BlockCheck, DeviceBlock, Located};
use crate::running::{Running, Slot, SlotUse, Wake};
use crate::stats::{Counters, Operation, Stats};
use crate::unfinished::{Resize, finish_resize, present};
use crate::volume_lock::VolumeLock;
use crate::write::WaitPolicy;
use granary_log::device::Device;
use granary_log::{
    Consumer, CrashPolicy, Extent, Io, Log, NewestKnown, OnWriteError, OpenError, Opened, Options,
    sync_folder,
};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// A log-structured volume. Threads share it; each has an [`Io`] of its own. Dropping it closes it.
///
/// A completed [`commit`](Self::commit) covers all writes that were completed before it. Without one, what a loss of
/// power leaves of a block is the old or the new content, never a mixture.
pub struct Volume {
    running: Arc<Running>,
    committer: Committer,
    threads: Vec<JoinHandle<()>>,
}

/// The volume as the log's consumer: it never gives up a segment.
struct VolumeConsumer;

impl Consumer<Blocks> for VolumeConsumer {
    fn reclaim(&self, _: &Summary) {
        unreachable!("slots of a volume are freed by the volume");
    }

    fn reclaim_unread(&self, _: Range<u64>) {
        unreachable!("slots of a volume are freed by the volume");
    }

    fn on_write_error(&self, _: &Summary, _: &io::Error) -> OnWriteError {
        OnWriteError::Retry
    }
}

impl Running {
    /// Writes full segments until the log ends.
    fn flush_until_end(&self) {
        // The log knows no volumes, and a server has many.
        let _span = tracing::error_span!("volume", name = self.files.name()).entered();
        self.log.run_flusher(&VolumeConsumer);
    }
}

/// Reads the checkpoint into the map. Returns its header; `None`: there is no checkpoint.
///
/// # Errors
/// It is damaged, of a volume of another size, or cannot be read or synced.
fn restore_map(
    map: &mut dyn Map,
    files: &Files,
    config: &Config,
    framing: &Blocks,
) -> Result<Option<CheckpointHeader>, Error> {
    let path = files.checkpoint();
    let damaged = |reason: &str| Error::Damaged { path: path.clone(), reason: reason.to_owned() };
    let Some(read) = checkpoint::read(&path).map_err(Error::Checkpoint)? else {
        return match path.exists() {
            true => Err(damaged("the map is not whole: put the last copy of it back, or delete the volume")),
            false => Ok(None),
        };
    };
    let header = read.header;
    if header.blocks > map.blocks() || u64::from(header.block_size) != config.block_size {
        return Err(damaged("it is the map of a volume of another size"));
    }
    framing.entries_from.store(header.sequence + 1, Ordering::Release);
    framing.checkpoint.store(header.sequence + 1, Ordering::Release);
    // A killed process may have renamed the checkpoint without syncing the folder. It must be durable before slots are
    // reused on its strength.
    sync_folder(&path).map_err(Error::io("sync the folder of", &path))?;
    read.restore(map, &mut |_| {}).map_err(Error::Checkpoint)?;
    Ok(Some(header))
}

/// Checks that log and checkpoint belong together, and that nothing synced is damaged.
fn check_recovered(
    log: &Log<Blocks>,
    segments: &[Summary],
    header: Option<CheckpointHeader>,
    files: &Files,
    config: &Config,
    framing: &Blocks,
) -> Result<(), Error> {
    let damaged = |path, reason: &str| Err(Error::Damaged { path, reason: reason.to_owned() });
    if header.is_some_and(|header| header.instance != log.instance()) {
        return damaged(files.checkpoint(), "it is the map of another volume");
    }
    if framing.faults.unreadable.load(Ordering::Acquire) > 0 {
        // An unreadable segment may have the newest version of a block, and its slot must not count as free.
        let path = config.log_path(files);
        return Err(Error::io("read the summaries of", &path)(crate::running::damaged()));
    }
    if let segment @ 1.. = framing.faults.damaged.load(Ordering::Acquire) {
        let reason = format!(
            "of segment {segment} a part that was synced is damaged, and so is what was flushed there"
        );
        return damaged(config.log_path(files), &reason);
    }
    if config.formatted && segments.is_empty() {
        let reason = "nothing of this volume is on it: it is another device or file";
        return damaged(config.log_path(files), reason);
    }
    // Segments with entries of zeroes may be gone since: an older map would bring old content back.
    let newest = segments.iter().map(|summary| summary.checkpoint).max().unwrap_or(0);
    if newest > header.map_or(0, |header| header.sequence + 1) {
        let reason = "it is a copy from before the map that the log knows of: put the last one back";
        return damaged(files.checkpoint(), reason);
    }
    Ok(())
}

/// Has the map written down before the first append: the log refers to blocks that never reached the device, and its
/// unfinished segments will soon count as synced. The checkpoint keeps later recoveries from replaying it; until then
/// each recovery replays the same.
fn write_map_first(volume: &Running) {
    volume.checkpoint_first.store(true, Ordering::Release);
    if let Err(error) = volume.ready_to_append() {
        let volume = volume.files.name();
        tracing::error!(%error, volume, "the map cannot be written down: until it can, writes fail");
    }
}

/// Called with the progress of opening a volume: segments done, all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

impl Volume {
    /// Opens a volume. `progress` is called with segments: done, all.
    ///
    /// # Errors
    /// There is none of this name, another process has it open, a file of it is damaged, or no thread can be started.
    pub fn open(folder: &Path, name: &str, progress: Progress<'_>) -> Result<Self, Error> {
        let files = Files::new(folder, name)?;
        let lock = VolumeLock::take_existing(&files)?;
        Self::open_held(files, &Arc::new(lock), progress)
    }

    /// Like [`open`](Self::open), for a volume that is held.
    pub(crate) fn open_held(
        files: Files,
        lock: &Arc<VolumeLock>,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        if let Resize::Undone(error) = finish_resize(&files)? {
            tracing::warn!(%error, volume = files.name(), "a resize that was begun is undone");
        }
        let config = Config::read(&files)?;
        present(&files, &config)?;
        config.device.as_deref().map_or(Ok(()), |device| lock.claim(device))?;
        let options = config.log_options(&files, CrashPolicy::Keep(None))?;
        let open = |framing, newest| {
            Log::open(framing, &Options { crash_policy: CrashPolicy::Keep(newest), ..options })
                .map_err(Error::of_existing)
        };
        let is_formatted = config.formatted;
        let volume = Self::start(files.clone(), config, Arc::clone(lock), open, progress)?;
        if !is_formatted && files.checkpoint().exists() && volume.running.log.head() > 0 {
            // The volume is older than `formatted`, or its creation was interrupted: from here on missing parts are
            // detected.
            Config { formatted: true, ..volume.config().clone() }.write(&files, &files.config())?;
            crate::unfinished::remove(&[files.unfinished_delete()])?;
        }
        Ok(volume)
    }

    /// Opens a volume, creating it if it does not exist, with its log on a given device.
    ///
    /// Device and shape are the caller's to know: neither is written down, so only `open_on` opens such a volume again,
    /// with the same `config`. [`open`](Self::open), [`list`](Self::list), [`resize`](Self::resize) and
    /// [`delete`](Self::delete) do not know it, and [`create`](Self::create) refuses its name.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_on(
        folder: &Path,
        name: &str,
        config: &Config,
        device: Box<dyn Device>,
    ) -> Result<Self, Error> {
        let files = Files::new(folder, name)?;
        let lock = Arc::new(VolumeLock::take_beside_device(&files)?);
        let (options, is_there) =
            (config.log_options(&files, CrashPolicy::StartEmpty)?, files.state_file().exists());
        let open = |framing, newest| {
            let crash_policy = if is_there { CrashPolicy::Keep(newest) } else { CrashPolicy::StartEmpty };
            let error = if is_there { Error::of_existing } else { Error::from };
            Log::open_on(framing, device, &Options { crash_policy, ..options }).map_err(error)
        };
        Self::start(files, config.clone(), lock, open, &mut |_, _| {})
    }

    fn start(
        files: Files,
        config: Config,
        lock: Arc<VolumeLock>,
        open: impl FnOnce(Blocks, Option<NewestKnown>) -> Result<Opened<Blocks>, Error>,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let mut map = config.map.create(config.blocks())?;
        let framing = Blocks::default();
        let header = restore_map(&mut *map, &files, &config, &framing)?;
        let newest =
            header.map(|header| NewestKnown { instance: header.instance, sequence: header.sequence });
        let (log, recovered) = open(framing.clone(), newest)?;
        lock.note_open(&config)?;
        check_recovered(&log, &recovered.segments, header, &files, &config, &framing)?;
        framing.entries_from.store(0, Ordering::Release);
        let slots = log.geometry().segments();
        let running = Arc::new(Running {
            checkpointed: framing.checkpoint,
            replayed: AtomicU64::new(0),
            written_before: AtomicU64::new(0),
            head_at_open: log.head(),
            checkpoint_first: AtomicBool::new(false),
            checkpointing: Mutex::default(),
            no_room: AtomicBool::new(false),
            files,
            lock,
            is_replaced: AtomicBool::new(false),
            config,
            log,
            map,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            checksums: Checksums::new(CHECKSUM_BYTES),
            awaiting_sync: Mutex::default(),
            damage_told: AtomicU64::new(0),
            cleaner: Wake::default(),
            opened: Instant::now(),
            counters: Counters::default(),
        });
        let data = running.config.log_path(&running.files);
        let recover = running.recover(&recovered, progress);
        if recover.map_err(|reason| Error::Damaged { path: data.clone(), reason })? {
            write_map_first(&running);
        }
        // Without a checkpoint one is due in any case.
        if header.is_none() {
            running.replayed.fetch_max(1, Ordering::Relaxed);
        }
        // Everything that this start serves must be durable: the last process may have ended before its writes were
        // synced.
        running.commit().map_err(Error::io("sync", &data))?;
        let sealed = recovered.segments.iter().rfind(|summary| summary.is_sealed);
        running.note_synced(sealed.map(|summary| summary.sequence));
        drop(recovered);
        Self::run(running).map_err(|source| OpenError::Thread { path: data, source }.into())
    }

    /// Starts the threads of a volume.
    ///
    /// # Errors
    /// The process may start no more: the started ones were ended, and the volume is as after a kill.
    fn run(running: Arc<Running>) -> io::Result<Self> {
        let committer = Committer::start(Arc::clone(&running))?;
        let mut volume = Self { running, committer, threads: Vec::new() };
        let started = volume
            .start_thread("volume-flush", Running::flush_until_end)
            .and_then(|()| volume.start_thread("volume-clean", Running::clean_until_end));
        match started {
            Ok(()) => Ok(volume),
            Err(error) => {
                volume.abandon();
                Err(error)
            }
        }
    }

    fn start_thread(&mut self, name: &str, work: fn(&Running)) -> io::Result<()> {
        let running = Arc::clone(&self.running);
        self.threads.push(Builder::new().name(name.into()).spawn(move || work(&running))?);
        Ok(())
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.running.files.name()
    }

    /// The shape.
    pub fn config(&self) -> &Config {
        &self.running.config
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// EIO: a block is damaged on the device, or cannot be read. EINVAL: the range ends beyond the volume.
    pub fn read(&self, io: &mut Io, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.check_range(offset, out.len() as u64)?;
        self.note_read(out.len() as u64);
        self.running.read(io, offset, out)
    }

    /// Reads a block again that was [found](Self::find) on the device and could not be read there, or had moved.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn read_again(&self, io: &mut Io, lba: u64, out: &mut [u8]) -> io::Result<()> {
        self.running.read_block(io, lba, out)
    }

    /// Writes bytes. Reads find them from here on; they are durable after the next [`commit`](Self::commit).
    ///
    /// # Errors
    /// The device refuses writes, or has no space left. EINVAL: the range ends beyond the volume.
    pub fn write(&self, io: &mut Io, offset: u64, data: &[u8]) -> io::Result<()> {
        self.try_write(io, offset, data, WaitPolicy::DEFAULT)
    }

    /// Like [`write`](Self::write), with this policy.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write), and `WouldBlock`.
    pub fn try_write(&self, io: &mut Io, offset: u64, data: &[u8], policy: WaitPolicy<'_>) -> io::Result<()> {
        self.check_range(offset, data.len() as u64)?;
        self.running.ready_to_append()?;
        self.running.write(io, offset, data, policy)
    }

    /// Makes bytes zero. Whole blocks take no space from then on.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_zeroes(&self, io: &mut Io, offset: u64, len: u64) -> io::Result<()> {
        self.try_write_zeroes(io, offset, len, WaitPolicy::DEFAULT)
    }

    /// Like [`write_zeroes`](Self::write_zeroes), with this policy.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write), and `WouldBlock`.
    pub fn try_write_zeroes(
        &self,
        io: &mut Io,
        offset: u64,
        len: u64,
        policy: WaitPolicy<'_>,
    ) -> io::Result<()> {
        self.check_range(offset, len)?;
        self.running.ready_to_append()?;
        self.running.write_zeroes(io, offset, len, policy)
    }

    /// Gives back the space of whole blocks within a range of bytes: they are zero from then on.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn trim(&self, offset: u64, len: u64) -> io::Result<()> {
        self.try_trim(offset, len, WaitPolicy::DEFAULT)
    }

    /// Like [`trim`](Self::trim), with this policy.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write), and `WouldBlock`.
    pub fn try_trim(&self, offset: u64, len: u64, policy: WaitPolicy<'_>) -> io::Result<()> {
        self.check_range(offset, len)?;
        self.running.ready_to_append()?;
        self.running.trim(offset, len, policy)
    }

    /// Makes everything durable that was written before the call.
    ///
    /// # Errors
    /// The device refuses a write, or a sync now or earlier: a failed sync is never followed by a successful one. Or
    /// the volume's files were removed or replaced.
    pub fn commit(&self) -> io::Result<()> {
        self.running.commit()
    }

    /// Like [`commit`](Self::commit), on a thread of the volume, which calls `done`. Requests made while a commit runs
    /// share the next one.
    pub fn commit_later(&self, done: impl FnOnce(Result<(), &io::Error>) + Send + 'static) {
        self.committer.commit(Box::new(done));
    }

    /// Finds a logical block, and copies it to `out`, a block long, if it is not on the device.
    pub fn find(&self, lba: u64, out: &mut [u8]) -> Located {
        self.running.find(lba, out)
    }

    /// Counts a read of `bytes` bytes that was not made by [`read`](Self::read).
    pub fn note_read(&self, bytes: u64) {
        self.running.counters.reads.fetch_add(1, Ordering::Relaxed);
        self.running.counters.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the time from a client's request to its answer to the latencies of the [statistics](Self::stats).
    pub fn note_answered(&self, operation: Operation, took: Duration) {
        self.running.counters.note_answered(operation, took);
    }

    /// The bytes of the device to read for a block that was [found](Self::find) there.
    pub fn extent(&self, stored: DeviceBlock) -> Extent {
        self.running.extent(stored)
    }

    /// Divides blocks that were [found](Self::find) on the device, each with its number, into runs whose numbers and
    /// places are neighbours, of `bytes_max` or of one block: ranges of `blocks`, and what to read of the device for
    /// each.
    pub fn runs(
        &self,
        blocks: &[(usize, DeviceBlock)],
        bytes_max: usize,
    ) -> (Vec<Range<usize>>, Vec<Extent>) {
        self.running.runs(blocks, bytes_max)
    }

    /// Whether `bytes`, read from a block's extent, are its content.
    pub fn check(&self, lba: u64, stored: DeviceBlock, bytes: &[u8]) -> BlockCheck {
        self.running.check(lba, stored, bytes)
    }

    /// The device that extents are read from.
    pub fn device(&self) -> &dyn Device {
        self.running.log.device()
    }

    /// The first mapped block at or after `lba`.
    pub fn next_mapped(&self, lba: u64) -> Option<u64> {
        Some(self.running.map.next_mapped(lba)?.0)
    }

    /// Whether changes will have to wait for room when the current segment is full.
    pub fn is_behind(&self) -> bool {
        self.running.log.is_behind()
    }

    /// Compares the map with the segments' entries, and returns the number of mapped logical blocks that are not where
    /// the map has them. Unmapped blocks cannot be checked. `progress` is called with the number of segments done.
    pub fn check_map(&self, progress: &mut dyn FnMut(u64)) -> u64 {
        self.running.check_map(progress)
    }

    /// The number of segments that the cleaner found to hold nothing alive, and whose slots are not free yet.
    #[doc(hidden)]
    pub fn segments_emptied(&self) -> u64 {
        let slots = self.running.slots.iter();
        slots.filter(|slot| slot.usage() == SlotUse::Emptied).count() as u64
    }

    /// Counters and the state now.
    pub fn stats(&self) -> Stats {
        let Running { counters, log, map, checksums, .. } = &*self.running;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let of_log = log.stats();
        Stats {
            reads: get(&counters.reads),
            bytes_read: get(&counters.bytes_read),
            writes: get(&counters.writes),
            bytes_written: get(&counters.bytes_written),
            read_latency: counters.read_latency.read(),
            write_latency: counters.write_latency.read(),
            flush_latency: counters.flush_latency.read(),
            commits: get(&counters.commits),
            blocks_trimmed: get(&counters.blocks_trimmed),
            blocks_moved: get(&counters.blocks_moved),
            segments_cleaned: get(&counters.segments_cleaned),
            checkpoints: get(&counters.checkpoints),
            checksum_loads: get(&counters.checksum_loads),
            damaged: get(&counters.damaged),
            waits: get(&counters.waits),
            device_bytes_written: of_log.bytes_written,
            blocks_mapped: map.len(),
            blocks: map.blocks(),
            segments: log.geometry().segments(),
            blocks_per_segment: log.geometry().blocks_per_segment().into(),
            segments_free: log.free_slots(),
            segments_since_checkpoint: self.running.since_checkpoint(),
            map_bytes: map.bytes_allocated(),
            checksum_bytes: checksums.bytes_allocated(),
            buffer_bytes: of_log.buffer_bytes,
        }
    }

    /// Makes everything durable, writes a checkpoint, and closes the volume.
    ///
    /// # Errors
    /// The errors of [`commit`](Self::commit): earlier commits are kept all the same. If nothing was written, there is
    /// no error.
    pub fn close(mut self) -> io::Result<()> {
        self.end_at_no_loss()
    }

    /// Like [`close`](Self::close), for callers that need the checkpoint to be written.
    ///
    /// # Errors
    /// The errors of [`commit`](Self::commit).
    pub(crate) fn close_with_map(mut self) -> io::Result<()> {
        self.end()
    }

    /// Ends. If nothing was written, a failed end costs nothing: the next start replays the same.
    fn end_at_no_loss(&mut self) -> io::Result<()> {
        self.end().or_else(|error| if self.running.is_untouched() { Ok(()) } else { Err(error) })
    }

    fn end(&mut self) -> io::Result<()> {
        if self.threads.is_empty() {
            return Ok(());
        }
        self.committer.end();
        self.running.cleaner.ends.store(true, Ordering::Release);
        self.running.cleaner.wake();
        let cleaner = self.threads.pop();
        // A panic of a thread was printed by it; there is nothing to add.
        let _ = cleaner.map(JoinHandle::join);
        let ended = self.running.write_last_checkpoint();
        let ended = match ended {
            Ok(()) => self.running.log.stop(),
            Err(error) => {
                self.running.log.abandon();
                Err(error)
            }
        };
        self.threads.drain(..).for_each(|thread| _ = thread.join());
        ended
    }

    /// Ends as a kill would: nothing more is written.
    #[doc(hidden)]
    pub fn abandon(mut self) {
        self.running.cleaner.ends.store(true, Ordering::Release);
        self.running.cleaner.wake();
        self.running.log.abandon();
        self.committer.end();
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }

    fn check_range(&self, offset: u64, len: u64) -> io::Result<()> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.running.config.size);
        if inside { Ok(()) } else { Err(rustix::io::Errno::INVAL.into()) }
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Err(error) = self.end_at_no_loss() {
            tracing::error!(%error, volume = self.name(), "the volume could not be closed cleanly");
        }
    }
}
