//! Reading: where a block lies, and whether the bytes read are its content.

use crate::framing::{checksum, content_hash};
use crate::limits::{DAMAGE_TOLD, READ_TRIES_MAX};
use crate::map::{Place, mapped};
use crate::running::{Running, damaged};
use fixedbitset::FixedBitSet;
use granary_log::{Extent, Io, Location};
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The place of a logical block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// It was in RAM, or is zero, and has been copied.
    Copied,
    /// It lies on the device.
    OnDevice(DeviceBlock),
}

/// A block on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceBlock {
    pub(crate) place: Place,
    pub(crate) sequence: u64,
}

/// The result of checking bytes read from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockCheck {
    /// The content of the logical block.
    Valid,
    /// Other content, as the logical block was moved meanwhile. Look it up again.
    Moved,
    /// The block is damaged.
    Damaged,
}

impl Running {
    /// Finds a logical block, and copies it if it is not on the device.
    pub fn find(&self, lba: u64, out: &mut [u8]) -> Located {
        loop {
            let Some(place) = self.map.get(lba) else {
                out.fill(0);
                return Located::Copied;
            };
            match self.log.locate(place.block().into()) {
                Location::Device { sequence } => {
                    let (slot, index) = self.place_in_slot(place);
                    self.checksums.prefetch(slot, index);
                    return Located::OnDevice(DeviceBlock { place, sequence });
                }
                Location::WriteBuffer(segment) => {
                    let segment = segment.read();
                    // The slot may have been reused since the lookup. As long as the map points to the block, its slot
                    // is not freed.
                    if self.map.get(lba) == Some(place)
                        && self.log.sequence_of(place.block().into()) == segment.sequence()
                    {
                        out.copy_from_slice(&segment.bytes_from(place.block().into())[..out.len()]);
                        return Located::Copied;
                    }
                }
            }
        }
    }

    /// The bytes of the device to read for a block.
    pub fn extent(&self, stored: DeviceBlock) -> Extent {
        let offset = self.log.geometry().offset(stored.place.block().into());
        Extent { offset, len: self.block_size() }
    }

    /// Whether bytes read from the device are the content of a logical block.
    pub fn check(&self, lba: u64, stored: DeviceBlock, bytes: &[u8]) -> BlockCheck {
        self.check_hash(lba, stored, content_hash(bytes))
    }

    /// Like [`check`](Self::check), for bytes with a known hash.
    pub fn check_hash(&self, lba: u64, stored: DeviceBlock, hash: u64) -> BlockCheck {
        let DeviceBlock { place, sequence } = stored;
        let sum = checksum(self.log.instance(), sequence, lba, hash) as u32;
        if self.checksum(stored) == Some(sum) {
            return BlockCheck::Valid;
        }
        let current =
            self.map.get(lba) == Some(place) && self.log.sequence_of(place.block().into()) == sequence;
        if !current {
            return BlockCheck::Moved;
        }
        // A bit flipped while reading the footer may have spoilt the cached checksums: read them again.
        self.checksums.invalidate(self.log.geometry().slot_of_block(place.block().into()) as u32);
        if self.checksum(stored) == Some(sum) { BlockCheck::Valid } else { BlockCheck::Damaged }
    }

    /// The slot that a block lies in, and which of its blocks it is.
    fn place_in_slot(&self, place: Place) -> (u32, u32) {
        let (geometry, block) = (self.log.geometry(), u64::from(place.block()));
        let slot = geometry.slot_of_block(block);
        (slot as u32, (block - geometry.first_block_of_slot(slot)) as u32)
    }

    /// The checksum that a block on the device should have; `None`: its segment is no longer there.
    fn checksum(&self, DeviceBlock { place, sequence }: DeviceBlock) -> Option<u32> {
        let geometry = self.log.geometry();
        let (slot, index) = self.place_in_slot(place);
        let load = || {
            self.counters.checksum_loads.fetch_add(1, Ordering::Relaxed);
            let summary =
                self.summary_of(slot.into()).filter(|summary| summary.sequence == sequence).ok_or(())?;
            let mut sums = vec![0; geometry.blocks_per_segment() as usize].into_boxed_slice();
            // Where reads failed, what is found is right, but some entries may be missing.
            let mut is_known = summary.is_read;
            for (_, block, checksum) in summary.blocks() {
                let at = (block - summary.first_block) as usize;
                sums[at] = checksum as u32;
                is_known |= at == index as usize;
            }
            // That an entry was not found must not be cached: the next read may find it.
            if !is_known {
                return Err(());
            }
            Ok::<_, ()>(sums)
        };
        self.checksums.get_or_load(slot, sequence, index, load).unwrap_or(None)
    }

    /// Carries out [`Volume::runs`](crate::Volume::runs).
    pub fn runs(
        &self,
        blocks: &[(usize, DeviceBlock)],
        bytes_max: usize,
    ) -> (Vec<Range<usize>>, Vec<Extent>) {
        let size = self.block_size();
        let blocks_max = (bytes_max / size).max(1);
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (i, (number, stored)) in blocks.iter().enumerate() {
            let follows = i.checked_sub(1).is_some_and(|before| {
                let (before, there) = blocks[before];
                before + 1 == *number && there.place.block() + 1 == stored.place.block()
            });
            match runs.last_mut().filter(|run| follows && run.len() < blocks_max) {
                Some(run) => run.end += 1,
                None => runs.push(i..i + 1),
            }
        }
        let extent = |run: &Range<usize>| {
            let first = self.extent(blocks[run.start].1);
            Extent { len: run.len() * size, ..first }
        };
        let extents = runs.iter().map(extent).collect();
        (runs, extents)
    }

    /// Reads a whole block.
    pub fn read_block(&self, io: &mut Io, lba: u64, out: &mut [u8]) -> io::Result<()> {
        for _ in 0..READ_TRIES_MAX {
            let Located::OnDevice(stored) = self.find(lba, out) else { return Ok(()) };
            let mut result = Ok(());
            let mut read = false;
            io.read_many(self.log.device(), &[self.extent(stored)], |_, bytes| match bytes {
                Ok(bytes) => {
                    out.copy_from_slice(bytes);
                    read = true;
                }
                Err(error) => result = Err(error),
            });
            // A block that was moved meanwhile need not be readable at its old place.
            let verdict = if read { self.check(lba, stored, out) } else { self.check(lba, stored, &[]) };
            match verdict {
                BlockCheck::Valid => return Ok(()),
                BlockCheck::Moved => {}
                BlockCheck::Damaged => {
                    self.counters.damaged.fetch_add(1, Ordering::Relaxed);
                    result?;
                    self.tell_damage(lba);
                    return Err(damaged());
                }
            }
        }
        Err(damaged())
    }

    /// Logs a read of a damaged block: one line in [`DAMAGE_TOLD`], with the number of such reads so far.
    fn tell_damage(&self, lba: u64) {
        // 0: none was told.
        let (now, told) = (self.now().max(1), self.damage_told.load(Ordering::Relaxed));
        let is_due = told == 0 || now >= told + DAMAGE_TOLD.as_millis() as u64;
        let exchange =
            |told| self.damage_told.compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed);
        if is_due && exchange(told).is_ok() {
            let (volume, damaged) = (self.files.name(), self.counters.damaged.load(Ordering::Relaxed));
            tracing::error!(volume, lba, damaged, "a block is damaged on the device");
        }
    }

    /// Carries out [`Volume::check_map`](crate::Volume::check_map).
    pub fn check_map(&self, progress: &mut dyn FnMut(u64)) -> u64 {
        let geometry = self.log.geometry();
        let mut confirmed = FixedBitSet::with_capacity(self.map.blocks() as usize);
        for slot in 0..geometry.segments() {
            let summary = self.summary_of(slot);
            for (lba, block, _) in summary.iter().flat_map(|summary| summary.blocks()) {
                let points_here = self.map.get(lba).is_some_and(|place| u64::from(place.block()) == block);
                if points_here {
                    confirmed.insert(lba as usize);
                }
            }
            progress(slot);
        }
        let mut wrong = 0;
        for (lba, _) in mapped(&*self.map, 0..self.map.blocks()) {
            // Blocks that were moved meanwhile are checked once more.
            wrong += u64::from(!confirmed.contains(lba as usize) && !self.is_confirmed(lba));
        }
        wrong
    }

    /// Whether the segment that the map points to has an entry of the logical block.
    fn is_confirmed(&self, lba: u64) -> bool {
        let Some(place) = self.map.get(lba) else { return true };
        let block = u64::from(place.block());
        if matches!(self.log.locate(block), Location::WriteBuffer(_)) {
            return true;
        }
        let slot = self.log.geometry().slot_of_block(block);
        self.summary_of(slot)
            .is_some_and(|summary| summary.blocks().any(|(other, at, _)| (other, at) == (lba, block)))
    }

    /// Reads bytes anywhere.
    pub fn read(&self, io: &mut Io, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let size = self.block_size();
        let within = (offset % size as u64) as usize;
        let mut lba = offset / size as u64;
        let (head, rest) = out.split_at_mut(if within == 0 { 0 } else { out.len().min(size - within) });
        let mut block = Vec::new();
        if !head.is_empty() {
            block.resize(size, 0);
            self.read_block(io, lba, &mut block)?;
            head.copy_from_slice(&block[within..within + head.len()]);
            lba += 1;
        }
        let whole = rest.len() - rest.len() % size;
        let (whole, tail) = rest.split_at_mut(whole);
        self.read_blocks(io, lba, whole)?;
        if !tail.is_empty() {
            block.resize(size, 0);
            self.read_block(io, lba + (whole.len() / size) as u64, &mut block)?;
            tail.copy_from_slice(&block[..tail.len()]);
        }
        Ok(())
    }

    /// Reads whole blocks, neighbours on the device in one read.
    fn read_blocks(&self, io: &mut Io, first: u64, out: &mut [u8]) -> io::Result<()> {
        let size = self.block_size();
        let mut blocks: Vec<(usize, DeviceBlock)> = Vec::new();
        for (i, out) in out.chunks_exact_mut(size).enumerate() {
            if let Located::OnDevice(stored) = self.find(first + i as u64, out) {
                blocks.push((i, stored));
            }
        }
        if blocks.is_empty() {
            return Ok(());
        }
        let (runs, extents) = self.runs(&blocks, Io::extent_bytes_max(size));
        let mut again = Vec::new();
        io.read_many(self.log.device(), &extents, |i, bytes| {
            for (j, (at, stored)) in blocks[runs[i].clone()].iter().enumerate() {
                let bytes = bytes.as_ref().ok().map(|bytes| &bytes[j * size..(j + 1) * size]);
                match bytes {
                    Some(bytes) if self.check(first + *at as u64, *stored, bytes) == BlockCheck::Valid => {
                        out[at * size..(at + 1) * size].copy_from_slice(bytes);
                    }
                    _ => again.push(*at),
                }
            }
        });
        again
            .into_iter()
            .try_for_each(|at| self.read_block(io, first + at as u64, &mut out[at * size..(at + 1) * size]))
    }
}
