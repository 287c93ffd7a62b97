//! One Arrow array being built, from raw bytes.

use super::cells::Raw;
use super::list::{self, Nulls};
use super::{Cell, append, value};
use crate::definition::Literal;
use crate::error::{Code, DictError};
use crate::types::{DataType, Element, Fixed, Shape, lenient_to_fixed, text_to_fixed};
use arrow::array::{
    ArrayData, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, ListArray, MapArray, StringArray,
    StructArray, make_array,
};
use arrow::buffer::{Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType as Arrow;
use arrow::error::ArrowError;
use std::sync::Arc;

/// Grows by a value or by many at a time; invariant: `nulls` (if any) and `values` have `len` entries.
#[derive(Debug)]
pub(crate) struct Column {
    data_type: DataType,
    values: ColumnValues,
    /// There from the first NULL on.
    nulls: Option<BooleanBufferBuilder>,
    len: usize,
}

#[derive(Debug)]
enum ColumnValues {
    Fixed { width: usize, bytes: MutableBuffer },
    Bits(BooleanBufferBuilder),
    Text { ends: Vec<i32>, bytes: Vec<u8>, overflowed: Overflow },
    Lists { ends: Vec<i32>, items: Box<Column>, overflowed: Overflow },
    Tuples(Vec<Column>),
}

/// Whether the texts, or the items, of a batch outgrew Arrow's 32-bit offsets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Overflow {
    No,
    Yes,
}

impl Column {
    pub fn new(data_type: &DataType) -> Column {
        Column::with_capacity(data_type, 0)
    }

    pub fn with_capacity(data_type: &DataType, rows: usize) -> Column {
        let values = match data_type.shape() {
            Shape::Fixed(width) => ColumnValues::Fixed { width, bytes: MutableBuffer::new(rows * width) },
            Shape::Bit => ColumnValues::Bits(BooleanBufferBuilder::new(rows)),
            Shape::Text => {
                let mut ends = Vec::with_capacity(rows + 1);
                ends.push(0);
                ColumnValues::Text { ends, bytes: Vec::new(), overflowed: Overflow::No }
            }
            Shape::List => {
                let items = Box::new(Column::new(data_type.item()));
                ColumnValues::Lists { ends: vec![0], items, overflowed: Overflow::No }
            }
            Shape::Tuple => {
                let element = |element: &Element| Column::new(&element.data_type);
                ColumnValues::Tuples(data_type.elements().iter().map(element).collect())
            }
        };
        Column { data_type: data_type.clone(), values, nulls: None, len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of its values, and of their offsets.
    pub fn bytes(&self) -> usize {
        match &self.values {
            ColumnValues::Fixed { bytes, .. } => bytes.len(),
            ColumnValues::Bits(bits) => bits.len() / 8,
            ColumnValues::Text { ends, bytes, .. } => size_of_val(&ends[..]) + bytes.len(),
            ColumnValues::Lists { ends, items, .. } => size_of_val(&ends[..]) + items.bytes(),
            ColumnValues::Tuples(elements) => elements.iter().map(Column::bytes).sum(),
        }
    }

    /// Whether its texts, or its items, outgrew Arrow's offsets.
    pub fn has_overflowed(&self) -> bool {
        match &self.values {
            ColumnValues::Fixed { .. } | ColumnValues::Bits(_) => false,
            ColumnValues::Text { overflowed, .. } => *overflowed == Overflow::Yes,
            ColumnValues::Lists { items, overflowed, .. } => {
                *overflowed == Overflow::Yes || items.has_overflowed()
            }
            ColumnValues::Tuples(elements) => elements.iter().any(Column::has_overflowed),
        }
    }

    /// Adds a fixed-width value; `raw` holds at least the type's width.
    #[inline]
    pub fn push_fixed(&mut self, raw: &[u8]) {
        match &mut self.values {
            ColumnValues::Fixed { width: 8, bytes } => bytes.push(u64::from_le_bytes(first(raw))),
            ColumnValues::Fixed { width: 4, bytes } => bytes.push(u32::from_le_bytes(first(raw))),
            ColumnValues::Fixed { width, bytes } => bytes.extend_from_slice(&raw[..*width]),
            ColumnValues::Bits(bits) => bits.append(raw[0] != 0),
            ColumnValues::Text { .. } | ColumnValues::Lists { .. } | ColumnValues::Tuples(_) => {
                unreachable!("it is not of fixed width")
            }
        }
        self.valid(1);
    }

    /// Adds many fixed-width values that are not NULL: `raw` of each row.
    pub fn extend_fixed<'r>(&mut self, rows: &[u32], raw: impl Fn(u32) -> &'r [u8]) {
        match &mut self.values {
            ColumnValues::Fixed { width: 8, bytes } => {
                bytes.extend(rows.iter().map(|&row| u64::from_le_bytes(first(raw(row)))));
            }
            ColumnValues::Fixed { width: 4, bytes } => {
                bytes.extend(rows.iter().map(|&row| u32::from_le_bytes(first(raw(row)))));
            }
            _ => return rows.iter().for_each(|&row| self.push_fixed(raw(row))),
        }
        self.valid(rows.len());
    }

    /// Adds fixed-width values that are not NULL, which lie in sequence in `raw`.
    #[inline]
    pub fn extend_packed(&mut self, raw: &[u8]) {
        let ColumnValues::Fixed { width, bytes } = &mut self.values else {
            unreachable!("neither a string nor a bit has a width in bytes");
        };
        let count = raw.len() / *width;
        bytes.extend_from_slice(raw);
        self.valid(count);
    }

    /// Adds a string.
    #[inline]
    pub fn push_text(&mut self, text: &[u8]) {
        let ColumnValues::Text { ends, bytes, overflowed } = &mut self.values else {
            unreachable!("only a string has a length");
        };
        match i32::try_from(bytes.len() + text.len()) {
            Ok(end) => {
                bytes.extend_from_slice(text);
                ends.push(end);
            }
            Err(_) => {
                *overflowed = Overflow::Yes;
                ends.push(bytes.len() as i32);
            }
        }
        self.valid(1);
    }

    /// Adds many strings, arrays or maps that are not NULL: `text` of each row.
    pub fn extend_texts<'t>(&mut self, rows: &[u32], text: impl Fn(u32) -> &'t [u8]) {
        let ColumnValues::Text { ends, bytes, overflowed } = &mut self.values else {
            return rows.iter().for_each(|&row| self.push_items(text(row)));
        };
        for &row in rows {
            append(bytes, text(row));
            ends.push(bytes.len() as i32);
        }
        if i32::try_from(bytes.len()).is_err() {
            *overflowed = Overflow::Yes;
        }
        self.valid(rows.len());
    }

    /// Adds an array, a map or a tuple whose bytes are valid.
    pub fn push_items(&mut self, bytes: &[u8]) {
        match &mut self.values {
            ColumnValues::Lists { items, .. } => {
                value::items(self.data_type.item(), bytes).for_each(|value| items.push(value));
                self.end_list();
            }
            ColumnValues::Tuples(columns) => {
                let elements = value::elements(&self.data_type, bytes);
                columns.iter_mut().zip(elements).for_each(|(column, (_, value))| column.push(value));
                self.end_tuples(1);
            }
            _ => unreachable!("it has neither items nor elements"),
        }
    }

    /// The items of the array or map that is being added.
    pub fn items(&mut self) -> &mut Column {
        match &mut self.values {
            ColumnValues::Lists { items, .. } => items,
            _ => unreachable!("it has no items"),
        }
    }

    /// The elements of the tuples that are being added.
    pub fn elements(&mut self) -> &mut [Column] {
        match &mut self.values {
            ColumnValues::Tuples(columns) => columns,
            _ => unreachable!("only a tuple has elements"),
        }
    }

    /// Adds tuples of the elements that were added since the last ones.
    pub fn end_tuples(&mut self, count: usize) {
        self.valid(count);
        let len = self.len;
        debug_assert!(self.elements().iter().all(|column| column.len == len));
    }

    /// Adds an array or a map of the items that were added since the last one.
    pub fn end_list(&mut self) {
        let count = self.items().len;
        self.end_list_at(count);
    }

    /// Adds an array or a map whose items end at `count`.
    pub fn end_list_at(&mut self, count: usize) {
        let ColumnValues::Lists { ends, overflowed, .. } = &mut self.values else {
            unreachable!("it has no items");
        };
        match i32::try_from(count) {
            Ok(end) => ends.push(end),
            Err(_) => {
                *overflowed = Overflow::Yes;
                ends.push(i32::MAX);
            }
        }
        self.valid(1);
    }

    /// Adds a string, or an array or a map whose bytes are valid.
    #[inline]
    pub fn push_sized(&mut self, bytes: &[u8]) {
        match &self.values {
            ColumnValues::Lists { .. } => self.push_items(bytes),
            _ => self.push_text(bytes),
        }
    }

    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: Raw<'_>) {
        match value {
            Raw::Null => self.push_null(),
            Raw::Fixed(raw) => self.push_fixed(raw),
            Raw::Bit(bit) => self.push_fixed(&[u8::from(bit)]),
            Raw::Text(text) => self.push_text(text),
            Raw::Items(bytes) => self.push_items(bytes),
        }
    }

    /// Counts values that were added as not NULL.
    #[inline]
    fn valid(&mut self, count: usize) {
        if let Some(nulls) = &mut self.nulls {
            nulls.append_n(count, true);
        }
        self.len += count;
    }

    /// Adds NULL; the type is Nullable. A tuple is never NULL: it has its elements' defaults instead, as in ClickHouse.
    pub fn push_null(&mut self) {
        match &mut self.values {
            ColumnValues::Fixed { width, bytes } => bytes.extend_zeros(*width),
            ColumnValues::Bits(bits) => bits.append(false),
            ColumnValues::Text { ends, bytes, .. } => ends.push(bytes.len() as i32),
            ColumnValues::Lists { ends, .. } => ends.push(*ends.last().expect("they begin with 0")),
            ColumnValues::Tuples(_) => {
                let defaults = Cell::of_type(self.data_type.inner());
                return self.push_cell(&defaults);
            }
        }
        assert!(self.data_type.is_nullable(), "only a Nullable column takes NULL");
        let none_yet = || {
            let mut nulls = BooleanBufferBuilder::new(self.len + 1);
            nulls.append_n(self.len, true);
            nulls
        };
        self.nulls.get_or_insert_with(none_yet).append(false);
        self.len += 1;
    }

    pub fn push_cell(&mut self, cell: &Cell) {
        match cell {
            Cell::Null => self.push_null(),
            Cell::Fixed(raw) => self.push_fixed(raw),
            Cell::Text(text) => self.push_text(text.as_bytes()),
            Cell::Items(bytes) => self.push_items(bytes),
        }
    }

    pub fn push_literal(&mut self, literal: Option<&Literal>) -> Result<(), DictError> {
        let cell = Cell::of_literal(&self.data_type, literal)?;
        self.push_cell(&cell);
        Ok(())
    }

    /// Adds a value that is not NULL, in ClickHouse's text form.
    pub fn push_parsed(&mut self, text: &str) -> Result<(), DictError> {
        self.push_text_by(text, text_to_fixed, Nulls::Refused)
    }

    /// Adds a value that is not NULL, in ClickHouse's text form. NULL inside of it, where the type of an item, an
    /// element, a key or a value has none, is the default of that type.
    pub fn push_null_as_default(&mut self, text: &str) -> Result<(), DictError> {
        self.push_text_by(text, text_to_fixed, Nulls::Defaults)
    }

    /// Adds a field of a text format, where times are read as people write them.
    pub fn push_lenient(&mut self, text: &str) -> Result<(), DictError> {
        self.push_text_by(text, lenient_to_fixed, Nulls::Refused)
    }

    fn push_text_by(
        &mut self,
        text: &str,
        fixed: fn(&DataType, &str) -> Result<Fixed, DictError>,
        nulls: Nulls,
    ) -> Result<(), DictError> {
        match self.values {
            ColumnValues::Text { .. } => self.push_text(text.as_bytes()),
            ColumnValues::Lists { .. } | ColumnValues::Tuples(_) => {
                self.push_items(&list::parse(&self.data_type, text, nulls)?);
            }
            _ => {
                let raw = fixed(&self.data_type, text)?;
                self.push_fixed(&raw);
            }
        }
        Ok(())
    }

    /// The array, of type `data_type.to_arrow()`.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if the strings of one batch are over 2 GiB or its arrays have more items, `INCORRECT_DATA` if
    /// they are not UTF-8.
    pub fn finish(self) -> Result<ArrayRef, DictError> {
        let nulls =
            self.nulls.map(|mut nulls| NullBuffer::new(nulls.finish())).filter(|n| n.null_count() > 0);
        let incorrect = |e: ArrowError| DictError::new(Code::IncorrectData, e.to_string());
        Ok(match self.values {
            ColumnValues::Fixed { bytes, .. } => {
                let data = ArrayData::builder(self.data_type.to_arrow())
                    .len(self.len)
                    .nulls(nulls)
                    .add_buffer(Buffer::from(bytes));
                make_array(data.build().map_err(incorrect)?)
            }
            ColumnValues::Bits(mut bits) => Arc::new(BooleanArray::new(bits.finish(), nulls)),
            ColumnValues::Text { overflowed: Overflow::Yes, .. } => {
                return Err(DictError::new(
                    Code::LimitExceeded,
                    "The strings of one batch exceed 2 GiB; use a smaller max_block_size",
                ));
            }
            ColumnValues::Lists { overflowed: Overflow::Yes, .. } => {
                return Err(DictError::new(
                    Code::LimitExceeded,
                    "The arrays of one batch have more than 2^31 items; use a smaller max_block_size",
                ));
            }
            ColumnValues::Lists { ends, items, .. } => {
                let (offsets, items) = (OffsetBuffer::new(ScalarBuffer::from(ends)), items.finish()?);
                list_of(&self.data_type, offsets, items, nulls).map_err(incorrect)?
            }
            ColumnValues::Tuples(columns) => {
                let columns = columns.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
                tuple_of(&self.data_type, columns).map_err(incorrect)?
            }
            ColumnValues::Text { ends, bytes, .. } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(StringArray::try_new(offsets, Buffer::from_vec(bytes), nulls).map_err(incorrect)?)
            }
        })
    }
}

/// An array of arrays or maps of type `data_type`, from their items.
pub(super) fn list_of(
    data_type: &DataType,
    offsets: OffsetBuffer<i32>,
    items: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    Ok(match data_type.to_arrow() {
        Arrow::Map(field, ordered) => {
            Arc::new(MapArray::try_new(field, offsets, items.as_struct().clone(), nulls, ordered)?)
        }
        Arrow::List(field) => Arc::new(ListArray::try_new(field, offsets, items, nulls)?),
        other => unreachable!("{other} has no items"),
    })
}

/// An array of tuples of type `data_type`, from their elements.
pub(super) fn tuple_of(data_type: &DataType, columns: Vec<ArrayRef>) -> Result<ArrayRef, ArrowError> {
    match data_type.to_arrow() {
        Arrow::Struct(fields) => Ok(Arc::new(StructArray::try_new(fields, columns, None)?)),
        other => unreachable!("{other} has no elements"),
    }
}

#[inline]
fn first<const N: usize>(raw: &[u8]) -> [u8; N] {
    *raw.first_chunk::<N>().expect("a row checked for its length")
}
