//! A RAM tier in front of flash, divided between entries and blocks: by the policy in production
//! ([`granary_cache::division`]), or at a fixed ratio.

use super::Lru;
use granary_cache::division::{Division, Misses};
use granary_cache::limits::{
    BLOCK_VISIT_DIVISOR, BLOCK_VISIT_REPLACED_MIN, DIVISION_WINDOW_DIVISOR, FIRST_BLOCKS_DIVISOR,
    GHOST_WINDOW_DIVISOR, LEAST_BLOCKS_DIVISOR,
};
use granary_cache::{Reinsertion, found_marks_cleared};

/// Sizes of the tier, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct DividedOptions {
    /// All RAM of the tier.
    pub memory_bytes: u64,
    /// An entry in RAM.
    pub entry_bytes: u32,
    /// A block.
    pub block_bytes: u32,
    /// Entries in a block: those of consecutive keys.
    pub keys_per_block: u32,
    /// Number of keys, from 0.
    pub keys: u32,
    /// Percent of RAM for blocks; `None`: as the policy measures.
    pub blocks_percent: Option<u64>,
}

/// Where a key was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundIn {
    /// Among the entries in RAM.
    Entries,
    /// In a block in RAM.
    Blocks,
    /// On flash: a read.
    Flash,
}

/// The tier. All keys are on flash, and nothing is put.
pub struct Divided {
    options: DividedOptions,
    entries: Lru,
    blocks: Lru,
    entry_ghosts: Lru,
    block_ghosts: Lru,
    /// By key: whether it was found on flash lately.
    is_found: Vec<bool>,
    /// The key whose mark is cleared next, and keys, less than one, whose marks are still to be cleared.
    hand: usize,
    uncleared: f64,
    /// By block: whether more room for entries, and for blocks, would have saved its last read; until that is settled.
    savings: Vec<[bool; 2]>,
    /// By block: the value of `reads` at its last visit.
    visited: Vec<u64>,
    reads: u64,
    division: Division,
    misses: Misses,
}

impl Divided {
    /// An empty tier.
    pub fn new(options: DividedOptions) -> Self {
        let DividedOptions { memory_bytes, block_bytes, keys_per_block, keys, blocks_percent, .. } = options;
        let blocks = keys.div_ceil(keys_per_block);
        let (least, most) = (memory_bytes / LEAST_BLOCKS_DIVISOR, memory_bytes / 8 * 7);
        let division = Division {
            least,
            most,
            blocks: blocks_percent
                .map_or(memory_bytes / FIRST_BLOCKS_DIVISOR, |percent| memory_bytes / 100 * percent),
            misses: Misses::default(),
            reads_remembered: memory_bytes / u64::from(block_bytes),
        };
        let window = memory_bytes / GHOST_WINDOW_DIVISOR;
        Self {
            options,
            entries: Lru::new(memory_bytes - division.blocks, keys),
            blocks: Lru::new(division.blocks, blocks),
            entry_ghosts: Lru::new(window, keys),
            block_ghosts: Lru::new(window, blocks),
            is_found: vec![false; keys as usize],
            hand: 0,
            uncleared: 0.0,
            savings: vec![[false; 2]; blocks as usize],
            visited: vec![0; blocks as usize],
            reads: 0,
            division,
            misses: Misses::default(),
        }
    }

    /// Bytes for blocks now.
    pub fn block_bytes(&self) -> u64 {
        self.division.blocks
    }

    /// Looks a key up.
    pub fn get(&mut self, key: u32) -> FoundIn {
        let block = key / self.options.keys_per_block;
        if self.entries.contains(key) {
            self.entries.touch(key);
            return FoundIn::Entries;
        }
        if self.blocks.contains(block) {
            self.blocks.touch(block);
            self.visit(key, block);
            return FoundIn::Blocks;
        }
        self.read(key, block);
        let bytes = self.options.entry_bytes;
        let has_room = self.entries.has_room(bytes);
        if std::mem::replace(&mut self.is_found[key as usize], true) || has_room {
            let ghosts = &mut self.entry_ghosts;
            self.entries.put(key, bytes, |key, bytes| ghosts.put(key, bytes, |_, _| {}));
            if !has_room {
                self.clear_marks(bytes);
            }
        }
        FoundIn::Flash
    }

    /// Clears some found marks when an entry of `bytes` bytes took the room of others.
    fn clear_marks(&mut self, bytes: u32) {
        let share = self.options.memory_bytes - self.division.blocks;
        self.uncleared +=
            found_marks_cleared(Reinsertion::None, bytes.into(), share) * self.is_found.len() as f64;
        for _ in 0..self.uncleared as usize {
            self.is_found[self.hand] = false;
            self.hand = (self.hand + 1) % self.is_found.len();
        }
        self.uncleared = self.uncleared.fract();
    }

    /// Counts a hit in a block in RAM.
    fn visit(&mut self, key: u32, block: u32) {
        let entry_bytes = self.options.entry_bytes;
        let visited = &mut self.visited[block as usize];
        let is_new_visit = self.reads - *visited
            > (self.blocks.objects() / BLOCK_VISIT_DIVISOR).max(BLOCK_VISIT_REPLACED_MIN);
        let saving = &mut self.savings[block as usize];
        if is_new_visit {
            (*visited, *saving) = (self.reads, [false; 2]);
            self.entry_ghosts.put(key, entry_bytes, |_, _| {});
        } else if saving[0] && !self.entry_ghosts.contains(key) {
            self.misses.ghost_entries -= 1;
            self.misses.ghost_blocks += u64::from(saving[1]);
            *saving = [false; 2];
        }
    }

    fn read(&mut self, key: u32, block: u32) {
        let saving = [self.entry_ghosts.take(key).is_some(), self.block_ghosts.take(block).is_some()];
        self.savings[block as usize] = saving;
        self.reads += 1;
        self.visited[block as usize] = self.reads;
        self.misses.reads += 1;
        self.misses.ghost_entries += i64::from(saving[0]);
        self.misses.ghost_blocks += u64::from(saving == [false, true]);
        let ghosts = &mut self.block_ghosts;
        self.blocks.put(block, self.options.block_bytes, |block, bytes| ghosts.put(block, bytes, |_, _| {}));
        let is_measured = self.options.blocks_percent.is_none();
        if is_measured && self.misses.reads >= self.division.reads_remembered / DIVISION_WINDOW_DIVISOR {
            self.division = self.division.after(std::mem::take(&mut self.misses));
            let Self { entries, blocks, entry_ghosts, block_ghosts, .. } = self;
            let for_entries = self.options.memory_bytes - self.division.blocks;
            entries.resize(for_entries, |key, bytes| entry_ghosts.put(key, bytes, |_, _| {}));
            blocks.resize(self.division.blocks, |block, bytes| block_ghosts.put(block, bytes, |_, _| {}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    const KEYS: u32 = 100_000;
    const KEYS_PER_BLOCK: u32 = 32;
    const RUN: u32 = 64;

    /// Skewed: small numbers are drawn more often.
    fn draw(random: &mut StdRng, below: u32) -> u32 {
        (random.random::<f64>().powi(4) * f64::from(below)) as u32
    }

    fn points(random: &mut StdRng, tier: &mut Divided) -> u32 {
        let key = u64::from(draw(random, KEYS)) * 7919 % u64::from(KEYS);
        u32::from(tier.get(key as u32) == FoundIn::Flash)
    }

    fn run(random: &mut StdRng, tier: &mut Divided) -> u32 {
        let first = draw(random, KEYS / RUN) * RUN;
        (first..first + RUN).map(|key| u32::from(tier.get(key) == FoundIn::Flash)).sum()
    }

    /// Reads of the second half of a phase of points and of one of runs.
    fn reads(blocks_percent: Option<u64>) -> [u32; 2] {
        let (memory_bytes, entry_bytes, block_bytes, keys) = (1 << 20, 128, 4096, KEYS);
        let keys_per_block = KEYS_PER_BLOCK;
        let mut tier = Divided::new(DividedOptions {
            memory_bytes,
            entry_bytes,
            block_bytes,
            keys_per_block,
            keys,
            blocks_percent,
        });
        let random = &mut StdRng::seed_from_u64(3);
        (0..100_000).for_each(|_| _ = points(random, &mut tier));
        let of_points = (0..100_000).map(|_| points(random, &mut tier)).sum();
        (0..2_000).for_each(|_| _ = run(random, &mut tier));
        [of_points, (0..2_000).map(|_| run(random, &mut tier)).sum()]
    }

    #[test]
    fn the_policy_comes_close_to_the_best_division_of_each_phase() {
        let fixed = [5, 25, 50, 75].map(|percent| reads(Some(percent)));
        let measured = reads(None);
        println!("{fixed:?}, measured {measured:?}");
        for (phase, measured) in measured.into_iter().enumerate() {
            let of_phase = fixed.map(|reads| reads[phase]);
            let (best, worst) = (of_phase.iter().min().unwrap(), of_phase.iter().max().unwrap());
            assert!(f64::from(*worst) > 1.1 * f64::from(*best), "the division makes a difference");
            assert!(f64::from(measured) < 1.05 * f64::from(*best), "phase {phase}");
        }
    }
}
