//! All rows of a source in RAM. Once made, they do not change: a reload makes others.

use super::keys::Keys;
use super::networks::Networks;
use super::polygons::Polygons;
use super::ranges::Ranges;
use super::rows::Rows;

/// Rows, found by what is sought and shown in order.
pub(crate) struct Held {
    pub(super) rows: Rows,
    pub(super) index: Index,
    /// Unix seconds of when they were asked for.
    pub loaded_at: u64,
}

/// How rows are found.
pub(super) enum Index {
    Keys(Keys),
    Ranges(Ranges),
    Networks(Networks),
    Polygons(Polygons),
}

impl Held {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row for what is sought.
    #[inline]
    pub fn get(&self, sought: &[u8]) -> Option<&[u8]> {
        let place = match &self.index {
            Index::Keys(keys) => keys.find(&self.rows, sought),
            Index::Ranges(ranges) => ranges.find(&self.rows, sought),
            Index::Networks(networks) => networks.find(sought),
            Index::Polygons(polygons) => polygons.find(sought),
        };
        place.map(|place| self.rows.row(place))
    }

    /// A key and its row, by their place in the order.
    pub fn at(&self, place: usize) -> (&[u8], &[u8]) {
        (self.rows.key(place as u32), self.rows.row(place as u32))
    }

    pub fn bytes_allocated(&self) -> usize {
        self.rows.bytes_allocated() + self.index_bytes()
    }

    /// What finding a row takes beside the rows.
    pub fn index_bytes(&self) -> usize {
        let index = match &self.index {
            Index::Keys(keys) => keys.bytes_allocated(),
            Index::Ranges(ranges) => ranges.bytes_allocated(),
            Index::Networks(networks) => networks.bytes_allocated(),
            Index::Polygons(polygons) => polygons.bytes_allocated(),
        };
        self.rows.span_bytes() + index
    }

    /// Keys in each of the places that the index has for them.
    pub fn load_factor(&self) -> f64 {
        let (filled, room) = match &self.index {
            Index::Keys(keys) => keys.filled(),
            Index::Ranges(ranges) => ranges.filled(),
            Index::Networks(networks) => networks.filled(),
            Index::Polygons(polygons) => polygons.filled(),
        };
        if room == 0 { 0.0 } else { filled as f64 / room as f64 }
    }
}
