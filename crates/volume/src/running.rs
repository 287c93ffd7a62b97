//! The state that all parts of a running volume share.

use crate::checksums::Checksums;
use crate::config::{Config, Files};
use crate::framing::{Blocks, Summary};
use crate::limits::{SET_ASIDE, SET_ASIDE_MAX};
use crate::map::{Map, Place};
use crate::retry::Retry;
use crate::stats::Counters;
use crate::volume_lock::VolumeLock;
use granary_log::{Framing, Log};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A running volume.
pub(crate) struct Running {
    pub files: Files,
    pub lock: Arc<VolumeLock>,
    /// The volume's files were not where they belong at the last check: nothing is appended while they are not.
    pub is_replaced: AtomicBool,
    pub config: Config,
    pub log: Log<Blocks>,
    /// Changed under the log's writer lock only, so that the order of the log is the order of the map.
    pub map: Box<dyn Map>,
    pub slots: Box<[Slot]>,
    pub checksums: Checksums,
    /// Slots without live blocks. They are free once the new copies of their content are synced.
    pub awaiting_sync: Mutex<Vec<u64>>,
    /// Everything in segments before this one is in the checkpoint.
    pub checkpointed: Arc<AtomicU64>,
    /// Segments that a recovery would read, except those written since the volume was opened.
    pub replayed: AtomicU64,
    /// Segments that were written between opening and the checkpoint.
    pub written_before: AtomicU64,
    /// The log's head when the volume was opened: new segments have greater sequence numbers. After a kill no segment
    /// has this one.
    pub head_at_open: u64,
    /// The log refers to blocks that are missing: a checkpoint must be written before anything is appended.
    pub checkpoint_first: AtomicBool,
    /// Held while a checkpoint is written, for that reason or because it is due.
    pub checkpointing: Mutex<Retry>,
    /// A write waited for room in vain, and no segment was freed since.
    pub no_room: AtomicBool,
    /// The last time that a damaged block was logged, in milliseconds since the volume was opened; 0: never.
    pub damage_told: AtomicU64,
    pub cleaner: Wake,
    pub opened: Instant,
    pub counters: Counters,
}

/// The volume's bookkeeping of one slot of the log.
#[derive(Default)]
pub(crate) struct Slot {
    /// Blocks in it that the map points to.
    pub live: AtomicU32,
    /// A [`SlotUse`].
    usage: AtomicU8,
    /// The cleaner skips the segment for this many milliseconds after a failed read; 0: it does not.
    deferred_for: AtomicU64,
    /// The end of that time, in milliseconds since the volume was opened.
    deferred_until: AtomicU64,
}

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SlotUse {
    /// It may be overwritten.
    Free = 0,
    /// It holds, or will hold, a segment.
    Used = 1,
    /// It holds no live blocks, and waits for a sync.
    Emptied = 2,
}

impl Slot {
    pub fn usage(&self) -> SlotUse {
        match self.usage.load(Ordering::Acquire) {
            0 => SlotUse::Free,
            1 => SlotUse::Used,
            _ => SlotUse::Emptied,
        }
    }

    pub fn set_usage(&self, usage: SlotUse) {
        self.usage.store(usage as u8, Ordering::Release);
    }

    /// Makes the cleaner skip the segment from `now` on, in milliseconds since the volume was opened; returns whether
    /// this is the first time.
    pub fn defer_cleaning(&self, now: u64) -> bool {
        let before = self.deferred_for.load(Ordering::Relaxed);
        let milliseconds = |duration: Duration| duration.as_millis() as u64;
        let wait = (2 * before).clamp(milliseconds(SET_ASIDE), milliseconds(SET_ASIDE_MAX));
        self.deferred_until.store(now + wait, Ordering::Relaxed);
        self.deferred_for.store(wait, Ordering::Release);
        before == 0
    }

    pub fn is_deferred(&self, now: u64) -> bool {
        self.deferred_for.load(Ordering::Acquire) != 0 && now < self.deferred_until.load(Ordering::Relaxed)
    }

    /// Ends the skipping: all blocks could be read, or the slot has another segment.
    pub fn end_deferral(&self) {
        self.deferred_for.store(0, Ordering::Release);
    }
}

/// A thread that sleeps until it is woken or its time has come.
#[derive(Default)]
pub(crate) struct Wake {
    woken: Mutex<bool>,
    changed: Condvar,
    pub ends: AtomicBool,
}

impl Wake {
    pub fn wake(&self) {
        *self.woken.lock().expect("no panic under the lock") = true;
        self.changed.notify_one();
    }

    pub fn sleep(&self, most: Duration) {
        let woken = self.woken.lock().expect("no panic under the lock");
        let waited = self.changed.wait_timeout_while(woken, most, |woken| !*woken);
        *waited.expect("no panic under the lock").0 = false;
    }
}

/// The error for a broken device or damaged data.
pub(crate) fn damaged() -> io::Error {
    rustix::io::Errno::IO.into()
}

impl Running {
    /// Segments that a recovery would read.
    pub fn since_checkpoint(&self) -> u64 {
        let before = self.written_before.load(Ordering::Acquire);
        // A checkpoint written meanwhile may have counted more.
        let written = self.log.segments_written().saturating_sub(before);
        self.replayed.load(Ordering::Acquire) + written
    }

    /// Whether nothing was written since the volume was opened.
    pub fn is_untouched(&self) -> bool {
        self.log.head() == self.head_at_open
    }

    /// Milliseconds since the volume was opened.
    pub fn now(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }

    pub fn block_size(&self) -> usize {
        self.config.block_size as usize
    }

    pub fn slot_of(&self, place: Place) -> &Slot {
        self.slot_of_block(place.block().into())
    }

    /// The slot that a block of the log lies in.
    pub fn slot_of_block(&self, block: u64) -> &Slot {
        &self.slots[self.log.geometry().slot_of_block(block) as usize]
    }

    /// The summary of the segment in a slot on the device; `None`: there is none, or it is incomplete.
    pub fn summary_of(&self, slot: u64) -> Option<Summary> {
        self.log.framing().read(&self.log.summary_source(), slot..slot + 1).pop().flatten()
    }

    /// Whether a segment's slot must not be reused before the next checkpoint: the segment's entries of zeroes are in
    /// no other segment, and a recovery that does not find it would count it as lost.
    pub fn waits_for_checkpoint(&self, sequence: u64) -> bool {
        sequence >= self.checkpointed.load(Ordering::Acquire)
    }

    /// Maps a logical block to a block of the log that was just appended.
    pub fn map_block(&self, lba: u64, block: u64) {
        let place = Place::of_block(block as u32).expect("the log has fewer blocks than places");
        let slot = self.slot_of(place);
        slot.live.fetch_add(1, Ordering::AcqRel);
        if slot.usage() != SlotUse::Used {
            slot.set_usage(SlotUse::Used);
        }
        if let Some(old) = self.map.set(lba, place) {
            self.slot_of(old).live.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Unmaps a logical block.
    pub fn unmap_block(&self, lba: u64) {
        if let Some(old) = self.map.remove(lba) {
            self.slot_of(old).live.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Notes the newest segment that is durable with all before it. Segments written from here on record it.
    pub fn note_synced(&self, segment: Option<u64>) {
        self.log.framing().synced.fetch_max(segment.unwrap_or(0), Ordering::AcqRel);
    }

    /// Segments written since the volume was opened that are not known to be durable, or not full.
    pub fn unsynced_segments(&self) -> u64 {
        let synced = self.log.framing().synced.load(Ordering::Acquire);
        self.log.head().saturating_sub(synced.max(self.head_at_open))
    }

    /// Checks that the volume's files are where they were opened.
    ///
    /// # Errors
    /// One was removed or replaced, or the folder was. Nothing is appended as long as it is so.
    pub fn check_files(&self) -> io::Result<()> {
        let checked = self.lock.check_files();
        self.is_replaced.store(checked.is_err(), Ordering::Release);
        checked
    }

    /// Like [`check_files`](Self::check_files), but only if the last check failed.
    ///
    /// # Errors
    /// The errors of [`check_files`](Self::check_files).
    pub fn check_files_again(&self) -> io::Result<()> {
        if self.is_replaced.load(Ordering::Acquire) { self.check_files() } else { Ok(()) }
    }

    /// Makes everything durable that was written before the call.
    ///
    /// # Errors
    /// The device refuses a write or a sync, or the volume's files were removed or replaced.
    pub fn commit(&self) -> io::Result<()> {
        let emptied = std::mem::take(&mut *self.awaiting_sync.lock().expect("no panic under the lock"));
        // All segments before the newest one are full, and are written by the time that the commit ends.
        let full = self.log.head().checked_sub(1).filter(|full| *full > self.head_at_open);
        if let Err(error) = self.log.commit() {
            self.awaiting_sync.lock().expect("no panic under the lock").extend(emptied);
            return Err(error);
        }
        // Synced data is lost for a later open by path if the files were removed or replaced.
        let checked = self.check_files();
        if checked.is_err() {
            self.awaiting_sync.lock().expect("no panic under the lock").extend(emptied);
            return checked;
        }
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.note_synced(full);
        if !emptied.is_empty() {
            self.no_room.store(false, Ordering::Relaxed);
        }
        for slot in emptied {
            self.checksums.invalidate(slot as u32);
            let state = &self.slots[slot as usize];
            state.end_deferral();
            state.set_usage(SlotUse::Free);
            self.log.release_slot(slot);
        }
        Ok(())
    }
}
