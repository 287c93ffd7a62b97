//! The way down, in a layout that holds all rows.

use std::collections::{HashMap, HashSet};

use datafusion::arrow::array::UInt64Array;
use datafusion::common::Result;
use granary_dialect::functions::check_bytes;
use granary_dict::Children;

use crate::limits::HIERARCHY_DEPTH_MAX;

/// Which of a key's descendants are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    All,
    /// The keys that many levels below it, at least 1.
    At(usize),
}

/// The descendants of each of some keys.
#[derive(Default)]
pub struct Below {
    /// The descendants, by different key.
    walks: Vec<Vec<u64>>,
    /// The index in `walks`, by key asked for; `None`: the key is NULL.
    asked: Vec<Option<usize>>,
}

impl Below {
    /// Descendants in ClickHouse's order. Repeated keys are walked once.
    ///
    /// # Errors
    /// MEMORY_LIMIT_EXCEEDED if the descendants are too many for one block.
    pub fn find(children: &Children, keys: &UInt64Array, level: Level) -> Result<Below> {
        let mut known: HashMap<u64, usize> = HashMap::new();
        let (mut below, mut items) = (Below::default(), 0);
        for key in keys {
            let walk = key.map(|key| {
                *known.entry(key).or_insert_with(|| {
                    below.walks.push(walk(children, key, level));
                    below.walks.len() - 1
                })
            });
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

/// Descendants of a key. A key seen before ends the walk: no key is its own ancestor.
fn walk(children: &Children, key: u64, level: Level) -> Vec<u64> {
    let mut found = Vec::new();
    let mut passed = HashSet::new();
    let mut next = vec![(key, 0)];
    while let Some((key, depth)) = next.pop() {
        let below = children.of(key);
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
    found
}
