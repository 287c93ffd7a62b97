//! How a column is asked for: cast by the server to our type, as ClickHouse casts what its dictionaries read.

use crate::source::sql::{is_moment, with_utc_zone};
use crate::types::DataType;

/// Whether a server has Bool. An older one has the same byte as UInt8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoolType {
    Known,
    Unknown,
}

/// How moments come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moments {
    /// Moments come as numbers, which are the same in all zones.
    Numbers,
    /// Moments come as texts, in UTC.
    Texts,
}

/// A column of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SelectedColumn {
    pub expression: String,
    /// The type that it comes in.
    pub data_type: DataType,
}

impl SelectedColumn {
    /// `ours` is the wanted type, `server_type` the name of the one that the server says the expression has.
    pub fn new(
        expression: &str,
        ours: &DataType,
        server_type: &str,
        bool_type: BoolType,
        moments: Moments,
    ) -> SelectedColumn {
        let inner = ours.inner();
        let is_nullable = ours.is_nullable() || server_type.contains("Nullable(") && !ours.is_composite();
        let data_type = match is_nullable {
            true => DataType::Nullable(Box::new(inner.clone())),
            false => inner.clone(),
        };
        let number_as_bool = *inner == DataType::Bool && is_number(server_type);
        let given = match number_as_bool {
            // A server without Bool would keep the lowest byte.
            true => format!("({expression} != 0)"),
            false => expression.to_string(),
        };
        let expression = match ours.is_nullable() {
            // A cast of a text to Nullable makes NULL of what it cannot read, which is an error here.
            false if is_nullable && is_text(server_type) && *inner != DataType::String => {
                let value =
                    read(&format!("ifNull({given}, '{}')", stand_in(inner)), inner, server_type, bool_type);
                format!("toNullable(if(isNull({given}), NULL, {value}))")
            }
            false if !is_nullable => read(&given, inner, server_type, bool_type),
            _ => cast(&given, &zoned(&data_type), bool_type),
        };
        let in_utc = with_utc_zone(&data_type);
        match moments == Moments::Texts && data_type.contains(is_moment) {
            true if in_utc == zoned(&data_type) => SelectedColumn { expression, data_type: in_utc },
            true => SelectedColumn { expression: cast(&expression, &in_utc, bool_type), data_type: in_utc },
            false => SelectedColumn { expression, data_type },
        }
    }
}

/// A value in a type that is not Nullable.
fn read(expression: &str, data_type: &DataType, server_type: &str, bool_type: BoolType) -> String {
    match zoned(data_type) {
        // An older server casts texts and days in its own zone, whatever the type says.
        DataType::DateTime { tz: Some(tz) } if is_text(server_type) || plain(server_type) == "Date" => {
            format!("toDateTime({expression}, '{tz}')")
        }
        zoned => cast(expression, &zoned, bool_type),
    }
}

/// The type with UTC where moments have no zone: other values of the server become moments in UTC.
fn zoned(data_type: &DataType) -> DataType {
    data_type.with_parts(&|plain: &DataType| match plain {
        DataType::DateTime { tz: None } | DataType::DateTime64 { tz: None, .. } => with_utc_zone(plain),
        other => other.clone(),
    })
}

fn cast(expression: &str, data_type: &DataType, bool_type: BoolType) -> String {
    let known = data_type.with_parts(&|plain: &DataType| match (plain, bool_type) {
        (DataType::Bool, BoolType::Unknown) => DataType::UInt8,
        (other, _) => other.clone(),
    });
    format!("CAST({expression} AS {known})")
}

/// A valid text of a type: it is read in place of NULL, and its value is not used.
fn stand_in(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Date | DataType::Date32 => "2000-01-01",
        DataType::DateTime { .. } | DataType::DateTime64 { .. } => "2000-01-01 00:00:00",
        DataType::Uuid => "00000000-0000-0000-0000-000000000000",
        DataType::Ipv4 => "0.0.0.0",
        DataType::Ipv6 => "::",
        _ => "0",
    }
}

/// Whether a server's type, without its wrappers, is one of texts.
fn is_text(server_type: &str) -> bool {
    let plain = plain(server_type);
    plain.starts_with("String") || plain.starts_with("FixedString(")
}

/// Whether a server's type, without its wrappers, is one of numbers.
fn is_number(server_type: &str) -> bool {
    let is_named = |name: &&str| plain(server_type).starts_with(name);
    ["UInt", "Int8", "Int16", "Int32", "Int64", "Int128", "Int256", "Float", "Decimal"].iter().any(is_named)
}

/// The name of a type without wrappers that change none of its values.
fn plain(server_type: &str) -> &str {
    let of_aggregate =
        server_type.strip_prefix("SimpleAggregateFunction(").and_then(|rest| rest.split_once(", "));
    let mut plain = of_aggregate.map_or(server_type, |(_, inner)| inner);
    while let Some(inner) =
        ["LowCardinality(", "Nullable("].iter().find_map(|wrapper| plain.strip_prefix(wrapper))
    {
        plain = inner;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(ours: &str, server_type: &str) -> String {
        let ours = DataType::parse(ours).unwrap();
        SelectedColumn::new("v", &ours, server_type, BoolType::Known, Moments::Numbers).expression
    }

    #[test]
    fn what_cannot_be_read_is_null_where_there_can_be_null_alone() {
        for (ours, server_type, expression) in [
            ("UInt64", "String", "CAST(v AS UInt64)"),
            ("UInt64", "Nullable(Int8)", "CAST(v AS Nullable(UInt64))"),
            ("Nullable(UInt64)", "String", "CAST(v AS Nullable(UInt64))"),
            ("Nullable(UInt64)", "LowCardinality(Nullable(String))", "CAST(v AS Nullable(UInt64))"),
            ("String", "Nullable(String)", "CAST(v AS Nullable(String))"),
            ("UInt64", "Nullable(String)", "toNullable(if(isNull(v), NULL, CAST(ifNull(v, '0') AS UInt64)))"),
            (
                "IPv4",
                "LowCardinality(Nullable(FixedString(16)))",
                "toNullable(if(isNull(v), NULL, CAST(ifNull(v, '0.0.0.0') AS IPv4)))",
            ),
            (
                "Date",
                "SimpleAggregateFunction(anyLast, Nullable(String))",
                "toNullable(if(isNull(v), NULL, CAST(ifNull(v, '2000-01-01') AS Date)))",
            ),
            ("Array(UInt8)", "Array(Nullable(UInt8))", "CAST(v AS Array(UInt8))"),
        ] {
            assert_eq!(asked(ours, server_type), expression, "{ours} {server_type}");
        }
    }

    #[test]
    fn a_number_is_true_if_it_is_not_0() {
        let bool = DataType::Bool;
        for (server_type, bool_type, expression) in [
            ("Int32", BoolType::Known, "CAST((v != 0) AS Bool)"),
            ("Nullable(Float64)", BoolType::Unknown, "CAST((v != 0) AS Nullable(UInt8))"),
            ("String", BoolType::Known, "CAST(v AS Bool)"),
            ("String", BoolType::Unknown, "CAST(v AS UInt8)"),
            ("Bool", BoolType::Known, "CAST(v AS Bool)"),
        ] {
            let column = SelectedColumn::new("v", &bool, server_type, bool_type, Moments::Numbers);
            assert_eq!(column.expression, expression);
            assert_eq!(*column.data_type.inner(), bool);
        }
    }

    #[test]
    fn what_is_no_moment_there_is_one_in_the_zone_of_the_attribute() {
        for (ours, server_type, expression) in [
            ("DateTime", "String", "toDateTime(v, 'UTC')"),
            ("DateTime('Asia/Tokyo')", "Date", "toDateTime(v, 'Asia/Tokyo')"),
            ("DateTime('Asia/Tokyo')", "DateTime", "CAST(v AS DateTime('Asia/Tokyo'))"),
            ("DateTime64(3)", "String", "CAST(v AS DateTime64(3, 'UTC'))"),
            ("Nullable(DateTime)", "String", "CAST(v AS Nullable(DateTime('UTC')))"),
            (
                "DateTime",
                "Nullable(String)",
                "toNullable(if(isNull(v), NULL, toDateTime(ifNull(v, '2000-01-01 00:00:00'), 'UTC')))",
            ),
        ] {
            assert_eq!(asked(ours, server_type), expression, "{ours} {server_type}");
        }
    }

    #[test]
    fn texts_of_moments_are_in_utc() {
        for (ours, expression, data_type) in [
            (
                "DateTime('Asia/Tokyo')",
                "CAST(CAST(v AS DateTime('Asia/Tokyo')) AS DateTime('UTC'))",
                "DateTime('UTC')",
            ),
            ("DateTime", "CAST(v AS DateTime('UTC'))", "DateTime('UTC')"),
            (
                "Array(Nullable(DateTime64(3, 'Asia/Tokyo')))",
                "CAST(CAST(v AS Array(Nullable(DateTime64(3, 'Asia/Tokyo')))) AS Array(Nullable(DateTime64(3, 'UTC'))))",
                "Array(Nullable(DateTime64(3, 'UTC')))",
            ),
            ("Date", "CAST(v AS Date)", "Date"),
        ] {
            let parsed = DataType::parse(ours).unwrap();
            let column = SelectedColumn::new("v", &parsed, ours, BoolType::Known, Moments::Texts);
            assert_eq!(column.expression, expression);
            assert_eq!(column.data_type.to_string(), data_type);
        }
    }
}
