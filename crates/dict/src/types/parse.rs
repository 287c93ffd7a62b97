//! Type names as DDL writes them.

use super::DataType;
use crate::error::{Code, DictError};

const ALLOWED: &str = "UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64, Float32, Float64, String, \
     Date, Date32, DateTime, DateTime('time zone'), UUID, Bool, Decimal(P, S) to 38 digits, and Nullable of these";

pub(super) fn parse(text: &str) -> Result<DataType, DictError> {
    let text = text.trim();
    let (name, arguments) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| unknown(text))?;
            (name.trim_end(), Some(inside.trim()))
        }
    };
    let plain = |data_type: DataType| match arguments {
        None | Some("") => Ok(data_type),
        Some(_) => Err(unknown(text)),
    };
    match name {
        "UInt8" => plain(DataType::UInt8),
        "UInt16" => plain(DataType::UInt16),
        "UInt32" => plain(DataType::UInt32),
        "UInt64" => plain(DataType::UInt64),
        "Int8" => plain(DataType::Int8),
        "Int16" => plain(DataType::Int16),
        "Int32" => plain(DataType::Int32),
        "Int64" => plain(DataType::Int64),
        "Float32" => plain(DataType::Float32),
        "Float64" => plain(DataType::Float64),
        "String" => plain(DataType::String),
        "UUID" => plain(DataType::Uuid),
        "Bool" => plain(DataType::Bool),
        "Date" => plain(DataType::Date),
        "Date32" => plain(DataType::Date32),
        "DateTime" => Ok(DataType::DateTime { tz: arguments.map(|a| time_zone(text, a)).transpose()? }),
        "Decimal" => decimal(text, arguments.unwrap_or("")),
        "Decimal32" => sized_decimal(text, 9, arguments),
        "Decimal64" => sized_decimal(text, 18, arguments),
        "Decimal128" => sized_decimal(text, 38, arguments),
        "Nullable" => match parse(arguments.unwrap_or(""))? {
            DataType::Nullable(_) => Err(unknown(text)),
            inner => Ok(DataType::Nullable(Box::new(inner))),
        },
        _ => Err(unknown(text)),
    }
}

fn unknown(text: &str) -> DictError {
    DictError::new(
        Code::UnknownType,
        format!("Unknown type {text} for a dictionary's key or attribute; allowed are {ALLOWED}"),
    )
}

/// A quoted name of the IANA database's alphabet; whether it exists is for whoever shows times.
fn time_zone(text: &str, argument: &str) -> Result<String, DictError> {
    let name = argument.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match name {
        Some(name)
            if !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_+-:".contains(&b)) =>
        {
            Ok(name.to_string())
        }
        _ => Err(unknown(text)),
    }
}

fn decimal(text: &str, arguments: &str) -> Result<DataType, DictError> {
    // ClickHouse: Decimal is Decimal(10, 0), Decimal(P) is Decimal(P, 0).
    let (precision, scale) = match arguments.split_once(',') {
        None if arguments.is_empty() => ("10", "0"),
        None => (arguments, "0"),
        Some((precision, scale)) => (precision.trim(), scale.trim()),
    };
    let precision: u8 = precision.parse().map_err(|_| unknown(text))?;
    build_decimal(text, precision, scale)
}

fn sized_decimal(text: &str, precision: u8, arguments: Option<&str>) -> Result<DataType, DictError> {
    build_decimal(text, precision, arguments.unwrap_or(""))
}

fn build_decimal(text: &str, precision: u8, scale: &str) -> Result<DataType, DictError> {
    match scale.parse::<u8>() {
        Ok(scale) if (1..=38).contains(&precision) && scale <= precision => {
            Ok(DataType::Decimal { precision, scale })
        }
        _ => Err(unknown(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_reads() {
        for text in [
            "UInt8",
            "Int64",
            "Float32",
            "String",
            "Date",
            "Date32",
            "UUID",
            "Bool",
            "DateTime",
            "DateTime('Europe/Moscow')",
            "Decimal(18, 4)",
            "Nullable(Decimal(38, 0))",
            "Nullable(String)",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("Decimal64(3)").unwrap().to_string(), "Decimal(18, 3)");
        assert_eq!(parse(" Decimal( 9 ) ").unwrap().to_string(), "Decimal(9, 0)");
    }

    #[test]
    fn refuses_what_a_row_cannot_hold() {
        for text in [
            "LowCardinality(String)",
            "FixedString(3)",
            "Nullable(Nullable(Int8))",
            "Decimal(39, 1)",
            "Decimal(3, 4)",
            "DateTime(UTC)",
            "DateTime('a''b')",
            "String(3)",
            "uint8",
            "",
            "Nullable",
            "Nullable(",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), 50, "{text}");
            assert!(error.message().contains("allowed are UInt8"), "{text}");
        }
    }
}
