//! Types made of types: arrays, maps, Nested, and the tuples that only lie inside of those.

use super::DataType;
use arrow::datatypes::{DataType as Arrow, Field, Fields};
use std::fmt;

/// An element of a tuple.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// `None`: it has only its position.
    pub name: Option<String>,
    /// Its type.
    pub data_type: DataType,
}

impl DataType {
    /// `Map(key, value)`. A key is never NULL.
    pub fn map(key: DataType, value: DataType) -> DataType {
        let element = |name: &str, data_type| Element { name: Some(name.to_string()), data_type };
        DataType::Map(Box::new(DataType::Tuple(vec![element("key", key), element("value", value)])))
    }

    /// The type of the items of an array, a map or a Nested; a map's and a Nested's are tuples.
    ///
    /// # Panics
    /// If it has none.
    pub(crate) fn item(&self) -> &DataType {
        match self.inner() {
            DataType::Array(item) | DataType::Map(item) | DataType::Nested(item) => item,
            other => unreachable!("{other} has no items"),
        }
    }

    /// The elements of a tuple.
    ///
    /// # Panics
    /// If it is none.
    pub(crate) fn elements(&self) -> &[Element] {
        match self.inner() {
            DataType::Tuple(elements) => elements,
            other => unreachable!("{other} has no elements"),
        }
    }

    /// Whether it is made of other types, so that it has no NULL of its own.
    pub(crate) fn is_composite(&self) -> bool {
        use DataType::{Array, Map, Nested, Tuple};
        matches!(self.inner(), Array(_) | Map(_) | Nested(_) | Tuple(_))
    }

    /// Returns the type with `change` applied to each plain type in it, which may be the type itself.
    pub(crate) fn with_parts(&self, change: &dyn Fn(&DataType) -> DataType) -> DataType {
        let inside = |inner: &DataType| Box::new(inner.with_parts(change));
        match self {
            DataType::Array(inner) => DataType::Array(inside(inner)),
            DataType::Map(inner) => DataType::Map(inside(inner)),
            DataType::Nested(inner) => DataType::Nested(inside(inner)),
            DataType::Nullable(inner) => DataType::Nullable(inside(inner)),
            DataType::Tuple(elements) => {
                let changed = |element: &Element| Element {
                    name: element.name.clone(),
                    data_type: element.data_type.with_parts(change),
                };
                DataType::Tuple(elements.iter().map(changed).collect())
            }
            plain => change(plain),
        }
    }

    /// Whether the type itself, or one of its parts, is wanted.
    pub(crate) fn contains(&self, is_wanted: fn(&DataType) -> bool) -> bool {
        is_wanted(self)
            || match self {
                DataType::Array(inner)
                | DataType::Map(inner)
                | DataType::Nested(inner)
                | DataType::Nullable(inner) => inner.contains(is_wanted),
                DataType::Tuple(elements) => {
                    elements.iter().any(|element| element.data_type.contains(is_wanted))
                }
                _ => false,
            }
    }
}

/// The Arrow type of a tuple; elements without names are called by their places, from 1.
pub(super) fn tuple_to_arrow(elements: &[Element]) -> Arrow {
    let field = |(i, element): (usize, &Element)| match &element.name {
        Some(name) => element.data_type.to_field(name),
        None => element.data_type.to_field(&(i + 1).to_string()),
    };
    Arrow::Struct(elements.iter().enumerate().map(field).collect::<Fields>())
}

/// The Arrow type of a map of such entries.
pub(super) fn map_to_arrow(entry: &DataType) -> Arrow {
    Arrow::Map(Field::new("entries", entry.to_arrow(), false).into(), false)
}

/// `Map(String, UInt8)`.
pub(super) fn write_map(entry: &DataType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match entry.elements() {
        [key, value] => write!(f, "Map({}, {})", key.data_type, value.data_type),
        _ => unreachable!("an entry of a map is a key and a value"),
    }
}

/// `Tuple(UInt8, String)` or `Nested(a UInt8, b String)`.
pub(super) fn write_elements(name: &str, elements: &[Element], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{name}(")?;
    for (i, element) in elements.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        match &element.name {
            Some(name) if is_plain(name) => write!(f, "{name} {}", element.data_type)?,
            Some(name) => {
                let name = name.replace('\\', "\\\\").replace('`', "\\`");
                write!(f, "`{name}` {}", element.data_type)?;
            }
            None => write!(f, "{}", element.data_type)?,
        }
    }
    f.write_str(")")
}

/// Whether a name needs no quotes.
pub(super) fn is_plain(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
