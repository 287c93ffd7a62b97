//! RIPQ (Tang et al., FAST 2015) with the priorities of a segmented LRU, as Flashield's authors compare it.
//!
//! Flash is a queue of blocks in sections, one section for each insertion point. Every object is written, first to the
//! lowest section. A read moves an object one section up: at once if it still waits in DRAM, else only by name, to a
//! *virtual* block there; the bytes follow when their block is freed. Full sections push blocks down; the last block of
//! all is freed, and its objects that have moved up are written again.

use super::lru::{DRAM_INDEX_BYTES, Lru};
use super::{Budget, Clock, Model, Object, Place};
use std::collections::VecDeque;

/// Insertion points.
const SECTIONS: usize = 8;

/// DRAM for each object, according to its authors.
const INDEX_BYTES: u64 = 22;

const NO_BLOCK: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct RipqEntry {
    /// The block that holds the bytes; `NO_BLOCK` is absent.
    physical: u32,
    /// The block whose priority the object has.
    named: u32,
    bytes: u32,
}

const ABSENT: RipqEntry = RipqEntry { physical: NO_BLOCK, named: NO_BLOCK, bytes: 0 };

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Physical,
    Virtual,
}

struct Block {
    kind: BlockKind,
    section: usize,
    /// Bytes of the objects that have this block's priority.
    named_bytes: u64,
    /// Bytes of the block on flash.
    bytes: u64,
    /// Keys of the objects whose bytes were put here; some may have left.
    keys: Vec<u32>,
}

/// The cache.
pub struct Ripq {
    dram: Lru,
    capacity: u64,
    block_bytes: u64,
    entries: Vec<RipqEntry>,
    blocks: Vec<Block>,
    unused: Vec<u32>,
    /// Full blocks of each section, the newest first.
    sections: [VecDeque<u32>; SECTIONS],
    section_bytes: [u64; SECTIONS],
    /// The open blocks, physical and virtual.
    open: [[u32; 2]; SECTIONS],
    bytes_on_flash: u64,
    bytes_written: u64,
    objects: u64,
}

impl Ripq {
    /// A cache for keys `0..keys`. The DRAM beside the open blocks holds the recently used objects.
    pub fn new(budget: &Budget, keys: u32) -> Self {
        let mut ripq = Self {
            dram: Lru::new(budget.dram_beside(SECTIONS as u64), keys),
            capacity: budget.flash_bytes,
            block_bytes: budget.segment_bytes,
            entries: vec![ABSENT; keys as usize],
            blocks: Vec::new(),
            unused: Vec::new(),
            sections: Default::default(),
            section_bytes: [0; SECTIONS],
            open: [[NO_BLOCK; 2]; SECTIONS],
            bytes_on_flash: 0,
            bytes_written: 0,
            objects: 0,
        };
        for section in 0..SECTIONS {
            ripq.open[section] =
                [BlockKind::Physical, BlockKind::Virtual].map(|kind| ripq.block(kind, section));
        }
        ripq
    }

    fn block(&mut self, kind: BlockKind, section: usize) -> u32 {
        let block = Block { kind, section, named_bytes: 0, bytes: 0, keys: Vec::new() };
        match self.unused.pop() {
            Some(number) => {
                self.blocks[number as usize] = block;
                number
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() as u32 - 1
            }
        }
    }

    fn is_open(&self, block: u32) -> bool {
        self.open[self.blocks[block as usize].section].contains(&block)
    }

    /// Removes an object from the block whose priority it has.
    fn unname(&mut self, key: u32) {
        let RipqEntry { named, bytes, .. } = self.entries[key as usize];
        let open = self.is_open(named);
        let block = &mut self.blocks[named as usize];
        block.named_bytes -= u64::from(bytes);
        if !open {
            self.section_bytes[block.section] -= u64::from(bytes);
        }
    }

    /// Puts an object's bytes into a section's open block.
    fn put(&mut self, key: u32, bytes: u32, section: usize) {
        let open = self.open[section][0];
        if self.blocks[open as usize].bytes + u64::from(bytes) > self.block_bytes
            && self.blocks[open as usize].bytes > 0
        {
            self.close(section, BlockKind::Physical);
        }
        let open = self.open[section][0];
        let block = &mut self.blocks[open as usize];
        block.keys.push(key);
        block.bytes += u64::from(bytes);
        block.named_bytes += u64::from(bytes);
        self.entries[key as usize] = RipqEntry { physical: open, named: open, bytes };
        self.objects += 1;
    }

    /// Gives an object on flash the priority of a section.
    fn name(&mut self, key: u32, section: usize) {
        self.unname(key);
        let bytes = u64::from(self.entries[key as usize].bytes);
        if self.blocks[self.open[section][1] as usize].named_bytes + bytes > self.block_bytes {
            self.close(section, BlockKind::Virtual);
        }
        let open = self.open[section][1];
        self.blocks[open as usize].named_bytes += bytes;
        self.entries[key as usize].named = open;
    }

    /// Closes a section's open block, and opens another.
    fn close(&mut self, section: usize, kind: BlockKind) {
        // The two kinds are closed together, so that later blocks in the queue are newer.
        let physical = self.open[section][0];
        let mut closed = vec![self.open[section][1]];
        self.open[section][1] = self.block(BlockKind::Virtual, section);
        if kind == BlockKind::Physical {
            self.bytes_written += self.blocks[physical as usize].bytes;
            self.bytes_on_flash += self.blocks[physical as usize].bytes;
            self.open[section][0] = self.block(BlockKind::Physical, section);
            closed.push(physical);
        }
        for block in closed {
            self.section_bytes[section] += self.blocks[block as usize].named_bytes;
            self.sections[section].push_front(block);
        }
        self.balance();
    }

    /// Pushes blocks down until no section exceeds its share of the bytes.
    fn balance(&mut self) {
        let most = self.section_bytes.iter().sum::<u64>() / SECTIONS as u64 + self.block_bytes;
        for section in 0..SECTIONS - 1 {
            while self.section_bytes[section] > most {
                let block = self.sections[section].pop_back().expect("a section with bytes has blocks");
                let bytes = self.blocks[block as usize].named_bytes;
                self.section_bytes[section] -= bytes;
                self.section_bytes[section + 1] += bytes;
                self.blocks[block as usize].section = section + 1;
                self.sections[section + 1].push_front(block);
            }
        }
    }

    /// Frees the last blocks until flash is within its capacity. Rewriting may close blocks itself: therefore this runs
    /// after a request and not within it.
    fn free(&mut self) {
        while self.bytes_on_flash > self.capacity {
            let section =
                self.sections.iter().rposition(|section| !section.is_empty()).expect("there are blocks");
            let number = self.sections[section].pop_back().expect("not empty");
            let block = &mut self.blocks[number as usize];
            if block.kind == BlockKind::Virtual {
                assert_eq!(
                    block.named_bytes, 0,
                    "bytes are freed before the names that were given them later"
                );
                self.unused.push(number);
                continue;
            }
            self.bytes_on_flash -= block.bytes;
            self.section_bytes[section] -= block.named_bytes;
            let keys = std::mem::take(&mut block.keys);
            let mut again = Vec::new();
            for key in keys {
                let entry = self.entries[key as usize];
                if entry.physical != number {
                    continue;
                }
                if entry.named != number {
                    self.unname(key);
                    again.push((key, entry.bytes, self.blocks[entry.named as usize].section));
                }
                self.entries[key as usize] = ABSENT;
                self.objects -= 1;
            }
            self.unused.push(number);
            for (key, bytes, section) in again {
                self.put(key, bytes, section);
            }
        }
    }

    fn on_flash(&self, key: u32) -> bool {
        self.entries[key as usize].physical != NO_BLOCK
    }

    fn forget(&mut self, key: u32) {
        if !self.on_flash(key) {
            return;
        }
        let RipqEntry { physical, bytes, .. } = self.entries[key as usize];
        self.unname(key);
        self.entries[key as usize] = ABSENT;
        self.objects -= 1;
        if self.is_open(physical) {
            // It leaves DRAM at once; its bytes on flash are freed with their block.
            let block = &mut self.blocks[physical as usize];
            block.bytes -= u64::from(bytes);
            let at = block.keys.iter().rposition(|k| *k == key).expect("its bytes are in this block");
            block.keys.swap_remove(at);
        }
    }
}

impl Model for Ripq {
    fn place(&self, key: u32) -> Place {
        if self.dram.contains(key) {
            Place::Dram
        } else if !self.on_flash(key) {
            Place::Absent
        } else if self.is_open(self.entries[key as usize].physical) {
            Place::Dram
        } else {
            Place::Flash
        }
    }

    fn read(&mut self, object: &Object, _: Clock) -> Place {
        let place = self.place(object.key);
        if place == Place::Absent {
            return place;
        }
        self.dram.put(object.key, object.bytes, |_, _| ());
        if self.on_flash(object.key) {
            let entry = self.entries[object.key as usize];
            let above = self.blocks[entry.named as usize].section.saturating_sub(1);
            if self.is_open(entry.physical) {
                self.forget(object.key);
                self.put(object.key, object.bytes, above);
            } else {
                self.name(object.key, above);
            }
            self.free();
        }
        place
    }

    fn store(&mut self, object: &Object, _: Clock) {
        self.remove(object.key);
        self.dram.put(object.key, object.bytes, |_, _| ());
        if u64::from(object.bytes) <= self.capacity {
            self.put(object.key, object.bytes, SECTIONS - 1);
            self.free();
        }
    }

    fn remove(&mut self, key: u32) {
        self.dram.take(key);
        self.forget(key);
    }

    fn flash_bytes_written(&self) -> u64 {
        self.bytes_written
    }

    fn dram_bytes(&self) -> u64 {
        let open = self.open.iter().map(|[physical, _]| self.blocks[*physical as usize].bytes);
        self.dram.used() + open.sum::<u64>()
    }

    fn index_bytes(&self) -> u64 {
        self.dram.objects() * DRAM_INDEX_BYTES + self.objects * INDEX_BYTES
    }

    fn validate(&self) {
        self.dram.check();
        let mut named = vec![0; self.blocks.len()];
        let mut objects = 0;
        for (key, entry) in self.entries.iter().enumerate().filter(|(_, e)| e.physical != NO_BLOCK) {
            named[entry.named as usize] += u64::from(entry.bytes);
            assert!(self.blocks[entry.physical as usize].keys.contains(&(key as u32)));
            let sections = [entry.named, entry.physical].map(|block| self.blocks[block as usize].section);
            assert!(sections[0] <= sections[1], "an object is not above its name");
            objects += 1;
        }
        assert_eq!(objects, self.objects);
        let mut on_flash = 0;
        for (section, queue) in self.sections.iter().enumerate() {
            let sum: u64 = queue.iter().map(|block| named[*block as usize]).sum();
            assert_eq!(sum, self.section_bytes[section]);
            for number in queue {
                let block = &self.blocks[*number as usize];
                assert_eq!((block.section, block.named_bytes), (section, named[*number as usize]));
                on_flash += block.bytes;
            }
        }
        assert_eq!(on_flash, self.bytes_on_flash);
        assert!(on_flash <= self.capacity);
    }
}
