//! BSON's values as values of a dictionary.

use super::json;
use crate::error::{Code, DictError};
use crate::row::{Cell, Column};
use crate::types::{DataType, Fixed, datetime_to_text, text_to_fixed};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{RawBsonRef, RawDocument, error::Error};

/// Adds a value to a column of its type, which may be Nullable. A missing value is NULL, or else the type's default.
pub(super) fn push(
    column: &mut Column,
    data_type: &DataType,
    value: Option<RawBsonRef<'_>>,
) -> Result<(), DictError> {
    match (data_type.inner(), value) {
        (_, None | Some(RawBsonRef::Null | RawBsonRef::Undefined)) => {
            column.push_cell(&Cell::of_type(data_type));
            Ok(())
        }
        (DataType::String, Some(RawBsonRef::String(text))) => {
            column.push_text(text.as_bytes());
            Ok(())
        }
        (DataType::Array(item), Some(RawBsonRef::Array(values))) => {
            for value in values {
                push(column.items(), item, Some(value.map_err(|e| unreadable(&e))?))?;
            }
            column.end_list();
            Ok(())
        }
        (DataType::Map(entry), Some(RawBsonRef::Document(fields))) => {
            for field in fields {
                let (name, value) = field.map_err(|e| unreadable(&e))?;
                let [key, kept] = column.items().elements() else { unreachable!("an entry is a pair") };
                key.push_parsed(name.as_str())?;
                push(kept, &entry.elements()[1].data_type, Some(value))?;
                column.items().end_tuples(1);
            }
            column.end_list();
            Ok(())
        }
        (DataType::Nested(row), Some(RawBsonRef::Array(values))) => {
            for value in values {
                match value.map_err(|e| unreadable(&e))? {
                    RawBsonRef::Document(fields) => push_tuple(column.items(), row, fields)?,
                    other => return Err(mismatch(data_type.inner(), other)),
                }
            }
            column.end_list();
            Ok(())
        }
        (plain, Some(value)) => {
            column.push_cell(&cell(plain, value)?);
            Ok(())
        }
    }
}

/// A row of a Nested: its elements by their names.
fn push_tuple(column: &mut Column, row: &DataType, fields: &RawDocument) -> Result<(), DictError> {
    for (place, element) in row.elements().iter().enumerate() {
        let name = element.name.as_deref().unwrap_or_default();
        let value = fields.get(name).map_err(|e| unreadable(&e))?;
        push(&mut column.elements()[place], &element.data_type, value)
            .map_err(|e| e.within(format_args!("Element {name}")))?;
    }
    column.end_tuples(1);
    Ok(())
}

/// A value that is not NULL, of a plain type.
pub(super) fn cell(data_type: &DataType, value: RawBsonRef<'_>) -> Result<Cell, DictError> {
    use DataType::{
        Bool, Date, Date32, DateTime, DateTime64, Decimal, Float32, Float64, Int128, Int256, Ipv4, Ipv6,
        String, UInt128, Uuid,
    };
    match (data_type, value) {
        (String, _) => json::plain(value).map(Cell::Text).ok_or_else(|| mismatch(data_type, value)),
        (Date | Date32 | DateTime { .. } | DateTime64 { .. }, _) => {
            let milliseconds = match value {
                RawBsonRef::DateTime(moment) => moment.timestamp_millis(),
                RawBsonRef::Timestamp(moment) => i64::from(moment.time) * 1000,
                _ => return Err(mismatch(data_type, value)),
            };
            moment(data_type, milliseconds).map(Cell::Fixed)
        }
        (Uuid, RawBsonRef::Binary(binary))
            if binary.subtype == BinarySubtype::Uuid && binary.bytes.len() == 16 =>
        {
            let mut fixed = Fixed::default();
            fixed[..16].copy_from_slice(binary.bytes);
            Ok(Cell::Fixed(fixed))
        }
        // MongoDB has no types for these, or none for all of their values.
        (Uuid | Ipv4 | Ipv6 | Decimal { .. } | Int128 | UInt128 | Int256, RawBsonRef::String(text)) => {
            Cell::parse(data_type, text)
        }
        (Bool, RawBsonRef::Boolean(value)) => Cell::parse(data_type, if value { "1" } else { "0" }),
        (Uuid | Ipv4 | Ipv6, _) => Err(mismatch(data_type, value)),
        (composite, _) if composite.is_composite() => Err(mismatch(data_type, value)),
        (Float32 | Float64 | Decimal { .. }, RawBsonRef::Double(value)) => {
            Cell::parse(data_type, &value.to_string())
        }
        (Float32 | Float64 | Decimal { .. }, RawBsonRef::Decimal128(value)) => {
            Cell::parse(data_type, &value.to_string())
        }
        _ => match integer(value) {
            Some(text) => Cell::parse(data_type, &text),
            None => Err(mismatch(data_type, value)),
        },
    }
}

/// The digits of a number without a fraction.
fn integer(value: RawBsonRef<'_>) -> Option<String> {
    match value {
        RawBsonRef::Int32(value) => Some(value.to_string()),
        RawBsonRef::Int64(value) => Some(value.to_string()),
        RawBsonRef::Boolean(value) => Some(u8::from(value).to_string()),
        RawBsonRef::Double(value) if value.fract() == 0.0 => Some(format!("{:.0}", value + 0.0)),
        RawBsonRef::Decimal128(value) => {
            let text = value.to_string();
            let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
            let (digits, exponent) = digits.split_once('E').unwrap_or((digits, "0"));
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let places = exponent.parse::<i64>().ok()? - fraction.len() as i64;
            let digits = format!("{whole}{fraction}");
            let digits = match usize::try_from(places) {
                // No type here has a hundred digits.
                Ok(places) => format!("{digits}{}", "0".repeat(places.min(100))),
                Err(_) => {
                    let cut = digits.len().checked_sub(usize::try_from(-places).ok()?)?;
                    let (whole, rest) = digits.split_at(cut);
                    rest.bytes().all(|digit| digit == b'0').then(|| format!("0{whole}"))?
                }
            };
            digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| format!("{sign}{digits}"))
        }
        _ => None,
    }
}

/// A moment in UTC, whatever the zone in which it is shown.
fn moment(data_type: &DataType, milliseconds: i64) -> Result<Fixed, DictError> {
    let seconds = datetime_to_text(milliseconds.div_euclid(1000));
    match data_type {
        DataType::Date | DataType::Date32 => {
            text_to_fixed(data_type, seconds.split_once(' ').map_or(&*seconds, |(date, _)| date))
        }
        DataType::DateTime64 { precision, .. } => {
            let utc = DataType::DateTime64 { precision: *precision, tz: None };
            text_to_fixed(&utc, &format!("{seconds}.{:03}Z", milliseconds.rem_euclid(1000)))
        }
        _ => text_to_fixed(&DataType::DateTime { tz: None }, &seconds),
    }
}

/// The error of a value that the type does not have.
fn mismatch(data_type: &DataType, value: RawBsonRef<'_>) -> DictError {
    let shown = json::plain(value)
        .map_or_else(String::new, |text| format!(" {}", text.chars().take(64).collect::<String>()));
    let text = format!(
        "Type mismatch, expected {data_type}, got {}{shown}; a column of type String takes values of all types",
        name(value)
    );
    DictError::new(Code::TypeMismatch, text)
}

/// What MongoDB calls a type.
fn name(value: RawBsonRef<'_>) -> &'static str {
    match value {
        RawBsonRef::Double(_) => "double",
        RawBsonRef::String(_) => "string",
        RawBsonRef::Document(_) => "object",
        RawBsonRef::Array(_) => "array",
        RawBsonRef::Binary(_) => "binData",
        RawBsonRef::ObjectId(_) => "objectId",
        RawBsonRef::Boolean(_) => "bool",
        RawBsonRef::DateTime(_) => "date",
        RawBsonRef::Int32(_) => "int",
        RawBsonRef::Int64(_) => "long",
        RawBsonRef::Decimal128(_) => "decimal",
        RawBsonRef::Timestamp(_) => "timestamp",
        RawBsonRef::RegularExpression(_) => "regex",
        _ => "a value of another type",
    }
}

/// The error of bytes that are no BSON.
pub(super) fn unreadable(e: &Error) -> DictError {
    DictError::new(Code::IncorrectData, format!("MongoDB: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::Decimal128;

    /// Values that FerretDB, on which the rest is tested, does not keep.
    #[test]
    fn decimals_and_numbers_without_an_end() {
        let decimal = |text: &str| RawBsonRef::Decimal128(text.parse::<Decimal128>().unwrap());
        for (data_type, value, expected) in [
            ("UInt64", decimal("18446744073709551615"), Some("18446744073709551615")),
            ("Int64", decimal("-1.20E+3"), Some("-1200")),
            ("Int64", decimal("-7.00"), Some("-7")),
            ("Int64", decimal("0.000"), Some("0")),
            (
                "Int256",
                decimal("9999999999999999999999999999999999E+40"),
                Some("99999999999999999999999999999999990000000000000000000000000000000000000000"),
            ),
            ("Int64", decimal("1E+6000"), None),
            ("Int64", decimal("0.5"), None),
            ("Int64", decimal("120E-2"), None),
            ("Int64", decimal("NaN"), None),
            ("Int64", decimal("-Infinity"), None),
            ("Int64", RawBsonRef::Double(f64::INFINITY), None),
            ("Int64", RawBsonRef::Double(f64::NAN), None),
            ("UInt8", RawBsonRef::Double(-0.0), Some("0")),
            ("Int8", RawBsonRef::Double(-10.0), Some("-10")),
            ("Float64", decimal("1.5E+3"), Some("1500")),
            ("Float64", decimal("-Infinity"), Some("-inf")),
            ("Float64", RawBsonRef::Double(f64::NAN), Some("nan")),
            ("Decimal(9, 2)", decimal("12.345"), Some("12.34")),
            ("Decimal(9, 2)", decimal("1E+5"), Some("100000")),
            ("Decimal(9, 2)", decimal("1E+8"), None),
            ("Decimal(9, 2)", RawBsonRef::Double(f64::INFINITY), None),
            ("String", decimal("1.50"), Some("1.50")),
            ("String", RawBsonRef::Double(f64::INFINITY), Some("inf")),
            ("Bool", decimal("1"), Some("true")),
            ("DateTime", RawBsonRef::Decimal128("5".parse().unwrap()), None),
        ] {
            let data_type = DataType::parse(data_type).unwrap();
            let expected = expected.map(|text| Cell::parse(&data_type, text).unwrap());
            let found = cell(&data_type, value).ok();
            // NaN is equal to nothing, but its bytes are.
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{data_type} {value:?}");
        }
    }
}
