//! Writing: to the end of the log, then into the map, both in the same order.

use crate::framing::{SegmentBuilder, content_hash};
use crate::limits::{
    BLOCKS_LOCKED_MAX, ROOM_LOOK_AGAIN, ROOM_WAIT_MAX, ROOM_WAIT_WITHOUT_MAP_MAX, TRIM_SEGMENTS_KEPT,
    ZEROES_LOCKED_MAX,
};
use crate::map::mapped;
use crate::running::{Running, SlotUse};
use granary_log::{Io, SegmentId};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The wait of a change for room, and its end.
#[derive(Clone, Copy, Debug)]
pub struct WaitPolicy<'a> {
    /// The wait for each segment that the change needs.
    most: Duration,
    is_long: bool,
    given_up: Option<&'a AtomicBool>,
    interrupted: Option<&'a AtomicBool>,
}

impl WaitPolicy<'_> {
    /// Waits until it is clear that there is no room.
    pub const DEFAULT: Self = Self::fail_after(ROOM_WAIT_MAX);

    /// Waits `most` for each segment that the change needs, not counting checkpoints. Then it fails (ENOSPC).
    pub const fn fail_after(most: Duration) -> Self {
        Self { most, is_long: true, given_up: None, interrupted: None }
    }

    /// Waits `most` for each segment that the change needs. Then it fails with `WouldBlock`, and may be made in part.
    pub const fn non_blocking_after(most: Duration) -> Self {
        Self { most, is_long: false, given_up: None, interrupted: None }
    }

    /// The change fails (ECANCELED) once the flag is set. A part of it may be made before that, but none after.
    pub const fn cancelled_by<'b>(self, given_up: &'b AtomicBool) -> WaitPolicy<'b>
    where
        Self: 'b,
    {
        WaitPolicy { given_up: Some(given_up), ..self }
    }

    /// Once the flag is set, a change that has to wait fails with `WouldBlock`, and may be made in part.
    pub const fn interruptible_by<'b>(self, interrupted: &'b AtomicBool) -> WaitPolicy<'b>
    where
        Self: 'b,
    {
        WaitPolicy { interrupted: Some(interrupted), ..self }
    }

    /// # Errors
    /// The change was given up.
    fn check(&self) -> io::Result<()> {
        match self.given_up.is_some_and(|given_up| given_up.load(Ordering::Acquire)) {
            true => Err(rustix::io::Errno::CANCELED.into()),
            false => Ok(()),
        }
    }

    /// Like [`check`](Self::check), for a waiting change.
    ///
    /// # Errors
    /// It was given up, or must be retried.
    fn check_waiting(&self) -> io::Result<()> {
        self.check()?;
        match self.interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Acquire)) {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => Ok(()),
        }
    }
}

impl Running {
    /// Writes bytes anywhere. Partly written blocks are read, and written completely.
    pub fn write(&self, io: &mut Io, offset: u64, data: &[u8], policy: WaitPolicy<'_>) -> io::Result<()> {
        self.write_all(io, offset, data, policy)?;
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        self.counters.bytes_written.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn write_all(
        &self,
        io: &mut Io,
        mut offset: u64,
        mut data: &[u8],
        policy: WaitPolicy<'_>,
    ) -> io::Result<()> {
        let size = self.block_size() as u64;
        while !data.is_empty() {
            let (lba, within) = (offset / size, (offset % size) as usize);
            let len = if within == 0 && data.len() >= self.block_size() {
                let len = data.len() - data.len() % self.block_size();
                self.write_blocks(lba, &data[..len], policy)?;
                len
            } else {
                let len = data.len().min(self.block_size() - within);
                self.write_part(io, lba, within, &data[..len], policy)?;
                len
            };
            (offset, data) = (offset + len as u64, &data[len..]);
        }
        Ok(())
    }

    /// Writes whole blocks.
    fn write_blocks(&self, lba: u64, data: &[u8], policy: WaitPolicy<'_>) -> io::Result<()> {
        let size = self.block_size();
        for (first, data) in (lba..).step_by(BLOCKS_LOCKED_MAX).zip(data.chunks(BLOCKS_LOCKED_MAX * size)) {
            let mut hashes = [0; BLOCKS_LOCKED_MAX];
            for (hash, block) in hashes.iter_mut().zip(data.chunks_exact(size)) {
                *hash = content_hash(block);
            }
            let mut blocks = (first..).zip(data.chunks_exact(size)).zip(hashes);
            let mut next = blocks.next();
            loop {
                let mut writer = self.log.writer();
                policy.check()?;
                while let Some(((lba, block), hash)) = next {
                    let Some(at) =
                        writer.fill(|id, builder, blocks| builder.push(id, blocks, lba, hash, block))
                    else {
                        break;
                    };
                    self.map_block(lba, at);
                    next = blocks.next();
                }
                drop(writer);
                if next.is_none() {
                    break;
                }
                self.wait_for_room(policy)?;
            }
        }
        Ok(())
    }

    /// Writes a part of a block. If the block changes after the rest of it was read, it is read again.
    fn write_part(
        &self,
        io: &mut Io,
        lba: u64,
        within: usize,
        data: &[u8],
        policy: WaitPolicy<'_>,
    ) -> io::Result<()> {
        let mut block = vec![0; self.block_size()];
        loop {
            let before = self.version(lba);
            match before {
                Some(_) => self.read_block(io, lba, &mut block)?,
                // Zeros, and not a new read: if the block was written and trimmed meanwhile, the version is the same.
                None => block.fill(0),
            }
            block[within..within + data.len()].copy_from_slice(data);
            let hash = content_hash(&block);
            let mut writer = self.log.writer();
            policy.check()?;
            if self.version(lba) != before {
                continue;
            }
            let at = writer.fill(|id, builder, blocks| builder.push(id, blocks, lba, hash, &block));
            if let Some(at) = at {
                self.map_block(lba, at);
                return Ok(());
            }
            drop(writer);
            self.wait_for_room(policy)?;
        }
    }

    /// The place and the segment of a block, which change with every write of it.
    fn version(&self, lba: u64) -> Option<(u32, u64)> {
        loop {
            let place = self.map.get(lba)?;
            let sequence = self.log.sequence_of(place.block().into());
            // Otherwise the sequence number may be that of a later segment in the slot.
            if self.map.get(lba) == Some(place) {
                return Some((place.block(), sequence));
            }
        }
    }

    /// Makes bytes zero. Whole blocks take no space from then on.
    pub fn write_zeroes(&self, io: &mut Io, offset: u64, len: u64, policy: WaitPolicy<'_>) -> io::Result<()> {
        let size = self.config.block_size;
        let (end, zeroes) = (offset + len, vec![0; self.block_size()]);
        let (first, behind) = (offset.div_ceil(size), end / size);
        if first > behind {
            return self.write_zeroed_part(io, offset..end, &zeroes, policy);
        }
        self.write_zeroed_part(io, offset..first * size, &zeroes, policy)?;
        self.unmap(first, behind - first, policy)?;
        self.write_zeroed_part(io, behind * size..end, &zeroes, policy)
    }

    /// Writes zeroes to a part of a block, unless that is zero already.
    fn write_zeroed_part(
        &self,
        io: &mut Io,
        Range { start: offset, end }: Range<u64>,
        zeroes: &[u8],
        policy: WaitPolicy<'_>,
    ) -> io::Result<()> {
        let size = self.config.block_size;
        if offset == end || self.map.get(offset / size).is_none() {
            return Ok(());
        }
        self.write_part(
            io,
            offset / size,
            (offset % size) as usize,
            &zeroes[..(end - offset) as usize],
            policy,
        )
    }

    /// Gives back the space of whole blocks within a range of bytes; the rest of the range is left as it is.
    pub fn trim(&self, offset: u64, len: u64, policy: WaitPolicy<'_>) -> io::Result<()> {
        let size = self.config.block_size;
        let (first, behind) = (offset.div_ceil(size), (offset + len) / size);
        self.unmap(first, behind.saturating_sub(first), policy)
    }

    /// Unmaps blocks: they are zero.
    fn unmap(&self, mut lba: u64, count: u64, policy: WaitPolicy<'_>) -> io::Result<()> {
        let end = lba + count;
        // Unmapped blocks need no entry.
        while let Some((first, _)) = mapped(&*self.map, lba..end).next() {
            let behind = end.min(first + ZEROES_LOCKED_MAX);
            let mut writer = self.log.writer();
            policy.check()?;
            let push = |id: &SegmentId, builder: &mut SegmentBuilder, _: &mut [u8]| {
                builder.push_zeroes(id, first, behind - first)?;
                Some(id.first_block)
            };
            let mut block = writer.fill(push);
            if block.is_none() && self.has_room_to_unmap() {
                writer = writer.for_moving();
                block = writer.fill(push);
            }
            let Some(block) = block else {
                drop(writer);
                self.wait_for_room_unless(policy, || self.has_room_to_unmap())?;
                continue;
            };
            let slot = self.slot_of_block(block);
            slot.set_usage(SlotUse::Used);
            let unmapped = mapped(&*self.map, first..behind).map(|(lba, _)| self.unmap_block(lba)).count();
            self.counters.blocks_trimmed.fetch_add(unmapped as u64, Ordering::Relaxed);
            lba = behind;
        }
        Ok(())
    }

    /// Whether a change that frees space may open a segment. It needs hardly any room, and may take a reserved segment
    /// when no other is left and cleaning cannot go on.
    fn has_room_to_unmap(&self) -> bool {
        self.log.free_slots() > TRIM_SEGMENTS_KEPT && self.log.has_room_to_move()
    }

    /// Waits until another segment can be opened.
    fn wait_for_room(&self, policy: WaitPolicy<'_>) -> io::Result<()> {
        self.wait_for_room_unless(policy, || false)
    }

    /// Like [`wait_for_room`](Self::wait_for_room), but also ends once `is_enough` holds.
    fn wait_for_room_unless(&self, policy: WaitPolicy<'_>, is_enough: impl Fn() -> bool) -> io::Result<()> {
        let WaitPolicy { most, is_long, .. } = policy;
        // After a full wait in vain, the next writes wait only briefly each.
        let is_hopeless = is_long && self.no_room.load(Ordering::Relaxed);
        let mut left = if is_hopeless { ROOM_LOOK_AGAIN } else { most };
        let note = || self.counters.waits.fetch_add(1, Ordering::Relaxed);
        // A change that does not block may be retried, so it is counted once it finds room.
        if is_long {
            note();
        }
        let mut left_without_map = ROOM_WAIT_WITHOUT_MAP_MAX;
        let mut looked = Instant::now();
        loop {
            policy.check_waiting()?;
            self.cleaner.wake();
            // Nothing is cleaned while files are removed or replaced.
            self.check_files_again()?;
            if let Some(error) = self.log.write_failure() {
                return Err(error);
            }
            if self.log.wait_for_room(looked + left.min(ROOM_LOOK_AGAIN)) || is_enough() {
                self.no_room.store(false, Ordering::Relaxed);
                if !is_long {
                    note();
                }
                return Ok(());
            }
            // After a failed sync no slot becomes free any more.
            if let Some(error) = self.log.sync_failure() {
                return Err(error);
            }
            let now = Instant::now();
            // Nothing is emptied during a checkpoint: whether there is room shows only after it.
            if !is_long || !self.is_map_written_now() {
                left = left.saturating_sub(now - looked);
            }
            let map_failure = self.map_failure();
            if is_long && map_failure.is_some() {
                left_without_map = left_without_map.saturating_sub(now - looked);
                left = left.min(left_without_map);
            }
            looked = now;
            if left.is_zero() {
                if !is_long {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                self.no_room.store(true, Ordering::Relaxed);
                return Err(map_failure.unwrap_or_else(|| rustix::io::Errno::NOSPC.into()));
            }
        }
    }
}
