//! The flat map: an array of places.

use super::occupancy::Occupancy;
use super::zeros::zeros;
use super::{Map, MapError, Place, check, raw_of};
use crate::limits::FLAT_REGION_BLOCKS;
use crate::sync::atomic::{AtomicU32, Ordering};

/// An array with a place of four bytes for each logical block.
///
/// Memory: 4 bytes a block, and 2 bytes for each 1024 blocks, that is 1 GiB for 1 TiB in blocks of 4 KiB.
/// The array starts as zeros that the system does not back with RAM: a page of 4 KiB, the places of 1024
/// blocks, costs RAM once one of these is mapped, and from then on.
pub struct FlatMap {
    places: Box<[AtomicU32]>,
    occupancy: Occupancy,
}

impl FlatMap {
    /// A map of `blocks` blocks, none of which is mapped.
    ///
    /// # Errors
    /// If there are too many blocks or too little memory.
    pub fn new(blocks: u64) -> Result<Self, MapError> {
        check(blocks)?;
        Ok(Self { places: zeros(blocks)?, occupancy: Occupancy::new(blocks, FLAT_REGION_BLOCKS)? })
    }

    fn entry(&self, lba: u64) -> Option<&AtomicU32> {
        self.places.get(usize::try_from(lba).ok()?)
    }
}

impl Map for FlatMap {
    fn blocks(&self) -> u64 {
        self.places.len() as u64
    }

    fn get(&self, lba: u64) -> Option<Place> {
        Place::from_raw(self.entry(lba)?.load(Ordering::Acquire))
    }

    fn set(&self, lba: u64, place: Place) -> Option<Place> {
        let entry = self.entry(lba).expect("the block is one of the volume's");
        let mut old = entry.load(Ordering::Acquire);
        loop {
            if old == 0 {
                self.occupancy.add(lba);
            }
            match entry.compare_exchange(old, place.raw(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Place::from_raw(old),
                Err(now) => {
                    if old == 0 {
                        self.occupancy.subtract(lba);
                    }
                    old = now;
                }
            }
        }
    }

    fn remove(&self, lba: u64) -> Option<Place> {
        let entry = self.entry(lba)?;
        // No write without a change: a page that was never mapped stays without RAM.
        if entry.load(Ordering::Acquire) == 0 {
            return None;
        }
        let old = Place::from_raw(entry.swap(0, Ordering::AcqRel));
        if old.is_some() {
            self.occupancy.subtract(lba);
        }
        old
    }

    fn replace(&self, lba: u64, from: Place, to: Place) -> bool {
        self.entry(lba).is_some_and(|entry| {
            entry.compare_exchange(from.raw(), to.raw(), Ordering::AcqRel, Ordering::Acquire).is_ok()
        })
    }

    fn next_mapped(&self, lba: u64) -> Option<(u64, Place)> {
        let mut from = lba;
        while let Some(range) = self.occupancy.next(from) {
            from = range.end;
            for (lba, entry) in range.clone().zip(&self.places[range.start as usize..range.end as usize]) {
                if let Some(place) = Place::from_raw(entry.load(Ordering::Acquire)) {
                    return Some((lba, place));
                }
            }
        }
        None
    }

    fn len(&self) -> u64 {
        self.occupancy.total()
    }

    fn bytes_allocated(&self) -> u64 {
        size_of_val(&*self.places) as u64 + self.occupancy.bytes_allocated()
    }

    fn resize(&mut self, blocks: u64) -> Result<(), MapError> {
        let mut resized = Self::new(blocks)?;
        let mut page = [None; FLAT_REGION_BLOCKS as usize];
        let mut from = 0;
        while let Some(range) = self.occupancy.next(from).filter(|range| range.start < blocks) {
            let page = &mut page[..(range.end.min(blocks) - range.start) as usize];
            self.copy_to(range.start, page);
            resized.restore(range.start, page);
            from = range.end;
        }
        *self = resized;
        Ok(())
    }

    fn copy_to(&self, first: u64, places: &mut [Option<Place>]) {
        let entries = usize::try_from(first).ok().and_then(|first| self.places.get(first..)).unwrap_or(&[]);
        let (within, beyond) = places.split_at_mut(places.len().min(entries.len()));
        for (place, entry) in within.iter_mut().zip(entries) {
            *place = Place::from_raw(entry.load(Ordering::Acquire));
        }
        beyond.fill(None);
    }

    fn restore(&mut self, first: u64, places: &[Option<Place>]) {
        // Region by region, so that each counter is raised once.
        let (mut first, mut places) = (first, places);
        while !places.is_empty() {
            let in_region = (FLAT_REGION_BLOCKS - first % FLAT_REGION_BLOCKS).min(places.len() as u64);
            let (region, rest) = places.split_at(in_region as usize);
            let mut added = 0;
            for (lba, place) in (first..).zip(region).filter(|(_, place)| place.is_some()) {
                let entry = self.places[lba as usize].get_mut();
                added += u16::from(*entry == 0);
                *entry = raw_of(*place);
            }
            if added > 0 {
                self.occupancy.add_many(first, added);
            }
            (first, places) = (first + in_region, rest);
        }
    }
}
