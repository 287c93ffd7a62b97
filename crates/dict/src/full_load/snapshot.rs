//! All rows of a source in RAM. A snapshot does not change: a reload makes another one.

use super::Children;
use super::held_bytes::HeldBytes;
use super::keys::Keys;
use super::networks::Networks;
use super::polygons::Polygons;
use super::ranges::Ranges;
use super::regexps::Regexps;
use super::rows::KeyedRows;
use crate::config::FullLoadLayout;
use crate::error::DictError;
use crate::limits;
use crate::lookup::lock;
use crate::row::{Decoder, RowFormat, key_number};
use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use std::sync::{Arc, Mutex};

/// Rows, found by the keys of lookups and shown in order.
pub(crate) struct Snapshot {
    pub(super) rows: KeyedRows,
    pub(super) index: Index,
    /// When they were asked for, in Unix seconds.
    pub loaded_at: u64,
    /// Made at the first use.
    pub(super) children: Mutex<Option<Arc<Children>>>,
    pub(super) held: HeldBytes,
}

/// How rows are found.
pub(super) enum Index {
    Keys(Keys),
    Ranges(Ranges),
    Networks(Networks),
    Polygons(Polygons),
    Regexps(Regexps),
}

impl Snapshot {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row that a lookup's key finds; none for a text, whose values come from several rows.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let place = match &self.index {
            Index::Keys(keys) => keys.find(&self.rows, key),
            Index::Ranges(ranges) => ranges.find(&self.rows, key),
            Index::Networks(networks) => networks.find(key),
            Index::Polygons(polygons) => polygons.find(key),
            Index::Regexps(_) => None,
        };
        place.map(|place| self.rows.row(place))
    }

    /// The regular expressions, if rows are found by texts.
    pub fn regexps(&self) -> Option<&Regexps> {
        match &self.index {
            Index::Regexps(regexps) => Some(regexps),
            _ => None,
        }
    }

    /// A key and its row, by their place in the order.
    pub fn at(&self, place: usize) -> (&[u8], &[u8]) {
        (self.rows.key(place as u32), self.rows.row(place as u32))
    }

    /// The children of each key, by the attribute at `parent`, which is a UInt64; keys are simple.
    pub fn children(
        &self,
        form: FullLoadLayout,
        format: &RowFormat,
        parent: usize,
    ) -> Result<Arc<Children>, DictError> {
        // Other callers wait for it rather than making it, too.
        let mut made = lock(&self.children);
        if let Some(children) = &*made {
            return Ok(Arc::clone(children));
        }
        let mut pairs = Vec::with_capacity(self.len());
        for first in (0..self.len()).step_by(limits::RESIDENT_BATCH_ROWS) {
            let places = first..(first + limits::RESIDENT_BATCH_ROWS).min(self.len());
            let mut rows = Decoder::new(format, &[parent], places.len());
            for place in places.clone() {
                rows.push(self.at(place).1)?;
            }
            let parents = rows.finish()?;
            let parents = parents[0].as_primitive::<UInt64Type>();
            let keys = places.map(|place| key_number(self.at(place).0));
            pairs.extend(parents.iter().zip(keys).filter_map(|(parent, key)| Some((parent?, key))));
        }
        let children = Arc::new(Children::new(pairs, form));
        *made = Some(Arc::clone(&children));
        drop(made);
        self.held.set(self.bytes_allocated());
        Ok(children)
    }

    pub fn bytes_allocated(&self) -> usize {
        self.rows.bytes_allocated() + self.index_bytes() + self.children_bytes()
    }

    /// Bytes of the children, if they were made.
    pub fn children_bytes(&self) -> usize {
        lock(&self.children).as_ref().map_or(0, |children| children.bytes_allocated())
    }

    /// Bytes of the index, and of the rows' places.
    pub fn index_bytes(&self) -> usize {
        let index = match &self.index {
            Index::Keys(keys) => keys.bytes_allocated(),
            Index::Ranges(ranges) => ranges.bytes_allocated(),
            Index::Networks(networks) => networks.bytes_allocated(),
            Index::Polygons(polygons) => polygons.bytes_allocated(),
            Index::Regexps(regexps) => regexps.bytes_allocated(),
        };
        self.rows.span_bytes() + index
    }

    /// Keys for each place of the index.
    pub fn load_factor(&self) -> f64 {
        let (filled, room) = match &self.index {
            Index::Keys(keys) => keys.filled(),
            Index::Ranges(ranges) => ranges.filled(),
            Index::Networks(networks) => networks.filled(),
            Index::Polygons(polygons) => polygons.filled(),
            Index::Regexps(regexps) => regexps.filled(),
        };
        if room == 0 { 0.0 } else { filled as f64 / room as f64 }
    }
}
