//! The way up, with one lookup of a batch's keys per level.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::common::Result;
use granary_dialect::Error;
use granary_dict::{Attribute, Dictionary, Literal};

use crate::limits::HIERARCHY_DEPTH_MAX;

/// Keys of a way that are looked through one by one.
const SHORT_WAY: usize = 32;

/// The parents of some keys and of their ancestors.
pub struct Ancestors {
    /// The parent, by key that the dictionary has; `None`: the key is at the top.
    parents: HashMap<u64, Option<u64>>,
}

impl Ancestors {
    /// Looks up the keys, then their parents, level by level. In a dictionary that holds all rows, all levels come from
    /// one load.
    pub fn find(dictionary: &Dictionary, parent: usize, keys: &UInt64Array) -> Result<Self> {
        loop {
            let before = dictionary.shown_load();
            let ways = Self::ask(dictionary, parent, keys)?;
            if dictionary.shown_load() == before {
                return Ok(ways);
            }
        }
    }

    fn ask(dictionary: &Dictionary, parent: usize, keys: &UInt64Array) -> Result<Self> {
        let top = top(&dictionary.definition().structure.attributes[parent]);
        let mut parents: HashMap<u64, Option<u64>> = HashMap::new();
        let mut asked: HashSet<u64> = HashSet::new();
        let mut level: Vec<u64> = keys.iter().flatten().collect();
        for _ in 0..HIERARCHY_DEPTH_MAX {
            level.sort_unstable();
            level.retain(|key| asked.insert(*key));
            if level.is_empty() {
                break;
            }
            let keys: ArrayRef = Arc::new(UInt64Array::from(std::mem::take(&mut level)));
            let answer = dictionary.get(&[parent], std::slice::from_ref(&keys)).map_err(Error::from)?;
            let above = answer.columns[0].as_primitive::<UInt64Type>();
            for (row, &key) in keys.as_primitive::<UInt64Type>().values().iter().enumerate() {
                if answer.found.value(row) {
                    let above = Some(above).filter(|above| above.is_valid(row)).map(|above| above.value(row));
                    let above = above.filter(|above| Some(*above) != top);
                    parents.insert(key, above);
                    level.extend(above);
                }
            }
        }
        Ok(Self { parents })
    }

    /// A key and its ancestors, up to one at the top, one that the dictionary lacks, or the one before a key seen
    /// already. Empty if the dictionary lacks the key itself.
    pub fn up(&self, key: Option<u64>) -> Vec<u64> {
        // Most ways are short. A long one is not looked through for each of its keys.
        let (mut way, mut passed) = (Vec::new(), HashSet::new());
        let mut next = key.filter(|key| self.parents.contains_key(key));
        while let Some(key) = next
            && way.len() < HIERARCHY_DEPTH_MAX
        {
            if way.len() == SHORT_WAY {
                passed.extend(way.iter().copied());
            }
            let is_passed = if way.len() < SHORT_WAY { way.contains(&key) } else { !passed.insert(key) };
            if is_passed {
                break;
            }
            way.push(key);
            next = self.parents.get(&key).copied().flatten();
        }
        way
    }
}

/// The parent that marks a key at the top, beside NULL: the attribute's DEFAULT.
fn top(attribute: &Attribute) -> Option<u64> {
    match &attribute.default {
        Some(Literal::Bare(text) | Literal::Quoted(text)) if !text.is_empty() => text.parse().ok(),
        Some(Literal::Null) => None,
        // An empty text is the default of the type, as in ClickHouse.
        Some(_) | None => (!attribute.data_type.is_nullable()).then_some(0),
    }
}
