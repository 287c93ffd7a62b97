//! The types of keys and attributes: ClickHouse's names, Arrow's arrays.

mod address;
mod best_effort;
mod calendar;
mod composite;
mod elements;
mod escape;
mod foreign;
mod lenient_times;
mod moment;
mod parse;
mod print;
mod rank;
mod refusal;
mod text;
mod unreadable;
mod wide;
mod zone;

pub use address::ipv6_text;
pub(crate) use address::{ipv4_from_text, ipv4_to_text, ipv6_from_text};
pub(crate) use calendar::datetime_to_text;
pub use composite::Element;
pub(crate) use escape::escape;
pub use escape::unescape;
pub use lenient_times::{days_written, seconds_written, ticks_written};
pub use moment::digits_of;
pub(crate) use moment::{extremes, from_ticks, kept_digits, to_ticks, truncate};
pub use print::float_literal;
pub(crate) use print::print_fixed;
pub(crate) use text::{Fixed, lenient_to_fixed, text_to_fixed};
pub(crate) use unreadable::{is_short_time, unreadable};
pub(crate) use wide::sign_extended;
pub use zone::{offset_at, unix_seconds};

use crate::error::DictError;
use arrow::datatypes::{DataType as Arrow, Field, TimeUnit, i256};
use std::collections::HashMap;
use std::fmt;

/// The field metadata key that carries ClickHouse's name of the type.
pub const CLICKHOUSE_TYPE: &str = "clickhouse.type";

/// A key's or attribute's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Unsigned integer of 8 bits.
    UInt8,
    /// Unsigned integer of 16 bits.
    UInt16,
    /// Unsigned integer of 32 bits.
    UInt32,
    /// Unsigned integer of 64 bits.
    UInt64,
    /// Signed integer of 8 bits.
    Int8,
    /// Signed integer of 16 bits.
    Int16,
    /// Signed integer of 32 bits.
    Int32,
    /// Signed integer of 64 bits.
    Int64,
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits.
    Float64,
    /// UTF-8 here; other bytes are refused with an error that says so.
    String,
    /// Days since 1970-01-01, to 2149-06-06.
    Date,
    /// Days since 1970-01-01, from 1900-01-01 to 2299-12-31.
    Date32,
    /// Seconds since 1970-01-01 UTC, 32 bits; the time zone is how it is shown.
    DateTime {
        /// A name of the IANA database; `None`: UTC.
        tz: Option<String>,
    },
    /// Ticks of 10^-`precision` seconds since 1970-01-01 UTC, from 1900-01-01 to 2299-12-31 (with 7 digits or more
    /// to 2262-04-11); the time zone is how it is shown.
    DateTime64 {
        /// Digits behind the point of a second, 0 to 9.
        precision: u8,
        /// A name of the IANA database; `None`: UTC.
        tz: Option<String>,
    },
    /// 16 bytes, in the order of the text.
    Uuid,
    /// An address of IPv4, as a number of 32 bits.
    Ipv4,
    /// 16 bytes, in network byte order; an address of IPv4 is `::ffff:1.2.3.4`.
    Ipv6,
    /// True or false.
    Bool,
    /// Signed integer of 128 bits.
    Int128,
    /// Unsigned integer of 128 bits.
    UInt128,
    /// Signed integer of 256 bits.
    Int256,
    /// `precision` 1 to 76 digits, `scale` of them behind the point.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// Any number of values of one type.
    Array(Box<DataType>),
    /// Keys with values, in the order in which they came; a key that came twice is there twice. What it holds is the
    /// `Tuple` of a key and a value (see [`DataType::map`]).
    Map(Box<DataType>),
    /// Any number of the `Tuple` that it holds, whose elements have names.
    Nested(Box<DataType>),
    /// A value of each of some types, one at least: only in an array, a map or a Nested, as in ClickHouse's
    /// dictionaries.
    Tuple(Vec<Element>),
    /// A type that is not made of others, or NULL.
    Nullable(Box<DataType>),
}

/// Digits that 128 bits hold.
const DECIMAL128_DIGITS: u8 = 38;

/// Digits that 256 bits hold.
const DECIMAL_DIGITS_MAX: u8 = 76;

/// How a type lies in a row and in an Arrow buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// This many raw bytes: 1, 2, 4, 8, 16 or 32.
    Fixed(usize),
    /// One byte, 0 or 1; a bitmap in Arrow.
    Bit,
    /// A length and that many bytes.
    Text,
    /// A length and that many bytes of items.
    List,
    /// Its elements in sequence.
    Tuple,
}

impl DataType {
    /// Reads a type as it is written in DDL, such as `Nullable(DateTime('UTC'))`.
    ///
    /// # Errors
    /// `UNKNOWN_TYPE` for what a dictionary here cannot hold, naming it and what is allowed.
    pub fn parse(text: &str) -> Result<DataType, DictError> {
        parse::parse(text)
    }

    /// Like [`parse`](Self::parse), for a column of a table, which may be a Tuple, too.
    ///
    /// # Errors
    /// `UNKNOWN_TYPE`.
    pub fn parse_column(text: &str) -> Result<DataType, DictError> {
        parse::parse_column(text)
    }

    /// Whether a text is a type that ClickHouse has, whether it is one here or not.
    pub(crate) fn is_known(text: &str) -> bool {
        foreign::is_type(text)
    }

    /// The type inside `Nullable`, or itself.
    pub fn inner(&self) -> &DataType {
        match self {
            DataType::Nullable(inner) => inner,
            other => other,
        }
    }

    /// Whether it is a number, which NULL is not.
    pub(crate) fn is_number(&self) -> bool {
        use DataType::*;
        let others = matches!(self, UInt128 | Int128 | Int256 | Float32 | Float64 | Decimal { .. } | Bool);
        others || self.is_integer()
    }

    /// Whether NULL is a value of this type.
    pub fn is_nullable(&self) -> bool {
        matches!(self, DataType::Nullable(_))
    }

    /// The Arrow type of a column of this type (nullability is the field's).
    pub fn to_arrow(&self) -> Arrow {
        match self {
            DataType::UInt8 => Arrow::UInt8,
            DataType::UInt16 => Arrow::UInt16,
            DataType::UInt32 => Arrow::UInt32,
            DataType::UInt64 => Arrow::UInt64,
            DataType::Int8 => Arrow::Int8,
            DataType::Int16 => Arrow::Int16,
            DataType::Int32 => Arrow::Int32,
            DataType::Int64 => Arrow::Int64,
            DataType::Float32 => Arrow::Float32,
            DataType::Float64 => Arrow::Float64,
            DataType::String => Arrow::Utf8,
            DataType::Date | DataType::Date32 => Arrow::Date32,
            DataType::DateTime { tz } => {
                Arrow::Timestamp(TimeUnit::Second, tz.as_deref().map(std::sync::Arc::from))
            }
            DataType::DateTime64 { precision, tz } => {
                Arrow::Timestamp(moment::unit(*precision), tz.as_deref().map(std::sync::Arc::from))
            }
            DataType::Ipv4 => Arrow::UInt32,
            DataType::Uuid | DataType::Ipv6 => Arrow::FixedSizeBinary(16),
            DataType::Bool => Arrow::Boolean,
            // Arrow's integers end at 64 bits; these decimals compare, sort and add as the integers would.
            DataType::Int128 | DataType::UInt128 => Arrow::Decimal256(39, 0),
            DataType::Int256 => Arrow::Decimal256(DECIMAL_DIGITS_MAX, 0),
            DataType::Decimal { precision: precision @ ..=DECIMAL128_DIGITS, scale } => {
                Arrow::Decimal128(*precision, *scale as i8)
            }
            DataType::Decimal { precision, scale } => Arrow::Decimal256(*precision, *scale as i8),
            DataType::Array(item) | DataType::Nested(item) => Arrow::List(item.to_field("item").into()),
            DataType::Map(entry) => composite::map_to_arrow(entry),
            DataType::Tuple(elements) => composite::tuple_to_arrow(elements),
            DataType::Nullable(inner) => inner.to_arrow(),
        }
    }

    /// An Arrow field of this type that carries ClickHouse's name in its metadata.
    pub fn to_field(&self, name: &str) -> Field {
        Field::new(name, self.to_arrow(), self.is_nullable())
            .with_metadata(HashMap::from([(CLICKHOUSE_TYPE.to_string(), self.to_string())]))
    }

    pub(crate) fn shape(&self) -> Shape {
        match self {
            DataType::UInt8 | DataType::Int8 => Shape::Fixed(1),
            DataType::UInt16 | DataType::Int16 => Shape::Fixed(2),
            DataType::UInt32 | DataType::Int32 | DataType::Float32 => Shape::Fixed(4),
            DataType::Date | DataType::Date32 => Shape::Fixed(4),
            DataType::UInt64 | DataType::Int64 | DataType::Float64 => Shape::Fixed(8),
            DataType::DateTime { .. } | DataType::DateTime64 { .. } => Shape::Fixed(8),
            DataType::Ipv4 => Shape::Fixed(4),
            DataType::Uuid | DataType::Ipv6 => Shape::Fixed(16),
            DataType::Decimal { precision: ..=DECIMAL128_DIGITS, .. } => Shape::Fixed(16),
            DataType::Int128 | DataType::UInt128 | DataType::Int256 | DataType::Decimal { .. } => {
                Shape::Fixed(32)
            }
            DataType::Bool => Shape::Bit,
            DataType::String => Shape::Text,
            DataType::Array(_) | DataType::Map(_) | DataType::Nested(_) => Shape::List,
            DataType::Tuple(_) => Shape::Tuple,
            DataType::Nullable(inner) => inner.shape(),
        }
    }

    /// Whether a value of fixed width is written in quotes where numbers are not.
    pub(crate) fn is_quoted(&self) -> bool {
        use DataType::*;
        matches!(self, Date | Date32 | DateTime { .. } | DateTime64 { .. } | Uuid | Ipv4 | Ipv6)
    }

    /// Whether it is an integer of more than 64 bits.
    pub fn is_wide(&self) -> bool {
        matches!(self, DataType::Int128 | DataType::UInt128 | DataType::Int256)
    }

    /// Whether a number of this type has digits that a float does not keep.
    pub fn is_exact(&self) -> bool {
        self.contains(|plain| plain.is_wide() || matches!(plain, DataType::Decimal { .. }))
    }

    /// Whether this type, an integer of more than 64 bits, has the number.
    pub(crate) fn has(&self, number: i256) -> bool {
        match self {
            DataType::Int128 => wide::INT128.contains(number),
            DataType::UInt128 => wide::UINT128.contains(number),
            _ => true,
        }
    }

    /// Whether a key of this type can stand for a simple (UInt64) key.
    pub(crate) fn is_integer(&self) -> bool {
        use DataType::*;
        matches!(self, UInt8 | UInt16 | UInt32 | UInt64 | Int8 | Int16 | Int32 | Int64)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::DateTime { tz: None } => f.write_str("DateTime"),
            DataType::DateTime { tz: Some(tz) } => write!(f, "DateTime('{tz}')"),
            DataType::DateTime64 { precision, tz: None } => write!(f, "DateTime64({precision})"),
            DataType::DateTime64 { precision, tz: Some(tz) } => write!(f, "DateTime64({precision}, '{tz}')"),
            DataType::Uuid => f.write_str("UUID"),
            DataType::Ipv4 => f.write_str("IPv4"),
            DataType::Ipv6 => f.write_str("IPv6"),
            DataType::Decimal { precision, scale } => write!(f, "Decimal({precision}, {scale})"),
            DataType::Array(item) => write!(f, "Array({item})"),
            DataType::Map(entry) => composite::write_map(entry, f),
            DataType::Nested(item) => composite::write_elements("Nested", item.elements(), f),
            DataType::Tuple(elements) => composite::write_elements("Tuple", elements, f),
            DataType::Nullable(inner) => write!(f, "Nullable({inner})"),
            plain => write!(f, "{plain:?}"),
        }
    }
}
