//! The way down, through the rows of a layout that holds them all.

use std::collections::{HashMap, HashSet};

use datafusion::arrow::array::UInt64Array;
use granary_dict::Children;

use crate::limits::HIERARCHY_DEPTH_MAX;

/// Which of a key's descendants are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    All,
    /// The keys so many levels below it, at least 1.
    At(usize),
}

/// The descendants of each key, in ClickHouse's order. Keys that come again are walked once.
pub fn descendants(children: &Children, keys: &UInt64Array, level: Level) -> Vec<Vec<u64>> {
    let mut known: HashMap<u64, Vec<u64>> = HashMap::new();
    let below = |key: Option<u64>| {
        let below = key.map(|key| known.entry(key).or_insert_with(|| walk(children, key, level)).clone());
        below.unwrap_or_default()
    };
    keys.iter().map(below).collect()
}

/// A key that was passed before ends the walk: nobody is his own ancestor.
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
