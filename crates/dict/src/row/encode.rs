//! From the columns of a batch to a row's bytes.

use super::cells::Raw;
use super::{Cell, Cells, put_varint};
use crate::definition::{Attribute, Structure};
use crate::error::DictError;
use crate::types::{DataType, Shape};
use std::ops::Range;

/// Where each attribute lies in a row.
#[derive(Debug)]
pub(crate) struct RowFormat {
    pub(super) slots: Vec<Slot>,
    /// How many of the slots the source has.
    asked: usize,
    /// Bytes before the first string.
    pub(super) fixed_bytes: usize,
    /// The types of the items of each array or map in order; `None` for a string.
    pub(super) items: Vec<Option<DataType>>,
    bitmap_bytes: usize,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub data_type: DataType,
    pub place: Location,
    /// Its bit in the bitmap; `None`: never NULL.
    pub null_bit: Option<usize>,
    pub default: Cell,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Location {
    /// Starts at this byte.
    Fixed { at: usize, width: usize },
    /// Is the n-th string, array or map.
    Text { ordinal: usize },
}

impl RowFormat {
    /// `added`: a String that follows the attributes of the source.
    pub fn new(structure: &Structure, added: Option<&Attribute>) -> Result<RowFormat, DictError> {
        let asked = &structure.attributes;
        let nullable = asked.iter().filter(|a| a.data_type.is_nullable()).count();
        let bitmap_bytes = nullable.div_ceil(8);
        let (mut at, mut items, mut bits) = (bitmap_bytes, Vec::new(), 0);
        let mut slots = Vec::with_capacity(asked.len() + 1);
        for attribute in asked.iter().chain(added) {
            let data_type = attribute.data_type.clone();
            let mut fixed = |width: usize| {
                at += width;
                Location::Fixed { at: at - width, width }
            };
            let place = match data_type.shape() {
                Shape::Fixed(width) => fixed(width),
                Shape::Bit => fixed(1),
                shape @ (Shape::Text | Shape::List) => {
                    items.push((shape == Shape::List).then(|| data_type.item().clone()));
                    Location::Text { ordinal: items.len() - 1 }
                }
                Shape::Tuple => unreachable!("a tuple is no attribute"),
            };
            let null_bit = data_type.is_nullable().then_some(bits);
            bits += usize::from(null_bit.is_some());
            slots.push(Slot { data_type, place, null_bit, default: Cell::of_attribute(attribute)? });
        }
        Ok(RowFormat { slots, asked: asked.len(), fixed_bytes: at, items, bitmap_bytes })
    }

    /// The types of the attributes that the source has.
    pub fn data_types(&self) -> impl ExactSizeIterator<Item = &DataType> {
        self.slots[..self.asked].iter().map(|slot| &slot.data_type)
    }

    /// Where a row has an attribute of fixed width.
    pub fn fixed_span(&self, attribute: usize) -> Range<usize> {
        match self.slots[attribute].place {
            Location::Fixed { at, width } => at..at + width,
            Location::Text { .. } => unreachable!("it is not of fixed width"),
        }
    }

    /// What a lookup shows for a key that the source does not have.
    pub fn default_row(&self) -> Vec<u8> {
        let mut row = vec![0; self.fixed_bytes];
        for slot in &self.slots {
            match (&slot.default, slot.place) {
                (Cell::Fixed(raw), Location::Fixed { at, width }) => {
                    row[at..at + width].copy_from_slice(&raw[..width]);
                }
                (Cell::Text(text), _) => {
                    put_varint(&mut row, text.len());
                    row.extend_from_slice(text.as_bytes());
                }
                (Cell::Items(bytes), _) => {
                    put_varint(&mut row, bytes.len());
                    row.extend_from_slice(bytes);
                }
                (Cell::Null, place) => {
                    set_bit(&mut row, slot.null_bit);
                    if let Location::Text { .. } = place {
                        put_varint(&mut row, 0);
                    }
                }
                (Cell::Fixed(_), Location::Text { .. }) => {
                    unreachable!("a default is of its attribute's type")
                }
            }
        }
        row
    }

    /// Appends row `row` of `columns` (one for each attribute that the source has). NULL where the type has none
    /// becomes the default. The caller appends an added attribute, as a length and bytes.
    pub fn encode(&self, columns: &[Cells], row: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.bitmap_bytes, 0);
        for (slot, cells) in self.slots.iter().zip(columns) {
            let Location::Fixed { width, .. } = slot.place else { continue };
            match cells.get(row) {
                Raw::Fixed(raw) => out.extend_from_slice(raw),
                Raw::Bit(bit) => out.push(u8::from(bit)),
                Raw::Text(_) | Raw::Items(_) => unreachable!("Cells were made for this type"),
                Raw::Null => match (&slot.default, slot.null_bit) {
                    (Cell::Fixed(raw), None) => out.extend_from_slice(&raw[..width]),
                    _ => {
                        set_bit(&mut out[start..], slot.null_bit);
                        out.resize(out.len() + width, 0);
                    }
                },
            }
        }
        for (slot, cells) in self.slots.iter().zip(columns) {
            let Location::Text { .. } = slot.place else { continue };
            let text = match cells.get(row) {
                Raw::Text(text) | Raw::Items(text) => text,
                _ => match (&slot.default, slot.null_bit) {
                    (Cell::Text(text), None) => text.as_bytes(),
                    (Cell::Items(bytes), None) => bytes,
                    _ => {
                        set_bit(&mut out[start..], slot.null_bit);
                        &[]
                    }
                },
            };
            put_varint(out, text.len());
            out.extend_from_slice(text);
        }
    }
}

fn set_bit(row: &mut [u8], bit: Option<usize>) {
    if let Some(bit) = bit {
        row[bit / 8] |= 1 << (bit % 8);
    }
}
