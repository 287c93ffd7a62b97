//! RANGE_HASHED: rows found by a key and a value within the row's bounds.

use super::intervals::{self, Interval};
use super::rows::KeyedRows;
use crate::config::{NullBounds, Overlap, RangeSettings};
use crate::definition::Key;
use crate::error::DictError;
use crate::row::{RowFormat, number_key};
use crate::types::{DataType, Fixed};
use hashbrown::HashTable;
use std::cmp::Reverse;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// The bounds of rows: their first two attributes.
#[derive(Clone)]
pub(super) struct Bounds {
    settings: RangeSettings,
    /// Whether the key is one number, which keeps all its bytes when a value follows it.
    is_number: bool,
    data_type: DataType,
    /// Where a row has its bounds.
    spans: [Range<usize>; 2],
    /// A row's bounds where the source has NULL.
    open: [Fixed; 2],
}

/// Ranges of all keys, grouped by key.
pub(super) struct Ranges {
    bounds: Bounds,
    /// By the hash of the key.
    groups: HashTable<Group>,
    /// Ranges of a key are in the order of their lower bounds, then of their upper ones; of rows with the same range
    /// the one that counts comes first or last, as the strategy requires. Items are places of rows.
    intervals: Vec<Interval>,
}

/// A key's part of `intervals`.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    count: u32,
}

impl Bounds {
    pub fn new(settings: RangeSettings, key: &Key, format: &RowFormat) -> Bounds {
        let data_type =
            format.data_types().next().expect("bounds were checked when they were defined").clone();
        let open = data_type.extremes().expect("bounds were checked when they were defined");
        let spans = [0, 1].map(|attribute| format.fixed_span(attribute));
        Bounds { settings, is_number: matches!(key, Key::Simple { .. }), spans, data_type, open }
    }

    /// Adds a row, unless it has no range.
    pub fn add(
        &self,
        rows: &mut KeyedRows,
        key: &[u8],
        is_null: impl Fn(usize) -> bool,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), DictError> {
        let is_open = [is_null(0), is_null(1)];
        if is_open.contains(&true) && self.settings.null_bounds == NullBounds::Dropped {
            return Ok(());
        }
        let place = rows.push(key, encode)?;
        for (is_open, (span, open)) in is_open.into_iter().zip(self.spans.iter().zip(&self.open)) {
            if is_open {
                rows.row_mut(place)[span.clone()].copy_from_slice(&open[..span.len()]);
            }
        }
        Ok(())
    }

    /// The range of a row; `None`: it is empty.
    fn interval(&self, rows: &KeyedRows, place: u32) -> Option<Interval> {
        let rank = |span: &Range<usize>| self.data_type.rank(&rows.row(place)[span.clone()]);
        Interval::new(rank(&self.spans[0])?, rank(&self.spans[1])?, place)
    }
}

impl Ranges {
    pub fn of(rows: &KeyedRows, bounds: &Bounds) -> Ranges {
        let mut intervals: Vec<Interval> =
            (0..rows.len() as u32).filter_map(|place| bounds.interval(rows, place)).collect();
        intervals.shrink_to_fit();
        let overlap = bounds.settings.overlap;
        intervals.sort_unstable_by(|a, b| {
            let by_place = match overlap {
                Overlap::First => a.item.cmp(&b.item),
                Overlap::Last => Reverse(a.item).cmp(&Reverse(b.item)),
            };
            let by_range = (a.low, a.high).cmp(&(b.low, b.high));
            rows.key(a.item).cmp(rows.key(b.item)).then(by_range).then(by_place)
        });
        let mut found = Vec::new();
        let mut first = 0;
        for group in intervals.chunk_by_mut(|a, b| rows.key(a.item) == rows.key(b.item)) {
            intervals::make_tree(group);
            found.push(Group { first, count: group.len() as u32 });
            first += group.len() as u32;
        }
        let mut groups = HashTable::with_capacity(found.len());
        let hash = |group: &Group| XxHash3_64::oneshot(rows.key(intervals[group.first as usize].item));
        for group in found {
            groups.insert_unique(hash(&group), group, hash);
        }
        Ranges { bounds: bounds.clone(), groups, intervals }
    }

    /// The place of the row for a key followed by a value.
    pub fn find(&self, rows: &KeyedRows, key_and_value: &[u8]) -> Option<u32> {
        let (key, value) =
            key_and_value.split_at(key_and_value.len().checked_sub(self.bounds.spans[0].len())?);
        let value = self.bounds.data_type.rank(value)?;
        let key = if self.bounds.is_number { number_key(key.try_into().ok()?) } else { key };
        let is_it = |group: &Group| rows.key(self.intervals[group.first as usize].item) == key;
        let group = self.groups.find(XxHash3_64::oneshot(key), is_it)?;
        let intervals = &self.intervals[group.first as usize..][..group.count as usize];
        // Intervals that begin after the value cannot contain it.
        let begun = intervals.partition_point(|interval| interval.low <= value);
        let found = match self.bounds.settings.overlap {
            Overlap::First => intervals::first_reaching(intervals, value).filter(|&at| at < begun),
            Overlap::Last => intervals::last_reaching(intervals, begun, value),
        };
        found.map(|at| intervals[at].item)
    }

    pub fn bytes_allocated(&self) -> usize {
        self.groups.allocation_size() + self.intervals.capacity() * size_of::<Interval>()
    }

    /// The number of keys, and the capacity.
    pub fn filled(&self) -> (usize, usize) {
        (self.groups.len(), self.groups.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Attribute, Structure};

    fn ranges(overlap: Overlap, all: &[(u64, i16, i16)]) -> (KeyedRows, Ranges) {
        let attributes = ["low", "high"].map(|name| Attribute::new(name, DataType::Int16)).to_vec();
        let structure = Structure { key: Key::Simple { name: "id".into() }, attributes };
        let settings = RangeSettings { overlap, null_bounds: NullBounds::Open };
        let bounds = Bounds::new(settings, &structure.key, &RowFormat::new(&structure, None).unwrap());
        let mut rows = KeyedRows::default();
        for (key, low, high) in all {
            let encode = |bytes: &mut Vec<u8>| bytes.extend([low.to_le_bytes(), high.to_le_bytes()].concat());
            bounds.add(&mut rows, number_key(&key.to_le_bytes()), |_| false, encode).unwrap();
        }
        let ranges = Ranges::of(&rows, &bounds);
        (rows, ranges)
    }

    /// The place, found by a linear search.
    fn place(overlap: Overlap, all: &[(u64, i16, i16)], key: u64, value: i16) -> Option<u32> {
        let has =
            |&(_, &(of, low, high)): &(usize, &(u64, i16, i16))| of == key && (low..=high).contains(&value);
        let found = all.iter().enumerate().filter(has);
        let place = match overlap {
            Overlap::First => found.min_by_key(|(place, (_, low, high))| (*low, *high, *place)),
            Overlap::Last => found.max_by_key(|(place, (_, low, high))| (*low, *high, Reverse(*place))),
        };
        place.map(|(place, _)| place as u32)
    }

    #[test]
    fn finds_what_looking_at_all_ranges_finds() {
        let mut random = fastrand::Rng::with_seed(1);
        for count in [0, 1, 2, 3, 10, 200] {
            for _ in 0..20 {
                let mut range = || (300 * random.u64(..3), random.i16(-50..50), random.i16(-50..50));
                let all: Vec<_> = (0..count).map(|_| range()).collect();
                for overlap in [Overlap::First, Overlap::Last] {
                    let (rows, ranges) = ranges(overlap, &all);
                    for (key, value) in (0..4u64)
                        .map(|key| 300 * key)
                        .flat_map(|key| (-55..55).map(move |value| (key, value)))
                    {
                        let key_and_value = [&key.to_le_bytes()[..], &i16::to_le_bytes(value)].concat();
                        let found = ranges.find(&rows, &key_and_value);
                        assert_eq!(found, place(overlap, &all, key, value), "{key} {value} {all:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_key_of_many_ranges_is_as_quick_as_any() {
        // One range has all values, before 100 000 that have one each: a linear search would not end.
        let mut all = vec![(7, i16::MIN, i16::MAX)];
        all.extend((0..100_000).map(|i| (7, (i % 1000) as i16, (i % 1000) as i16)));
        let (rows, ranges) = ranges(Overlap::Last, &all);
        for _ in 0..100_000 {
            let key_and_value = [&7u64.to_le_bytes()[..], &2000i16.to_le_bytes()].concat();
            assert_eq!(ranges.find(&rows, &key_and_value), Some(0));
        }
    }
}
