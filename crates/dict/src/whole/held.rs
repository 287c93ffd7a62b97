//! All rows of a source in RAM. Once made, they do not change: a reload makes others.

use super::Children;
use crate::config::WholeForm;
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::lock;
use crate::row::{Decoder, RowFormat};
use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::sync::{Arc, Mutex};
use xxhash_rust::xxh3::xxh3_64;

/// Rows, found by key and shown in order.
pub(crate) struct Held {
    /// Keys, each with its row behind it.
    bytes: Vec<u8>,
    /// In the order in which they are shown.
    spans: Vec<Span>,
    /// By the hash of the key: places in `spans`.
    places: HashTable<u32>,
    /// Unix seconds of when they were asked for.
    pub loaded_at: u64,
    form: WholeForm,
    /// Made when somebody first asks for it.
    children: Mutex<Option<Arc<Children>>>,
}

/// Where a key and its row are. Sized for tables of many short rows.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    key_bytes: u32,
    row_bytes: u32,
}

const _: () = assert!(size_of::<Span>() == 16);

impl Held {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The row of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.places.find(xxh3_64(key), |&place| self.key(self.spans[place as usize]) == key)?;
        Some(self.row(self.spans[*place as usize]))
    }

    /// A key and its row, by their place in the order.
    pub fn at(&self, place: usize) -> (&[u8], &[u8]) {
        let span = self.spans[place];
        (self.key(span), self.row(span))
    }

    /// Which keys have which parent, by the attribute at `parent`: one that is a UInt64, of rows of a simple key.
    pub fn children(&self, format: &RowFormat, parent: usize) -> Result<Arc<Children>, DictError> {
        // Whoever comes meanwhile waits for it rather than making it, too.
        let mut made = lock(&self.children);
        if let Some(children) = &*made {
            return Ok(Arc::clone(children));
        }
        let mut pairs = Vec::with_capacity(self.len());
        for spans in self.spans.chunks(limits::RESIDENT_BATCH_ROWS) {
            let mut rows = Decoder::new(format, &[parent], spans.len());
            for &span in spans {
                rows.push(self.row(span)).map_err(|_| {
                    DictError::new(Code::IncorrectData, "A row of the source was encoded wrongly")
                })?;
            }
            let parents = rows.finish()?;
            let parents = parents[0].as_primitive::<UInt64Type>();
            let keys = spans.iter().map(|&span| key_number(self.key(span)));
            pairs.extend(parents.iter().zip(keys).filter_map(|(parent, key)| Some((parent?, key))));
        }
        let children = Arc::new(Children::new(pairs, self.form));
        *made = Some(Arc::clone(&children));
        Ok(children)
    }

    pub fn bytes_allocated(&self) -> usize {
        self.bytes.capacity() + self.index_bytes() + self.children_bytes()
    }

    /// What the way down the hierarchy takes, if somebody went it.
    pub fn children_bytes(&self) -> usize {
        lock(&self.children).as_ref().map_or(0, |children| children.bytes_allocated())
    }

    /// What finding a key takes beside the rows.
    pub fn index_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.places.allocation_size()
    }

    /// Rows in each of the places that the index has for them.
    pub fn load_factor(&self) -> f64 {
        if self.places.capacity() == 0 { 0.0 } else { self.len() as f64 / self.places.capacity() as f64 }
    }

    fn key(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize..][..span.key_bytes as usize]
    }

    fn row(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize + span.key_bytes as usize..][..span.row_bytes as usize]
    }
}

/// A simple key.
fn key_number(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_le_bytes)
}

/// Rows that are still coming.
pub(super) struct Filling(Held);

impl Filling {
    pub fn new(form: WholeForm, loaded_at: u64) -> Filling {
        let (bytes, spans, places) = (Vec::new(), Vec::new(), HashTable::new());
        Filling(Held { bytes, spans, places, loaded_at, form, children: Mutex::default() })
    }

    /// Adds a row, which `encode` appends. Of rows of the same key the last one counts in FLAT, the first one in
    /// the others: so it is in ClickHouse.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if there are more than 32 bits can count.
    pub fn add(&mut self, key: &[u8], encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), DictError> {
        let Held { bytes, spans, places, form, .. } = &mut self.0;
        let bytes_of =
            |bytes: &[u8], span: Span| xxh3_64(&bytes[span.start as usize..][..span.key_bytes as usize]);
        let entry = places.entry(
            xxh3_64(key),
            |&place| {
                let span = spans[place as usize];
                &bytes[span.start as usize..][..span.key_bytes as usize] == key
            },
            |&place| bytes_of(bytes, spans[place as usize]),
        );
        if matches!(entry, Entry::Occupied(_)) && *form != WholeForm::Flat {
            return Ok(());
        }
        let start = bytes.len();
        bytes.extend_from_slice(key);
        encode(bytes);
        let row_bytes = bytes.len() - start - key.len();
        let (Ok(key_bytes), Ok(row_bytes), Ok(place)) =
            (u32::try_from(key.len()), u32::try_from(row_bytes), u32::try_from(spans.len()))
        else {
            let what =
                "The rows of a dictionary that holds all of them are more, or longer, than 32 bits can count";
            return Err(DictError::new(Code::LimitExceeded, what));
        };
        let span = Span { start: start as u64, key_bytes, row_bytes };
        match entry {
            Entry::Occupied(known) => spans[*known.get() as usize] = span,
            Entry::Vacant(vacant) => {
                vacant.insert(place);
                spans.push(span);
            }
        }
        Ok(())
    }

    /// All of them: FLAT in the order of the keys, as ClickHouse has them; the others in the order of the source.
    pub fn finish(self) -> Held {
        let Filling(mut held) = self;
        if held.form == WholeForm::Flat {
            let bytes = &held.bytes;
            let id = |span: &Span| key_number(&bytes[span.start as usize..][..span.key_bytes as usize]);
            held.spans.sort_unstable_by_key(id);
            let mut places = HashTable::with_capacity(held.spans.len());
            let hash = |place: &u32| xxh3_64(held.key(held.spans[*place as usize]));
            for place in 0..held.spans.len() as u32 {
                places.insert_unique(hash(&place), place, hash);
            }
            held.places = places;
        }
        held.bytes.shrink_to_fit();
        held.spans.shrink_to_fit();
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(form: WholeForm, rows: &[(u64, &str)]) -> Held {
        let mut filling = Filling::new(form, 7);
        for (key, row) in rows {
            filling.add(&key.to_le_bytes(), |bytes| bytes.extend_from_slice(row.as_bytes())).unwrap();
        }
        filling.finish()
    }

    fn shown(held: &Held) -> Vec<(u64, String)> {
        let row = |place| {
            let (key, row) = held.at(place);
            (u64::from_le_bytes(key.try_into().unwrap()), String::from_utf8(row.to_vec()).unwrap())
        };
        (0..held.len()).map(row).collect()
    }

    #[test]
    fn which_of_two_rows_counts_and_in_which_order_they_come_is_as_in_clickhouse() {
        let rows = [(3, "c"), (1, "a"), (900, "z"), (1, "second"), (5, "")];
        let pairs = |rows: &[(u64, &str)]| rows.iter().map(|(k, r)| (*k, r.to_string())).collect::<Vec<_>>();
        let hashed = filled(WholeForm::Hashed, &rows);
        assert_eq!(shown(&hashed), pairs(&[(3, "c"), (1, "a"), (900, "z"), (5, "")]));
        let flat = filled(WholeForm::Flat, &rows);
        assert_eq!(shown(&flat), pairs(&[(1, "second"), (3, "c"), (5, ""), (900, "z")]));
        for held in [hashed, flat] {
            assert_eq!(held.get(&900u64.to_le_bytes()), Some(&b"z"[..]));
            assert_eq!(held.get(&5u64.to_le_bytes()), Some(&b""[..]));
            assert_eq!(held.get(&4u64.to_le_bytes()), None);
        }
    }

    #[test]
    fn every_row_of_many_is_found_and_little_ram_is_taken_beside_them() {
        let mut filling = Filling::new(WholeForm::HashedArray, 7);
        let rows = 200_000u64;
        for id in 0..rows {
            filling.add(&id.to_le_bytes(), |bytes| bytes.extend_from_slice(&(id * 3).to_le_bytes())).unwrap();
        }
        let held = filling.finish();
        assert_eq!(held.len() as u64, rows);
        for id in 0..rows {
            assert_eq!(held.get(&id.to_le_bytes()), Some(&(id * 3).to_le_bytes()[..]));
        }
        assert_eq!(held.get(&rows.to_le_bytes()), None);
        assert!(held.index_bytes() as u64 <= rows * 30, "{} bytes", held.index_bytes());
        assert_eq!(held.bytes_allocated(), held.index_bytes() + rows as usize * 16);
    }
}
