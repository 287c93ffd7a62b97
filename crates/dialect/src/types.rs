//! ClickHouse's names of Arrow's types.

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use granary_dict::DataType as ClickHouseType;

/// The field metadata that carries a ClickHouse type which Arrow cannot express (UUID, Bool).
pub const CLICKHOUSE_TYPE: &str = "clickhouse.type";

/// The ClickHouse type in a field's metadata, if the field's Arrow type can hold it: functions of DataFusion pass their
/// arguments' metadata on to their results.
pub fn said(field: &Field) -> Option<&str> {
    let name = field.metadata().get(CLICKHOUSE_TYPE)?;
    let said = ClickHouseType::parse_column(name);
    said.map_or(true, |said| holds(&said.to_arrow(), field.data_type())).then_some(name)
}

/// Whether a column of Arrow type `found` can hold the declared type.
fn holds(said: &DataType, found: &DataType) -> bool {
    use DataType::{
        Date32, Date64, Decimal256, Dictionary, FixedSizeList, LargeList, LargeUtf8, List, Map, Struct,
        Timestamp, Utf8, Utf8View,
    };
    let item = |said: &Field, found: &Field| {
        let is_null = said.is_nullable() && !said.data_type().is_nested();
        (!is_null || found.is_nullable()) && holds(said.data_type(), found.data_type())
    };
    match (said, found) {
        (_, Dictionary(_, found)) => holds(said, found),
        (List(said), List(found) | LargeList(found) | FixedSizeList(found, _)) => item(said, found),
        (Map(said, _), Map(found, _)) => holds(said.data_type(), found.data_type()),
        (Struct(said), Struct(found)) => {
            said.len() == found.len() && said.iter().zip(found).all(|(said, found)| item(said, found))
        }
        // Digits and zone only matter for display.
        (Timestamp(said, _), Timestamp(found, _)) => {
            (*said == TimeUnit::Second) == (*found == TimeUnit::Second)
        }
        (Utf8, LargeUtf8 | Utf8View) | (Date32, Date64) => true,
        // Integers of more than 64 bits.
        (Decimal256(_, 0), Decimal256(_, 0)) => true,
        (said, found) => said == found,
    }
}

/// The declared type of a field, if it is one that Arrow does not distinguish or reads differently.
pub fn declared(field: &Field) -> Option<ClickHouseType> {
    ClickHouseType::parse_column(said(field)?).ok().filter(is_beyond_arrow)
}

/// The width of a FixedString field: texts padded with zeros.
pub fn fixed_bytes(field: &Field) -> Option<usize> {
    let name = said(field)?;
    name.strip_prefix("FixedString(")?.strip_suffix(')')?.parse().ok()
}

/// Whether a field of days or seconds is a Date (16 bits of days) or a DateTime (32 bits of seconds).
pub fn is_bounded(field: &Field) -> bool {
    let name = type_name(field);
    !name.contains("Date32") && !name.contains("DateTime64")
}

/// Whether a field holds integers of more than 64 bits, which are decimals in Arrow.
pub fn is_wide(field: &Field) -> bool {
    declared(field).is_some_and(|declared| declared.inner().is_wide())
}

/// Whether a field holds IPv4 addresses, which are numbers in Arrow.
pub(crate) fn is_address(field: &Field) -> bool {
    declared(field).is_some_and(|declared| declared.inner() == &ClickHouseType::Ipv4)
}

/// Whether values of a type are parsed and converted by the rules of dictionaries, not by Arrow's.
pub(crate) fn is_beyond_arrow(data_type: &ClickHouseType) -> bool {
    use ClickHouseType::{
        Array, DateTime64, Decimal, Int128, Int256, Ipv4, Ipv6, Map, Nested, Tuple, UInt128,
    };
    matches!(
        data_type.inner(),
        Array(_)
            | Map(_)
            | Nested(_)
            | Tuple(_)
            | DateTime64 { .. }
            | Ipv4
            | Ipv6
            | Int128
            | UInt128
            | Int256
            | Decimal { precision: 39.., .. }
    )
}

/// The ClickHouse type of a column, as the `WithNamesAndTypes` formats show it.
pub fn type_name(field: &Field) -> String {
    name(field, Tuples::OnOneLine)
}

/// The name of a column's type in ClickHouse, without Nullable.
pub fn plain_field_name(field: &Field) -> String {
    type_name(&field.clone().with_nullable(false))
}

/// The type's name with a line for each element of a named tuple, as `toTypeName` and DESCRIBE show it.
pub fn pretty_type_name(field: &Field) -> String {
    name(field, Tuples::Indented { depth: 1 })
}

/// How named tuples are written.
#[derive(Clone, Copy)]
enum Tuples {
    OnOneLine,
    Indented { depth: usize },
}

fn name(field: &Field, tuples: Tuples) -> String {
    let name = match (said(field), tuples) {
        // The declared name is on one line; a Nested always is.
        (Some(name), Tuples::Indented { .. }) if name.contains("Tuple(") && !name.starts_with("Nested(") => {
            name_of(field.data_type(), tuples)
        }
        (Some(name), _) => match name.strip_prefix("Nullable(").and_then(|name| name.strip_suffix(')')) {
            Some(plain) if !field.is_nullable() => plain.to_owned(),
            _ => name.to_owned(),
        },
        (None, _) => name_of(field.data_type(), tuples),
    };
    let can_be_nullable =
        !["Nullable(", "Tuple(", "Array(", "Map(", "Nested("].iter().any(|p| name.starts_with(p));
    if field.is_nullable() && can_be_nullable { format!("Nullable({name})") } else { name }
}

/// The ClickHouse type without `Nullable`.
pub fn plain_name(data_type: &DataType) -> String {
    name_of(data_type, Tuples::OnOneLine)
}

fn name_of(data_type: &DataType, tuples: Tuples) -> String {
    match data_type {
        DataType::Null => "Nothing".into(),
        // Comparisons and dictHas return Boolean here and UInt8 in ClickHouse; a real Bool carries metadata.
        DataType::Boolean => "UInt8".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "String".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "String".into(),
        DataType::FixedSizeBinary(16) => "UUID".into(),
        DataType::FixedSizeBinary(width) => format!("FixedString({width})"),
        DataType::Date32 | DataType::Date64 => "Date".into(),
        DataType::Timestamp(unit, zone) => timestamp_name(*unit, zone.as_deref()),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("Decimal({precision}, {scale})")
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("Array({})", name(item, tuples))
        }
        DataType::Map(entry, _) => match entry.data_type() {
            DataType::Struct(fields) => {
                let parts: Vec<String> = fields.iter().map(|field| name(field, tuples)).collect();
                format!("Map({})", parts.join(", "))
            }
            other => other.to_string(),
        },
        DataType::Struct(fields) => {
            let named = fields.iter().enumerate().any(|(i, f)| f.name() != &(i + 1).to_string());
            let (inner, before, between) = match tuples {
                Tuples::Indented { depth } if named => {
                    let line = format!("\n{}", "    ".repeat(depth));
                    (Tuples::Indented { depth: depth + 1 }, line.clone(), format!(",{line}"))
                }
                _ => (tuples, String::new(), ", ".to_owned()),
            };
            let items: Vec<String> = fields
                .iter()
                .map(|f| if named { format!("{} {}", f.name(), name(f, inner)) } else { name(f, inner) })
                .collect();
            format!("Tuple({before}{})", items.join(&between))
        }
        // Int8 .. UInt64, Float32, Float64 are spelled alike.
        other => other.to_string(),
    }
}

/// Whether values are dates or times.
pub fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
}

fn timestamp_name(unit: TimeUnit, zone: Option<&str>) -> String {
    let scale = match unit {
        TimeUnit::Second => None,
        TimeUnit::Millisecond => Some(3),
        TimeUnit::Microsecond => Some(6),
        TimeUnit::Nanosecond => Some(9),
    };
    match (scale, zone) {
        (None, None) => "DateTime".into(),
        (None, Some(zone)) => format!("DateTime('{zone}')"),
        (Some(scale), None) => format!("DateTime64({scale})"),
        (Some(scale), Some(zone)) => format!("DateTime64({scale}, '{zone}')"),
    }
}
