//! Types that ClickHouse has and that no column here is of: what a header says may be one of them.

use super::elements;
use super::parse::parse_column;
use crate::limits::NESTING_MAX;

/// Types without arguments.
const PLAIN: [&str; 24] = [
    "BFloat16",
    "Dynamic",
    "GEOMETRY",
    "Geometry",
    "IntervalDay",
    "IntervalHour",
    "IntervalMicrosecond",
    "IntervalMillisecond",
    "IntervalMinute",
    "IntervalMonth",
    "IntervalNanosecond",
    "IntervalQuarter",
    "IntervalSecond",
    "IntervalWeek",
    "IntervalYear",
    "LineString",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "Nothing",
    "Point",
    "Polygon",
    "Ring",
    "UInt256",
];

/// Types whose names are read in upper and lower case.
const IN_ANY_CASE: [&str; 5] = ["JSON", "SET", "Time", "Time64", "YEAR"];

/// Whether a text is a type that ClickHouse has, whether it is one here or not.
pub(super) fn is_type(text: &str) -> bool {
    parse_column(text).is_ok() || is_foreign(text, NESTING_MAX)
}

/// Whether a text is such a type, of types that nest at most `depth` deep.
fn is_foreign(text: &str, depth: usize) -> bool {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else {
        let is_named = |known: &&str| known.eq_ignore_ascii_case(text);
        return PLAIN.contains(&text) || IN_ANY_CASE.iter().any(is_named) || parse_column(text).is_ok();
    };
    let (name, Some(inside)) = (name.trim_end(), rest.trim_end().strip_suffix(')')) else { return false };
    if depth == 0 {
        return false;
    }
    let arguments = elements::split(inside);
    let is_inner = |text: &str| is_foreign(text, depth - 1);
    match (name, arguments.as_slice()) {
        ("Array" | "Nullable", [inner]) => is_inner(inner),
        ("LowCardinality", [inner]) => is_inner(inner) && !is_composite(inner),
        ("Map", [key, value]) => is_inner(key) && is_inner(value),
        ("Tuple" | "Nested", all) => all.iter().all(|element| match elements::named(element) {
            Some((_, data_type)) => is_inner(data_type),
            None => is_inner(element),
        }),
        ("Variant" | "AggregateFunction", [first, others @ ..]) => {
            // The first argument of an AggregateFunction is the function.
            (name == "AggregateFunction" && !others.is_empty() || is_inner(first))
                && others.iter().all(|other| is_inner(other))
        }
        ("FixedString", [width]) => width.parse::<u32>().is_ok_and(|width| width > 0),
        ("Dynamic" | "QBit", [_, ..]) => true,
        (name, [digits]) if name.eq_ignore_ascii_case("Time64") => {
            digits.parse::<u8>().is_ok_and(|digits| digits <= 9)
        }
        (name, _) if name.eq_ignore_ascii_case("JSON") => true,
        (name, [first, ..]) if is_enum(name) => first.starts_with('\''),
        _ => parse_column(text).is_ok(),
    }
}

fn is_enum(name: &str) -> bool {
    ["Enum8", "Enum16"].contains(&name) || name.eq_ignore_ascii_case("Enum")
}

fn is_composite(text: &str) -> bool {
    ["Array", "Map", "Tuple", "Nested", "Variant"].iter().any(|name| text.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ClickHouse 26.9 takes for types in a header, and what not.
    #[test]
    fn types_are_those_that_clickhouse_has() {
        for text in [
            "UInt64",
            "String(3)",
            "LowCardinality(String)",
            "Map(LowCardinality(String), UInt8)",
            "FixedString(3)",
            "Nullable(FixedString(2))",
            "Tuple(a FixedString(2))",
            "Tuple(UInt8, String)",
            "Tuple()",
            "Enum8('a'=1)",
            "Enum('a','b')",
            "enum('a'=1)",
            "Array(Enum8('a' = 1))",
            "Variant(String, UInt8)",
            "AggregateFunction(sum, UInt8)",
            "JSON(a UInt8)",
            "json",
            "time",
            "Time64(3)",
            "UInt256",
            "IntervalDay",
            "Dynamic",
            "QBit(Float32, 4)",
            "INT",
        ] {
            assert!(is_type(text), "{text}");
        }
        for text in [
            "string",
            "Nosuch",
            "String(",
            "Enum8",
            "FixedString",
            "FixedString(x)",
            "FixedString(0)",
            "LowCardinality",
            "LowCardinality(Array(String))",
            "Variant",
            "Nullable",
            "Array",
            "Map",
            "Array(Nosuch)",
            "Nullable(Nosuch)",
            "Point(1)",
            "",
        ] {
            assert!(!is_type(text), "{text}");
        }
    }
}
