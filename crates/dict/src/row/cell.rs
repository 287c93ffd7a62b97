//! One value by itself: a default, or a field of a text format.

use super::cells::Raw;
use super::list::{self, Nulls};
use super::value;
use crate::definition::{Attribute, Literal};
use crate::error::DictError;
use crate::types::{DataType, Fixed, Shape, lenient_to_fixed, text_to_fixed};

/// A value of some type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    /// A fixed-width value in the low bytes.
    Fixed(Fixed),
    Text(String),
    /// The bytes of the items of an array or a map, or of the elements of a tuple.
    Items(Vec<u8>),
}

/// Whether a text is MySQL's zero date or time, which ClickHouse takes for the first one of its own as a DEFAULT.
fn is_zero_time(data_type: &DataType, text: &str) -> bool {
    match data_type {
        DataType::Date | DataType::Date32 => text == "0000-00-00",
        DataType::DateTime { .. } | DataType::DateTime64 { .. } => text == "0000-00-00 00:00:00",
        _ => false,
    }
}

impl Cell {
    /// What DEFAULT says, or the type's own default.
    pub fn of_literal(data_type: &DataType, literal: Option<&Literal>) -> Result<Cell, DictError> {
        match literal {
            None => Ok(Cell::of_type(data_type)),
            // As in ClickHouse, an empty text says nothing.
            Some(Literal::Quoted(text)) if text.is_empty() => Ok(Cell::of_type(data_type)),
            Some(Literal::Null) if data_type.is_nullable() => Ok(Cell::Null),
            // For a String it is the text of four letters, as in ClickHouse.
            Some(Literal::Null) if *data_type == DataType::String => Ok(Cell::Text("NULL".to_string())),
            Some(Literal::Null) => Err(DictError::parse_text(format!(
                "NULL is not a value of type {data_type}; use Nullable({data_type})"
            ))),
            // As in ClickHouse, the word in quotes is no text where there can be NULL.
            Some(Literal::Quoted(text)) if data_type.is_nullable() && text.eq_ignore_ascii_case("NULL") => {
                Ok(Cell::Null)
            }
            Some(Literal::Quoted(text)) if is_zero_time(data_type.inner(), text) => {
                Ok(Cell::of_type(data_type.inner()))
            }
            Some(Literal::Bare(text) | Literal::Quoted(text)) => Cell::parse(data_type, text),
        }
    }

    /// What a lookup shows for a key that the source does not have.
    pub fn of_attribute(attribute: &Attribute) -> Result<Cell, DictError> {
        Cell::of_literal(&attribute.data_type, attribute.default.as_ref())
            .map_err(|e| e.within(format_args!("Attribute {}", attribute.name)))
    }

    /// Reads ClickHouse's text form of a value that is not NULL.
    pub fn parse(data_type: &DataType, text: &str) -> Result<Cell, DictError> {
        match data_type.shape() {
            Shape::Text => Ok(Cell::Text(text.to_string())),
            Shape::List | Shape::Tuple => list::parse(data_type, text, Nulls::Refused).map(Cell::Items),
            Shape::Fixed(_) | Shape::Bit => text_to_fixed(data_type, text).map(Cell::Fixed),
        }
    }

    /// Like [`parse`](Self::parse), but times are read as people write them.
    pub fn of_written(data_type: &DataType, text: &str) -> Result<Cell, DictError> {
        match data_type.shape() {
            Shape::Fixed(_) | Shape::Bit => lenient_to_fixed(data_type, text).map(Cell::Fixed),
            _ => Cell::parse(data_type, text),
        }
    }

    /// Appends it as an item or an element.
    pub fn put(&self, data_type: &DataType, out: &mut Vec<u8>) {
        let raw = match (self, data_type.shape()) {
            (Cell::Null, _) => Raw::Null,
            (Cell::Fixed(raw), Shape::Fixed(width)) => Raw::Fixed(&raw[..width]),
            (Cell::Fixed(raw), _) => Raw::Bit(raw[0] != 0),
            (Cell::Text(text), _) => Raw::Text(text.as_bytes()),
            (Cell::Items(bytes), _) => Raw::Items(bytes),
        };
        value::put(data_type, &raw, out);
    }

    /// The type's own default.
    pub fn of_type(data_type: &DataType) -> Cell {
        match (data_type, data_type.shape()) {
            (DataType::Nullable(_), _) => Cell::Null,
            (_, Shape::Text) => Cell::Text(String::new()),
            (_, Shape::List) => Cell::Items(Vec::new()),
            (_, Shape::Tuple) => {
                let mut bytes = Vec::new();
                for element in data_type.elements() {
                    Cell::of_type(&element.data_type).put(&element.data_type, &mut bytes);
                }
                Cell::Items(bytes)
            }
            // ClickHouse: 1900-01-01.
            (DataType::Date32, _) => {
                let mut fixed = Fixed::default();
                fixed[..4].copy_from_slice(&(-25_567i32).to_le_bytes());
                Cell::Fixed(fixed)
            }
            (_, Shape::Fixed(_) | Shape::Bit) => Cell::Fixed(Fixed::default()),
        }
    }
}
