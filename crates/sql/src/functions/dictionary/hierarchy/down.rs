//! The way down, in a layout that holds all rows.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use datafusion::arrow::array::UInt64Array;
use datafusion::common::Result;
use granary_dialect::Error;
use granary_dialect::functions::check_bytes;
use granary_dict::Children;

use crate::limits::{HIERARCHY_DEPTH_MAX, HIERARCHY_STEPS_MAX};

/// Which of a key's descendants are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    All,
    /// The keys that many levels below it, at least 1.
    At(usize),
}

/// The descendants of each of some keys.
#[derive(Default)]
pub struct Descendants {
    /// The descendants, by different key.
    walks: Vec<Vec<u64>>,
    /// The index in `walks`, by key asked for; `None`: the key is NULL.
    asked: Vec<Option<usize>>,
}

impl Descendants {
    /// Descendants in ClickHouse's order. Repeated keys are walked once.
    ///
    /// # Errors
    /// MEMORY_LIMIT_EXCEEDED if the descendants are too many for one block, LIMIT_EXCEEDED if the keys before them are.
    pub fn find(children: &Children, keys: &UInt64Array, level: Level) -> Result<Descendants> {
        let mut known: HashMap<u64, usize> = HashMap::new();
        let (mut below, mut items) = (Descendants::default(), 0);
        let mut steps = Steps { left: HIERARCHY_STEPS_MAX };
        for key in keys {
            let walk = match key {
                None => None,
                Some(key) => Some(match known.entry(key) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        below.walks.push(walk(children, key, level, &mut steps)?);
                        *new.insert(below.walks.len() - 1)
                    }
                }),
            };
            items += walk.map_or(0, |walk| below.walks[walk].len() as u64);
            check_bytes(items * size_of::<u64>() as u64)?;
            below.asked.push(walk);
        }
        Ok(below)
    }

    /// The descendants, by key asked for.
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> {
        self.asked.iter().map(|walk| walk.map_or(&[][..], |walk| self.walks[walk].as_slice()))
    }
}

/// How many further keys may be passed.
struct Steps {
    left: usize,
}

impl Steps {
    fn take(&mut self) -> Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            Error::limit_exceeded(format!(
                "More than {HIERARCHY_STEPS_MAX} keys are passed on the way down for one block: ask for fewer keys, for \
                 a level that is nearer, or with a smaller max_block_size"
            ))
        })?;
        Ok(())
    }
}

/// Descendants of a key. A key seen before ends the walk: no key is its own ancestor.
fn walk(children: &Children, key: u64, level: Level, steps: &mut Steps) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut passed = HashSet::new();
    let mut next = vec![(key, 0)];
    while let Some((key, depth)) = next.pop() {
        // All that are passed are in the answer otherwise, whose bytes are bounded.
        if level != Level::All {
            steps.take()?;
        }
        let below = children.children_of(key);
        if !passed.insert(key) {
            break;
        }
        match level {
            Level::At(level) if depth + 1 == level => found.extend(below),
            _ if depth < HIERARCHY_DEPTH_MAX => {
                if level == Level::All {
                    found.extend(below);
                }
                next.extend(below.iter().map(|&child| (child, depth + 1)));
            }
            _ => {}
        }
    }
    Ok(found)
}
