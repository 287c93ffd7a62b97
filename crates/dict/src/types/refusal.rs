//! Messages for types that a dictionary here does not have.

use crate::error::shown;

const ALLOWED: &str = "UInt8, UInt16, UInt32, UInt64, UInt128, Int8, Int16, Int32, Int64, Int128, Int256, Float32, \
     Float64, String, Date, Date32, DateTime, DateTime('time zone'), DateTime64(P), DateTime64(P, 'time zone'), UUID, \
     IPv4, IPv6, Bool, Decimal(P, S) to 76 digits, Nullable of these, Array(T), Map(K, V) and Nested(name T, ..) of all \
     of these, and Tuple inside of those three";

/// Types that ClickHouse's dictionaries do not have either.
const NOWHERE: [&str; 18] = [
    "BFloat16",
    "Dynamic",
    "Enum",
    "Enum16",
    "Enum8",
    "FixedString",
    "LineString",
    "LowCardinality",
    "MultiLineString",
    "MultiPolygon",
    "Nothing",
    "Point",
    "Polygon",
    "Ring",
    "Time",
    "Time64",
    "Tuple",
    "Variant",
];

/// The message.
pub(super) fn refused(text: &str) -> String {
    let shown = shown(text);
    let name = text.split('(').next().unwrap_or_default().trim_end();
    let why = match name {
        "UInt256" => "Type UInt256 is not supported, for Arrow has no number as wide; Int256 and String are",
        "JSON" => "Only ClickHouse's own dictionaries have columns of this type; a String holds the text",
        "Nested" => "Nested has elements of one type each, with their names in front",
        _ if NOWHERE.contains(&name) || name.starts_with("Interval") => {
            "ClickHouse's dictionaries have no columns of this type either"
        }
        _ => "Unknown type",
    };
    format!("{why}: {shown} for a dictionary's key or attribute; allowed are {ALLOWED}")
}
