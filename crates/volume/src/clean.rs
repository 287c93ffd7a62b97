//! The cleaner: one thread off the request path that empties segments, syncs, and writes the map down.

use crate::checkpoint;
use crate::framing::{blocks_in_segment, content_hash, live_to_clean_max, live_to_fit_max};
use crate::limits::{
    CHECKPOINT_SEGMENTS_DIVISOR, CLEANER_SLEEP, RESERVED_SEGMENTS, ROOM_LOOK_AGAIN, UNSYNCED_BYTES_MAX,
};
use crate::map::Place;
use crate::policy::{self, Candidate, Policy};
use crate::read::{BlockCheck, DeviceBlock};
use crate::running::{Running, SlotUse};
use granary_log::Io;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A live block of a segment that is being cleaned.
struct Live {
    lba: u64,
    stored: DeviceBlock,
    /// The content hash and the bytes, as soon as they are read.
    content: Option<(u64, Box<[u8]>)>,
}

impl Running {
    /// Cleans until the volume ends.
    pub fn clean_until_end(&self) {
        let (mut io, mut is_held_up) = (Io::new(), false);
        while !self.cleaner.ends.load(Ordering::Acquire) {
            let cleaned = self.clean_once(&mut io);
            match &cleaned {
                Ok(true) => {}
                Ok(false) => self.cleaner.sleep(CLEANER_SLEEP),
                Err(error) => {
                    // Whoever writes or commits gets the error; here it is tried again, and told once.
                    if !is_held_up {
                        tracing::error!(%error, volume = self.files.name(), "cleaning is held up");
                    }
                    self.cleaner.sleep(CLEANER_SLEEP);
                }
            }
            is_held_up = cleaned.is_err();
        }
    }

    /// One step; `false`: there is nothing to do.
    fn clean_once(&self, io: &mut Io) -> io::Result<bool> {
        self.check_files()?;
        self.ready_to_append()?;
        let waiting = self.collect_emptied();
        let segments = self.log.geometry().segments();
        let free = self.log.free_slots();
        let emptied = self.awaiting_sync.lock().expect("no panic under the lock").len() as u64;
        let segment_bytes = self.log.geometry().segment_bytes();
        let to_free =
            |free: u64| policy::segments_to_free(free as u32, RESERVED_SEGMENTS as u32, segments as u32);
        let is_low = emptied > 0 && to_free(free) > 0;
        if is_low || self.unsynced_segments() * segment_bytes >= UNSYNCED_BYTES_MAX.max(2 * segment_bytes) {
            self.commit()?;
            return Ok(true);
        }
        let since = self.since_checkpoint();
        let mut written = Ok(());
        if since > segments / CHECKPOINT_SEGMENTS_DIVISOR {
            written = self.try_checkpoint();
            if written.is_ok() {
                return Ok(true);
            }
            // Segments that the checkpoint before has are emptied all the same, as long as there are any.
        }
        if to_free(free + emptied) == 0 {
            return written.map(|()| false);
        }
        let victim = self.victim(free);
        let live = victim.map(|slot| self.slots[slot as usize].live.load(Ordering::Acquire));
        if self.is_checkpoint_cheaper(waiting, live) && self.try_checkpoint().is_ok() {
            return Ok(true);
        }
        if let Some(victim) = victim {
            self.empty(io, victim)?;
            return Ok(true);
        }
        // Only segments that wait for a checkpoint can still be freed, or cleaned without using up the reserve.
        if since > 0 {
            self.try_checkpoint()?;
        }
        Ok(since > 0)
    }

    /// Whether less is written for each segment that a checkpoint frees, `waiting` of them, than for one that is
    /// cleaned and has so many live blocks.
    fn is_checkpoint_cheaper(&self, waiting: u64, live: Option<u32>) -> bool {
        let map_blocks = self.map.blocks() * size_of::<Place>() as u64 / self.config.block_size;
        let blocks = blocks_in_segment(self.log.geometry());
        live.is_some_and(|live| policy::is_checkpoint_cheaper(map_blocks, waiting, live.into(), blocks))
    }

    /// The segments that are on the device as a whole: (slot, sequence number).
    fn written(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let written = self.log.newest_written();
        (0..)
            .zip(&self.slots)
            .filter(|(_, state)| state.usage() == SlotUse::Used)
            .map(|(slot, _)| (slot, self.log.sequence_of_slot(slot)))
            .filter(move |(_, sequence)| (1..=written).contains(sequence))
    }

    /// Finds the segments that hold nothing alive. Gives the number of those that wait for a checkpoint.
    fn collect_emptied(&self) -> u64 {
        let mut waiting = 0;
        for (slot, sequence) in self.written() {
            let state = &self.slots[slot as usize];
            if state.live.load(Ordering::Acquire) > 0 {
                continue;
            }
            if self.waits_for_checkpoint(sequence) {
                waiting += 1;
                continue;
            }
            state.set_usage(SlotUse::Emptied);
            self.awaiting_sync.lock().expect("no panic under the lock").push(slot);
        }
        waiting
    }

    /// The segment to be cleaned next, with `free` slots free.
    fn victim(&self, free: u64) -> Option<u64> {
        let written = self.written();
        // Read after what is written: no segment of these is younger.
        let (head, now) = (self.log.head(), self.now());
        let candidates = written.filter_map(|(slot, sequence)| {
            let state = &self.slots[slot as usize];
            let movable = !self.waits_for_checkpoint(sequence) && !state.is_deferred(now);
            let live = state.live.load(Ordering::Acquire);
            movable.then_some(Candidate { slot: slot as u32, live, age: head - sequence })
        });
        let geometry = self.log.geometry();
        let (gains_below, fits_below) = (live_to_clean_max(geometry), live_to_fit_max(geometry));
        let most = policy::live_to_clean(free, RESERVED_SEGMENTS, gains_below, fits_below);
        policy::choose(candidates, most as u32, Policy::default()).map(u64::from)
    }

    /// Moves what is alive in a segment to the end of the log, all of it or nothing: a segment that is not emptied
    /// gives no room back for what its blocks would take elsewhere.
    fn empty(&self, io: &mut Io, slot: u64) -> io::Result<()> {
        let Some(summary) = self.summary_of(slot) else {
            self.defer_cleaning(slot, "its summary cannot be read");
            return Ok(());
        };
        if summary.sequence != self.log.sequence_of_slot(slot) {
            self.defer_cleaning(slot, "its summary is that of another segment");
            return Ok(());
        }
        let mut live: Vec<Live> = summary
            .blocks()
            .filter_map(|(lba, block, _)| {
                let place = Place::of_block(block as u32)?;
                let stored = DeviceBlock { place, sequence: summary.sequence };
                (self.map.get(lba) == Some(place)).then_some(Live { lba, stored, content: None })
            })
            .collect();
        // Nothing comes to a full segment: more can only be what is missing in what was read of the summary.
        let is_all = self.slots[slot as usize].live.load(Ordering::Acquire) as usize <= live.len();
        if !is_all || !self.read_live(io, &mut live) {
            self.defer_cleaning(slot, "some of its blocks cannot be read");
            return Ok(());
        }
        let locked_max = policy::blocks_locked(self.log.free_slots(), RESERVED_SEGMENTS, live.len());
        let mut moved = live.iter().filter_map(|live| Some((live, live.content.as_ref()?))).peekable();
        while moved.peek().is_some() {
            let mut writer = self.log.writer().for_moving();
            let mut is_full = false;
            for _ in 0..locked_max {
                let Some((Live { lba, stored, .. }, (hash, bytes))) = moved.peek() else { break };
                // What was written meanwhile lies behind this in the log, and must not come before it.
                let is_there = self.log.sequence_of(stored.place.block().into()) == stored.sequence;
                if is_there && self.map.get(*lba) == Some(stored.place) {
                    let to = writer.fill(|id, builder, blocks| builder.push(id, blocks, *lba, *hash, bytes));
                    let Some(to) = to else {
                        is_full = true;
                        break;
                    };
                    self.map_block(*lba, to);
                    self.counters.blocks_moved.fetch_add(1, Ordering::Relaxed);
                }
                moved.next();
            }
            drop(writer);
            if is_full {
                self.wait_to_move()?;
            }
        }
        self.slots[slot as usize].end_deferral();
        self.counters.segments_cleaned.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Reads blocks and checks them; `false`: some are damaged.
    fn read_live(&self, io: &mut Io, live: &mut [Live]) -> bool {
        let size = self.block_size();
        let blocks: Vec<(usize, DeviceBlock)> = live.iter().map(|live| live.stored).enumerate().collect();
        let (runs, extents) = self.runs(&blocks, Io::extent_bytes_max(size));
        let mut is_whole = true;
        io.read_many(self.log.device(), &extents, |i, bytes| {
            for (j, live) in live[runs[i].clone()].iter_mut().enumerate() {
                let bytes = bytes.as_ref().map_or(&[][..], |bytes| &bytes[j * size..(j + 1) * size]);
                let hash = content_hash(bytes);
                match self.check_hash(live.lba, live.stored, hash) {
                    BlockCheck::Valid => live.content = Some((hash, bytes.into())),
                    BlockCheck::Moved => {}
                    BlockCheck::Damaged => is_whole = false,
                }
            }
        });
        is_whole
    }

    /// Leaves a segment as it is for a while: what is damaged must not look whole elsewhere, and what could not be read
    /// may be read later.
    fn defer_cleaning(&self, slot: u64, why: &str) {
        if self.slots[slot as usize].defer_cleaning(self.now()) {
            tracing::error!(volume = self.files.name(), slot, "a segment cannot be cleaned: {why}");
        }
    }

    fn wait_to_move(&self) -> io::Result<()> {
        loop {
            if let Some(error) = self.log.write_failure() {
                return Err(error);
            }
            if self.log.free_slots() == 0 {
                // All segments that were emptied wait for a sync, or for a checkpoint.
                let waiting = self.collect_emptied();
                let is_any_emptied = !self.awaiting_sync.lock().expect("no panic under the lock").is_empty();
                if !is_any_emptied && waiting > 0 {
                    self.try_checkpoint()?;
                    self.collect_emptied();
                }
                self.commit()?;
            }
            if self.log.wait_for_room_to_move(Instant::now() + ROOM_LOOK_AGAIN) {
                return Ok(());
            }
            if self.cleaner.ends.load(Ordering::Acquire) {
                return Err(io::Error::other("the volume ends"));
            }
        }
    }

    /// Writes the map down where nothing may be appended before.
    ///
    /// # Errors
    /// It cannot be written now, or the volume's files were removed or replaced: nothing can be appended.
    pub fn ready_to_append(&self) -> io::Result<()> {
        self.check_files_again()?;
        if self.checkpoint_first.load(Ordering::Acquire) { self.write_first_checkpoint() } else { Ok(()) }
    }

    #[cold]
    fn write_first_checkpoint(&self) -> io::Result<()> {
        self.checkpointing.lock().expect("no panic under the lock").attempt(|| {
            if self.checkpoint_first.load(Ordering::Acquire) {
                self.write_checkpoint()?;
                self.checkpoint_first.store(false, Ordering::Release);
            }
            Ok(())
        })
    }

    /// Writes the map down, unless that failed a moment ago.
    fn try_checkpoint(&self) -> io::Result<()> {
        self.checkpointing.lock().expect("no panic under the lock").attempt(|| self.write_checkpoint())
    }

    /// The error of the last attempt to write the map down, if it failed.
    pub fn map_failure(&self) -> Option<io::Error> {
        self.checkpointing.try_lock().ok()?.failure()
    }

    /// Whether the map is being written down, and the cleaner does nothing else.
    pub fn is_map_written_now(&self) -> bool {
        self.checkpointing.try_lock().is_err()
    }

    /// Makes everything durable, whether the map can be written down or not, and writes it down, unless it is as it was
    /// written down: then nothing is to be made durable either.
    pub fn write_last_checkpoint(&self) -> io::Result<()> {
        if self.is_untouched() && self.since_checkpoint() == 0 {
            return Ok(());
        }
        // The segment that is being filled, too, is in the map then, and no start has to read it.
        self.log.flush()?;
        self.write_checkpoint().or_else(|error| {
            // The next start finds in the log what the map lacks, as long as that is durable.
            self.commit()?;
            let text =
                format!("the map cannot be written down, but all that was written is durable: {error}");
            Err(io::Error::new(error.kind(), text))
        })
    }

    /// Writes the map down, so that a recovery need not read older summaries.
    pub fn write_checkpoint(&self) -> io::Result<()> {
        // What is in older segments is in the map: both change under the writer's lock.
        let (sequence, written) = {
            let writer = self.log.writer();
            (writer.next_sequence(), self.log.segments_written())
        };
        let header = checkpoint::CheckpointHeader {
            instance: self.log.instance(),
            block_size: self.config.block_size as u32,
            blocks: self.map.blocks(),
            sequence: sequence.saturating_sub(1),
            position: 0,
        };
        self.check_files()?;
        let prepared = checkpoint::prepare(&self.files.checkpoint(), &header, &*self.map, &mut |_| {})?;
        // A place that the map got meanwhile is durable before the file says so.
        self.commit()?;
        self.check_files()?;
        prepared.publish()?;
        self.checkpointed.store(sequence, Ordering::Release);
        self.replayed.store(0, Ordering::Release);
        self.written_before.store(written, Ordering::Release);
        self.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
