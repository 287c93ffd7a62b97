//! REGEXP_TREE: rows whose regular expressions are found in a text.

mod dialect;
mod literals;
mod node;
mod order;
mod search;
mod value;

pub use dialect::translated as regexp_of_re2;
pub(super) use node::Named;
pub(crate) use node::check_needed;
pub(crate) use search::{Search, SearchColumns, ValueLimit};

use self::node::{Compiling, NodeRow, RegexpNode};
use self::order::RegexpOrder;
use super::rows::KeyedRows;
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup_key::Flags;
use crate::row::{Cell, key_number};
use aho_corasick::AhoCorasick;
use std::collections::HashMap;
use std::sync::Arc;

/// What rows are read with.
pub(in crate::full_load) struct Reading {
    attributes: Vec<Named>,
    /// Defaults, by attribute.
    defaults: Vec<Cell>,
    flags: Flags,
}

impl Reading {
    pub fn new(structure: &Structure, flags: Flags) -> Result<Reading, DictError> {
        let named =
            |attribute: &crate::definition::Attribute| (attribute.name.clone(), attribute.data_type.clone());
        Ok(Reading {
            attributes: structure.attributes.iter().map(named).collect(),
            defaults: structure.attributes.iter().map(Cell::of_attribute).collect::<Result<_, _>>()?,
            flags,
        })
    }
}

/// All regular expressions.
pub(crate) struct Regexps {
    reading: Arc<Reading>,
    /// In order of precedence: a node comes after all nodes in it.
    nodes: Vec<RegexpNode>,
    /// Places of nodes that may be found in any text, in order.
    anywhere: Vec<u32>,
    /// The other nodes are found only in texts that contain one of these.
    texts: NeededTexts,
    bytes_allocated: usize,
}

/// Lower-case texts, and the nodes that need them.
struct NeededTexts {
    finder: Option<AhoCorasick>,
    /// Places of nodes, by text.
    nodes: Vec<Vec<u32>>,
}

impl Regexps {
    /// Reads rows whose keys are ids, and returns them sorted by id, as they are shown.
    ///
    /// # Errors
    /// `INCORRECT_DICTIONARY_DEFINITION` if a row is wrong, or there are none; `LIMIT_EXCEEDED` if they take too much.
    pub(in crate::full_load) fn of(
        mut rows: KeyedRows,
        reading: &Arc<Reading>,
    ) -> Result<(KeyedRows, Regexps), DictError> {
        if rows.len() == 0 {
            let what = "There are no available regular expression. Please check your config";
            return Err(DictError::definition(what));
        }
        rows.sort_by_key(key_number);
        let places = 0..rows.len() as u32;
        let ids: Vec<u64> = places.clone().map(|place| key_number(rows.key(place))).collect();
        let attributes = &reading.attributes;
        let read = |(place, id): (u32, &u64)| NodeRow::of(*id, rows.row(place), attributes);
        let read = places.zip(&ids).map(read).collect::<Result<Vec<_>, _>>()?;
        let order = RegexpOrder::of(&ids, &read.iter().map(|row| row.parent_id).collect::<Vec<_>>())?;
        let mut place_of = vec![0; ids.len()];
        for (place, number) in order.sequence.iter().enumerate() {
            place_of[*number as usize] = place as u32;
        }
        let mut regexps = Regexps {
            reading: Arc::clone(reading),
            nodes: Vec::with_capacity(ids.len()),
            anywhere: Vec::new(),
            texts: NeededTexts { finder: None, nodes: Vec::new() },
            bytes_allocated: 0,
        };
        let mut texts: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
        let mut text_bytes = 0;
        let cache_bytes = limits::REGEXP_CACHE_BYTES.min(limits::REGEXP_CACHES_BYTES / ids.len());
        for (place, number) in order.sequence.iter().enumerate() {
            let number = *number as usize;
            let parent = order.parents[number].map(|parent| place_of[parent as usize]);
            let compiling = Compiling { flags: reading.flags, cache_bytes };
            let (node, needed) = RegexpNode::of(ids[number], &read[number], parent, attributes, compiling)?;
            regexps.nodes.push(node);
            regexps.add(regexps.nodes[place].bytes_allocated())?;
            let needed = needed.filter(|needed| {
                text_bytes += needed.iter().map(Vec::len).sum::<usize>();
                text_bytes <= limits::REGEXP_NEEDED_BYTES_MAX
            });
            match needed {
                None => regexps.anywhere.push(place as u32),
                Some(needed) => {
                    needed.into_iter().for_each(|text| texts.entry(text).or_default().push(place as u32))
                }
            }
        }
        regexps.texts = NeededTexts::of(texts)?;
        regexps.add(regexps.texts.bytes_allocated() + regexps.anywhere.capacity() * size_of::<u32>())?;
        let mut shown = KeyedRows::default();
        for (id, row) in ids.iter().zip(&read) {
            shown.push(&id.to_le_bytes(), |bytes| row.put(attributes, bytes))?;
        }
        shown.shrink();
        Ok((shown, regexps))
    }

    fn add(&mut self, bytes: usize) -> Result<(), DictError> {
        self.bytes_allocated += bytes;
        match self.bytes_allocated > limits::REGEXPS_BYTES_MAX {
            false => Ok(()),
            true => Err(DictError::new(
                Code::LimitExceeded,
                format!(
                    "The regular expressions of a dictionary take more than {} bytes",
                    limits::REGEXPS_BYTES_MAX
                ),
            )),
        }
    }

    pub fn bytes_allocated(&self) -> usize {
        self.bytes_allocated
    }

    /// The number of nodes, which is also the capacity.
    pub fn filled(&self) -> (usize, usize) {
        (self.nodes.len(), self.nodes.len())
    }
}

impl NeededTexts {
    fn of(texts: HashMap<Vec<u8>, Vec<u32>>) -> Result<NeededTexts, DictError> {
        let (texts, nodes): (Vec<Vec<u8>>, Vec<Vec<u32>>) = texts.into_iter().unzip();
        if texts.is_empty() {
            return Ok(NeededTexts { finder: None, nodes });
        }
        let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(&texts);
        let finder = finder.map_err(|error| {
            DictError::new(Code::LimitExceeded, format!("Too many regular expressions: {error}"))
        })?;
        Ok(NeededTexts { finder: Some(finder), nodes })
    }

    /// Visits the places of nodes one of whose texts is in `text`, some of them more than once.
    fn each_in(&self, text: &str, mut visit: impl FnMut(u32)) {
        let Some(finder) = &self.finder else { return };
        for found in finder.find_overlapping_iter(text) {
            self.nodes[found.pattern().as_usize()].iter().for_each(|&place| visit(place));
        }
    }

    fn bytes_allocated(&self) -> usize {
        let places = |places: &Vec<u32>| size_of::<Vec<u32>>() + places.capacity() * size_of::<u32>();
        self.finder.as_ref().map_or(0, AhoCorasick::memory_usage)
            + self.nodes.iter().map(places).sum::<usize>()
    }
}
