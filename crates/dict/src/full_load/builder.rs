//! Rows that are being loaded, and how they are arranged.

use super::held_bytes::HeldBytes;
use super::keys::{DuplicatePolicy, Keys};
use super::networks::{Network, Networks};
use super::outline::Drawing;
use super::polygons::Polygons;
use super::ranges::{Bounds, Ranges};
use super::regexps::{Reading, Regexps};
use super::rows::KeyedRows;
use super::snapshot::{Index, Snapshot};
use crate::config::{FullLoadLayout, KeyAccess, PolygonKey};
use crate::definition::Definition;
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::{RowFormat, key_number};
use crate::types::DataType;
use std::sync::{Arc, Mutex};

/// How the rows of a layout are arranged.
pub(super) enum Arrangement {
    /// FLAT: the last row of a key counts; rows are shown in the order of their keys.
    Numbered,
    /// HASHED and the like: the first row of a key counts; rows are shown in the order of the source.
    Hashed,
    /// RANGE_HASHED.
    Ranged(Bounds),
    /// IP_TRIE: in the order of the networks.
    Networks(KeyAccess),
    /// POLYGON, whose polygons are of this type: in the order of the source.
    Polygons(DataType, PolygonKey),
    /// REGEXP_TREE: in the order of their ids, which are the keys.
    Regexps(Arc<Reading>),
}

impl Arrangement {
    /// # Errors
    /// A DEFAULT that is no value of its type, or an invalid setting.
    pub fn new(
        form: FullLoadLayout,
        definition: &Definition,
        format: &RowFormat,
    ) -> Result<Arrangement, DictError> {
        let structure = &definition.structure;
        Ok(match form {
            FullLoadLayout::Flat => Arrangement::Numbered,
            FullLoadLayout::Hashed | FullLoadLayout::SparseHashed | FullLoadLayout::HashedArray => {
                Arrangement::Hashed
            }
            FullLoadLayout::RangeHashed(settings) => {
                Arrangement::Ranged(Bounds::new(settings, &structure.key, format))
            }
            FullLoadLayout::IpTrie(access) => Arrangement::Networks(access),
            FullLoadLayout::Polygon(_, key) => {
                Arrangement::Polygons(structure.key_columns().swap_remove(0).data_type, key)
            }
            FullLoadLayout::RegexpTree => {
                Arrangement::Regexps(Arc::new(Reading::new(structure, definition.regexp_flags()?)?))
            }
        })
    }
}

/// Rows that are being loaded.
pub(super) struct Builder<'a> {
    arrangement: &'a Arrangement,
    rows: KeyedRows,
    /// Keys of rows that are found by their keys alone.
    keys: Keys,
    /// Networks of rows that are found by addresses.
    networks: Vec<Network>,
    /// Polygons of rows that are found by points.
    drawing: Drawing,
    loaded_at: u64,
}

impl Builder<'_> {
    pub fn new(arrangement: &Arrangement, loaded_at: u64) -> Builder<'_> {
        let (rows, keys, networks, drawing) = Default::default();
        Builder { arrangement, rows, keys, networks, drawing, loaded_at }
    }

    /// Adds a row, which `encode` appends; `is_null` says whether the source has NULL for an attribute.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if the rows are more than 32 bits can count, and errors of the key.
    pub fn add(
        &mut self,
        key: &[u8],
        is_null: impl Fn(usize) -> bool,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), DictError> {
        let Builder { rows, keys, networks, drawing, .. } = self;
        match self.arrangement {
            Arrangement::Numbered => keys.add(rows, key, DuplicatePolicy::Last, encode)?,
            Arrangement::Hashed => keys.add(rows, key, DuplicatePolicy::First, encode)?,
            Arrangement::Ranged(bounds) => bounds.add(rows, key, is_null, encode)?,
            // The key is in the network.
            Arrangement::Networks(_) => networks.push(Network::of_key(key, rows.push(&[], encode)?)?),
            Arrangement::Polygons(data_type, stored) => {
                let kept = if *stored == PolygonKey::Stored { key } else { &[] };
                drawing.add(data_type, key, rows.push(kept, encode)?)?;
            }
            Arrangement::Regexps(_) => {
                if rows.len() == limits::REGEXPS_MAX {
                    let what = format!("There are more than {} regular expressions", limits::REGEXPS_MAX);
                    return Err(DictError::new(Code::LimitExceeded, what));
                }
                rows.push(key, encode)?;
            }
        }
        Ok(())
    }

    /// RAM of the rows so far, and of what finds them.
    pub fn bytes_allocated(&self) -> usize {
        self.rows.bytes_allocated()
            + self.rows.span_bytes()
            + self.keys.bytes_allocated()
            + self.networks.capacity() * size_of::<Network>()
            + self.drawing.bytes_allocated()
    }

    /// Makes the snapshot of all rows, whose bytes `held` counts.
    ///
    /// # Errors
    /// The errors of [`add`](Self::add).
    pub fn finish(self, held: HeldBytes) -> Result<Snapshot, DictError> {
        let Builder { arrangement, mut rows, keys, networks, drawing, loaded_at } = self;
        rows.shrink();
        let index = match arrangement {
            Arrangement::Numbered => {
                rows.sort_by_key(key_number);
                Index::Keys(Keys::of(&rows))
            }
            Arrangement::Hashed => Index::Keys(keys),
            Arrangement::Ranged(bounds) => Index::Ranges(Ranges::of(&rows, bounds)),
            Arrangement::Networks(access) => {
                let (sorted, networks) = Networks::of(&rows, networks, *access)?;
                rows = sorted;
                Index::Networks(networks)
            }
            Arrangement::Polygons(..) => Index::Polygons(Polygons::of(drawing)),
            Arrangement::Regexps(reading) => {
                let (shown, regexps) = Regexps::of(rows, reading)?;
                rows = shown;
                Index::Regexps(regexps)
            }
        };
        let snapshot = Snapshot { rows, index, loaded_at, children: Mutex::default(), held };
        snapshot.held.set(snapshot.bytes_allocated());
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::Totals;

    fn filled(arrangement: &Arrangement, rows: &[(u64, &str)]) -> Snapshot {
        let mut builder = Builder::new(arrangement, 7);
        for (key, row) in rows {
            let encode = |bytes: &mut Vec<u8>| bytes.extend_from_slice(row.as_bytes());
            builder.add(&key.to_le_bytes(), |_| false, encode).unwrap();
        }
        builder.finish(HeldBytes::new(&Totals::default())).unwrap()
    }

    fn shown(snapshot: &Snapshot) -> Vec<(u64, String)> {
        let row = |place| {
            let (key, row) = snapshot.at(place);
            (u64::from_le_bytes(key.try_into().unwrap()), String::from_utf8(row.to_vec()).unwrap())
        };
        (0..snapshot.len()).map(row).collect()
    }

    #[test]
    fn which_of_two_rows_counts_and_in_which_order_they_come_is_as_in_clickhouse() {
        let rows = [(3, "c"), (1, "a"), (900, "z"), (1, "second"), (5, "")];
        let pairs = |rows: &[(u64, &str)]| rows.iter().map(|(k, r)| (*k, r.to_string())).collect::<Vec<_>>();
        let hashed = filled(&Arrangement::Hashed, &rows);
        assert_eq!(shown(&hashed), pairs(&[(3, "c"), (1, "a"), (900, "z"), (5, "")]));
        let flat = filled(&Arrangement::Numbered, &rows);
        assert_eq!(shown(&flat), pairs(&[(1, "second"), (3, "c"), (5, ""), (900, "z")]));
        for snapshot in [hashed, flat] {
            assert_eq!(snapshot.get(&900u64.to_le_bytes()), Some(&b"z"[..]));
            assert_eq!(snapshot.get(&5u64.to_le_bytes()), Some(&b""[..]));
            assert_eq!(snapshot.get(&4u64.to_le_bytes()), None);
        }
    }

    #[test]
    fn every_row_of_many_is_found_and_little_ram_is_taken_beside_them() {
        let mut builder = Builder::new(&Arrangement::Hashed, 7);
        let rows = 200_000u64;
        for id in 0..rows {
            let encode = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&(id * 3).to_le_bytes());
            builder.add(&id.to_le_bytes(), |_| false, encode).unwrap();
        }
        assert!(builder.bytes_allocated() as u64 >= rows * 32, "{} bytes", builder.bytes_allocated());
        let totals = Totals::default();
        let snapshot = builder.finish(HeldBytes::new(&totals)).unwrap();
        assert_eq!(totals.full_load_bytes(), snapshot.bytes_allocated() as u64);
        assert_eq!(snapshot.len() as u64, rows);
        for id in 0..rows {
            assert_eq!(snapshot.get(&id.to_le_bytes()), Some(&(id * 3).to_le_bytes()[..]));
        }
        assert_eq!(snapshot.get(&rows.to_le_bytes()), None);
        assert!(snapshot.index_bytes() as u64 <= rows * 30, "{} bytes", snapshot.index_bytes());
        assert_eq!(snapshot.bytes_allocated(), snapshot.index_bytes() + rows as usize * 16);
    }
}
