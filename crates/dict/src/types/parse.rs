//! Type names as DDL writes them.

use super::refusal::refused;
use super::{DECIMAL_DIGITS_MAX, DataType, Element, elements, zone};
use crate::error::{Code, DictError, shown};
use crate::limits::NESTING_MAX;
use std::collections::HashSet;

/// The default digits of DateTime64, as in ClickHouse.
const USUAL_PRECISION: &str = "3";

pub(super) fn parse(text: &str) -> Result<DataType, DictError> {
    match nested(text, NESTING_MAX)? {
        DataType::Tuple(_) => Err(unknown(text)),
        data_type => Ok(data_type),
    }
}

/// Like [`parse`], for a column of a table, which may be a tuple.
pub(super) fn parse_column(text: &str) -> Result<DataType, DictError> {
    if text.contains("LowCardinality(") {
        let text = format!(
            "Tables here have no LowCardinality: {}. Write the type inside it, such as String for LowCardinality(String)",
            shown(text)
        );
        return Err(DictError::new(Code::UnknownType, text));
    }
    nested(text, NESTING_MAX)
}

/// A type in which types nest at most `depth` deep.
fn nested(text: &str, depth: usize) -> Result<DataType, DictError> {
    let text = text.trim();
    if depth == 0 {
        return Err(unknown(text));
    }
    let (name, arguments) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| unknown(text))?;
            (name.trim_end(), Some(inside.trim()))
        }
    };
    let plain = |data_type: DataType| match arguments {
        None | Some("") => Ok(data_type),
        Some(_) => Err(DictError::new(
            Code::DataTypeCannotHaveArguments,
            format!("Data type {} cannot have arguments", shown(name)),
        )),
    };
    // The display width or maximum length that other databases give is dropped.
    let sized = |data_type: DataType| match arguments.unwrap_or_default() {
        "" => Ok(data_type),
        width if width.parse::<u64>().is_ok() => Ok(data_type),
        _ => Err(unknown(text)),
    };
    match name {
        "UInt8" => sized(DataType::UInt8),
        "UInt16" => sized(DataType::UInt16),
        "UInt32" => sized(DataType::UInt32),
        "UInt64" => sized(DataType::UInt64),
        "Int8" => sized(DataType::Int8),
        "Int16" => sized(DataType::Int16),
        "Int32" => sized(DataType::Int32),
        "Int64" => sized(DataType::Int64),
        "Float32" => sized(DataType::Float32),
        "Float64" => sized(DataType::Float64),
        "String" => sized(DataType::String),
        "UUID" => plain(DataType::Uuid),
        "Bool" => plain(DataType::Bool),
        "Date" => plain(DataType::Date),
        "Date32" => plain(DataType::Date32),
        "IPv4" => plain(DataType::Ipv4),
        "IPv6" => plain(DataType::Ipv6),
        "Int128" => sized(DataType::Int128),
        "UInt128" => sized(DataType::UInt128),
        "Int256" => sized(DataType::Int256),
        "DateTime64" => datetime64(text, arguments.unwrap_or(USUAL_PRECISION)),
        "DateTime" => match arguments {
            None | Some("") => Ok(DataType::DateTime { tz: None }),
            Some(argument) if argument.starts_with('\'') => {
                Ok(DataType::DateTime { tz: Some(time_zone(text, argument)?) })
            }
            Some(precision) => datetime64(text, precision),
        },
        "Decimal" => decimal(text, arguments.unwrap_or("")),
        "Decimal32" => sized_decimal(text, 9, arguments),
        "Decimal64" => sized_decimal(text, 18, arguments),
        "Decimal128" => sized_decimal(text, 38, arguments),
        "Decimal256" => sized_decimal(text, DECIMAL_DIGITS_MAX, arguments),
        "Array" => {
            let item = one("Array has one argument, the type of its items", text, arguments)?;
            Ok(DataType::Array(Box::new(nested(item, depth - 1)?)))
        }
        "Map" => map(text, arguments.unwrap_or(""), depth - 1),
        "Nested" => match tuple(text, arguments.unwrap_or(""), depth - 1)? {
            all if all.iter().any(|element| element.name.is_none()) => Err(unknown(text)),
            all => Ok(DataType::Nested(Box::new(DataType::Tuple(all)))),
        },
        "Tuple" => Ok(DataType::Tuple(tuple(text, arguments.unwrap_or(""), depth - 1)?)),
        "Nullable" => match nested(one("Nullable has one argument, a type", text, arguments)?, depth - 1)? {
            inner if inner.is_nullable() || inner.is_composite() => {
                let message =
                    format!("Nested type {} cannot be inside Nullable type", shown(&inner.to_string()));
                Err(DictError::new(Code::IllegalTypeOfArgument, message))
            }
            inner => Ok(DataType::Nullable(Box::new(inner))),
        },
        _ => match other_name(name) {
            Some(name) => match arguments {
                None => nested(name, depth - 1),
                Some(arguments) => nested(&format!("{name}({arguments})"), depth - 1),
            },
            None => Err(unknown(text)),
        },
    }
}

/// Names of other databases, and spellings, that ClickHouse takes in any case.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("Int8", &["TINYINT", "INT1"]),
    ("Int16", &["SMALLINT"]),
    ("Int32", &["INT", "INTEGER", "MEDIUMINT"]),
    ("Int64", &["BIGINT", "SIGNED"]),
    ("UInt64", &["UNSIGNED", "BIT"]),
    ("Float32", &["FLOAT", "REAL", "SINGLE"]),
    ("Float64", &["DOUBLE"]),
    (
        "String",
        &["TEXT", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "VARCHAR", "CHAR", "NVARCHAR", "CLOB", "BLOB"],
    ),
    ("Decimal", &["DECIMAL", "DEC", "NUMERIC", "FIXED"]),
    ("Bool", &["BOOL", "BOOLEAN"]),
    ("Date", &["DATE"]),
    ("Date32", &["DATE32"]),
    ("DateTime", &["DATETIME", "TIMESTAMP"]),
    ("DateTime64", &["DATETIME64"]),
    ("IPv4", &["INET4"]),
    ("IPv6", &["INET6"]),
];

/// The type that another name stands for.
fn other_name(name: &str) -> Option<&'static str> {
    let is_named = |others: &[&str]| others.iter().any(|other| other.eq_ignore_ascii_case(name));
    OTHER_NAMES.iter().find(|(ours, others)| *ours != name && is_named(others)).map(|(ours, _)| *ours)
}

fn unknown(text: &str) -> DictError {
    DictError::new(Code::UnknownType, refused(text))
}

fn wrong_count(what: &str, text: &str) -> DictError {
    DictError::new(Code::NumberOfArgumentsDoesntMatch, format!("{what}: {}", shown(text)))
}

/// The one argument of a type that has one.
fn one<'a>(what: &str, text: &str, arguments: Option<&'a str>) -> Result<&'a str, DictError> {
    match elements::split(arguments.unwrap_or(""))[..] {
        [only] => Ok(only),
        _ => Err(wrong_count(what, text)),
    }
}

fn out_of_bound(what: impl Into<String>) -> DictError {
    DictError::new(Code::ArgumentOutOfBound, what)
}

fn illegal(what: impl Into<String>) -> DictError {
    DictError::new(Code::IllegalTypeOfArgument, what)
}

fn map(text: &str, arguments: &str, depth: usize) -> Result<DataType, DictError> {
    let [key, value] = elements::split(arguments)[..] else {
        return Err(wrong_count("Map has two arguments, the types of its keys and of its values", text));
    };
    match (nested(key, depth)?, nested(value, depth)?) {
        (key @ DataType::Nullable(_), _) => {
            let key = key.to_string();
            Err(DictError::bad_arguments(format!("Map cannot have a key of type {}", shown(&key))))
        }
        (key, value) => Ok(DataType::map(key, value)),
    }
}

/// The elements of a tuple or a Nested: all of them have names, or none has one.
fn tuple(text: &str, arguments: &str, depth: usize) -> Result<Vec<Element>, DictError> {
    let (mut all, mut names): (Vec<Element>, _) = (Vec::new(), HashSet::new());
    for argument in elements::split(arguments) {
        let (name, data_type) = match elements::named(argument) {
            Some((name, data_type)) => (Some(name), data_type),
            None => (None, argument),
        };
        if all.first().is_some_and(|first| first.name.is_some() != name.is_some()) {
            let message = format!("Names are specified not for all elements of {}", shown(text));
            return Err(DictError::bad_arguments(message));
        }
        if name.as_ref().is_some_and(|name| !names.insert(name.clone())) {
            let message = format!("Names of tuple elements must be unique: {}", shown(text));
            return Err(DictError::new(Code::DuplicateColumn, message));
        }
        all.push(Element { name, data_type: nested(data_type, depth)? });
    }
    if all.is_empty() { Err(unknown(text)) } else { Ok(all) }
}

fn datetime64(text: &str, arguments: &str) -> Result<DataType, DictError> {
    let shown = shown(text);
    let (precision, tz) = match arguments.split_once(',') {
        None => (arguments, None),
        Some((precision, tz)) => (precision.trim_end(), Some(time_zone(text, tz.trim_start())?)),
    };
    match precision.parse::<u64>() {
        Ok(precision @ 0..=9) => Ok(DataType::DateTime64 { precision: precision as u8, tz }),
        Ok(_) => Err(out_of_bound(format!("{shown}: a DateTime64 has 9 digits behind the point at most"))),
        Err(_) => Err(illegal(format!("{shown}: the first argument of DateTime64 is a number, its digits"))),
    }
}

fn time_zone(text: &str, argument: &str) -> Result<String, DictError> {
    match argument.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(name) if zone::exists(name) => Ok(name.to_string()),
        Some(name) => Err(DictError::new(
            Code::BadArguments,
            format!("{}: there is no time zone {} in the IANA database", shown(text), shown(name)),
        )),
        None => Err(unknown(text)),
    }
}

fn decimal(text: &str, arguments: &str) -> Result<DataType, DictError> {
    let shown = shown(text);
    // ClickHouse: Decimal is Decimal(10, 0), Decimal(P) is Decimal(P, 0).
    let (precision, scale) = match elements::split(arguments)[..] {
        [] => ("10", "0"),
        [precision] => (precision, "0"),
        [precision, scale] => (precision, scale),
        _ => return Err(wrong_count("Decimal has two arguments at most, its digits and its scale", text)),
    };
    let digits: u64 = precision
        .parse()
        .map_err(|_| illegal(format!("{shown}: the first argument of Decimal is a number")))?;
    match u8::try_from(digits) {
        Ok(digits @ 1..=DECIMAL_DIGITS_MAX) => build_decimal(text, digits, scale),
        _ => Err(out_of_bound(format!("{shown}: a Decimal has from 1 to {DECIMAL_DIGITS_MAX} digits"))),
    }
}

fn sized_decimal(text: &str, precision: u8, arguments: Option<&str>) -> Result<DataType, DictError> {
    build_decimal(text, precision, one("Such a Decimal has one argument, its scale", text, arguments)?)
}

fn build_decimal(text: &str, precision: u8, scale: &str) -> Result<DataType, DictError> {
    let shown = shown(text);
    let scale: i64 =
        scale.parse().map_err(|_| illegal(format!("{shown}: the scale of a Decimal is a number")))?;
    match u8::try_from(scale) {
        Ok(scale) if scale <= precision => Ok(DataType::Decimal { precision, scale }),
        _ => Err(out_of_bound(format!("{shown}: the scale of this Decimal is from 0 to {precision}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

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
            "Decimal(76, 76)",
            "Nullable(String)",
            "DateTime64(0)",
            "DateTime64(9, 'Asia/Tokyo')",
            "IPv4",
            "Nullable(IPv6)",
            "Int128",
            "UInt128",
            "Int256",
            "Array(Array(Nullable(DateTime64(3, 'UTC'))))",
            "Map(String, Nullable(Decimal(9, 2)))",
            "Map(Array(Date), Map(UInt8, Array(Tuple(String, Nullable(DateTime('UTC'))))))",
            "Array(Tuple(a UInt8, b Tuple(UInt8, UInt8)))",
            "Nested(a UInt8, `b c\\`` Map(String, String))",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("Decimal64(3)").unwrap().to_string(), "Decimal(18, 3)");
        assert_eq!(parse("Decimal256(3)").unwrap().to_string(), "Decimal(76, 3)");
        assert_eq!(parse("DateTime64").unwrap().to_string(), "DateTime64(3)");
        assert_eq!(parse("DateTime64( 4 , 'UTC' )").unwrap().to_string(), "DateTime64(4, 'UTC')");
        for (text, name) in [
            ("Int", "Int32"),
            ("UInt64(5)", "UInt64"),
            ("String(3)", "String"),
            ("DateTime(3)", "DateTime64(3)"),
            ("DateTime()", "DateTime"),
            ("bigint", "Int64"),
            ("VARCHAR(255)", "String"),
            ("Nullable(Double)", "Nullable(Float64)"),
            ("NUMERIC(18, 4)", "Decimal(18, 4)"),
            ("boolean", "Bool"),
            ("timestamp('UTC')", "DateTime('UTC')"),
            ("Array(INET4)", "Array(IPv4)"),
            ("Map( TEXT,Map(String , BIGINT) )", "Map(String, Map(String, Int64))"),
            ("Nested(`a`  INT,\"b\" Decimal (9,2))", "Nested(a Int32, b Decimal(9, 2))"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), name);
        }
        assert_eq!(parse(" Decimal( 9 ) ").unwrap().to_string(), "Decimal(9, 0)");
    }

    #[test]
    fn a_long_tuple_takes_no_longer_than_its_text_and_an_error_repeats_little_of_it() {
        let elements: Vec<String> = (0..100_000).map(|i| format!("e{i} UInt8")).collect();
        let (list, started) = (elements.join(", "), Instant::now());
        assert_eq!(parse(&format!("Array(Tuple({list}))")).unwrap().item().elements().len(), 100_000);
        for text in
            [format!("Array(Tuple({list}, e7 UInt8))"), format!("Tuple({list})"), format!("Map({list})")]
        {
            let error = parse(&text).unwrap_err();
            assert!(error.message().len() < 1000, "{} letters", error.message().len());
        }
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[test]
    fn refuses_what_a_row_cannot_hold() {
        for text in [
            "LowCardinality(String)",
            "FixedString(3)",
            "DateTime64(3, UTC)",
            "UInt256",
            "Array(LowCardinality(String))",
            "Map(LowCardinality(String), UInt8)",
            "Map(String, )",
            "Map(String, Enum8('a' = 1))",
            "Nested",
            "Nested()",
            "Nested(UInt8, String)",
            "Array(Tuple())",
            "JSON",
            "Enum8('a' = 1)",
            "Tuple(UInt8, String)",
            "INT(11, 2)",
            "uint8",
            "",
            "Nullable(",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), 50, "{text}");
            assert!(error.message().contains("allowed are UInt8"), "{text}");
        }
        for (text, code) in [
            ("Nullable(Nullable(Int8))", 43),
            ("Nullable", 42),
            ("Nullable(Int8, Int8)", 42),
            ("Decimal(77, 1)", 69),
            ("Decimal(0)", 69),
            ("Decimal(3, 4)", 69),
            ("Decimal(3, -1)", 69),
            ("Decimal32(10)", 69),
            ("Decimal32", 42),
            ("Decimal(3, 1, 1)", 42),
            ("Decimal(-1, 0)", 43),
            ("DateTime64(10)", 69),
            ("DateTime64(-1)", 43),
            ("DateTime(UTC)", 43),
            ("IPv4(4)", 378),
            ("Array", 42),
            ("Array()", 42),
            ("Array(UInt8, UInt8)", 42),
            ("Map", 42),
            ("Map(String)", 42),
            ("Map(String, UInt8, UInt8)", 42),
            ("Map(Nullable(String), UInt8)", 36),
            ("Nullable(Array(UInt8))", 43),
            ("Nullable(Map(String, UInt8))", 43),
            ("Array(Nullable(Tuple(UInt8)))", 43),
            ("Nullable(Nested(a UInt8))", 43),
            ("Array(Tuple(a UInt8, String))", 36),
            ("Array(Nested(a UInt8,))", 36),
            ("Nested(a UInt8, a UInt8)", 15),
            ("DateTime('Mars/Olympus')", 36),
            ("Map(String, DateTime('Mars/Olympus'))", 36),
        ] {
            assert_eq!(parse(text).unwrap_err().code(), code, "{text}");
        }
        assert_eq!(parse("DateTime64(3, 'Mars/Olympus')").unwrap_err().code(), 36);
        for deep in ["Nullable(", "Array(", "Map(UInt8, ", "Tuple(a ", "Nested(a "] {
            let text = format!("{}UInt8{}", deep.repeat(1 << 17), ")".repeat(1 << 17));
            assert_eq!(parse(&text).unwrap_err().code(), 50);
        }
    }
}
