//! The types of keys and attributes: ClickHouse's names, Arrow's arrays.

mod calendar;
mod parse;
mod print;
mod text;

pub(crate) use calendar::datetime_to_text;
pub(crate) use print::print_fixed;
pub(crate) use text::{Fixed, text_to_fixed};

use crate::error::DictError;
use arrow::datatypes::{DataType as Arrow, Field, TimeUnit};
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
    /// 16 bytes, in the order of the text.
    Uuid,
    /// True or false.
    Bool,
    /// `precision` 1 to 38 digits, `scale` of them behind the point.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// A type of the above, or NULL.
    Nullable(Box<DataType>),
}

/// How a type lies in a row and in an Arrow buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// So many raw bytes: 1, 2, 4, 8 or 16.
    Fixed(usize),
    /// One byte, 0 or 1; a bitmap in Arrow.
    Bit,
    /// A length and that many bytes.
    Text,
}

impl DataType {
    /// Reads a type as it is written in DDL, such as `Nullable(DateTime('UTC'))`.
    ///
    /// # Errors
    /// `UNKNOWN_TYPE` for what a dictionary here cannot hold, naming it and what is allowed.
    pub fn parse(text: &str) -> Result<DataType, DictError> {
        parse::parse(text)
    }

    /// The type inside `Nullable`, or itself.
    pub fn inner(&self) -> &DataType {
        match self {
            DataType::Nullable(inner) => inner,
            other => other,
        }
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
            DataType::Uuid => Arrow::FixedSizeBinary(16),
            DataType::Bool => Arrow::Boolean,
            DataType::Decimal { precision, scale } => Arrow::Decimal128(*precision, *scale as i8),
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
            DataType::DateTime { .. } => Shape::Fixed(8),
            DataType::Uuid | DataType::Decimal { .. } => Shape::Fixed(16),
            DataType::Bool => Shape::Bit,
            DataType::String => Shape::Text,
            DataType::Nullable(inner) => inner.shape(),
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
            DataType::Uuid => f.write_str("UUID"),
            DataType::Decimal { precision, scale } => write!(f, "Decimal({precision}, {scale})"),
            DataType::Nullable(inner) => write!(f, "Nullable({inner})"),
            plain => write!(f, "{plain:?}"),
        }
    }
}
