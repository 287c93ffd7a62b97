//! Keys as MongoDB is asked for them: each as a value of its own type, as a text never equals a number there.

use crate::definition::{KeyColumn, ObjectId, Structure};
use crate::error::DictError;
use crate::limits;
use crate::row::{Cells, Raw};
use crate::source::float_keys::{combinations, doubles};
use crate::types::{DataType, kept_digits, print_fixed};
use arrow::array::{Array, ArrayRef};
use mongodb::bson::{self, Binary, Bson, DateTime, Decimal128, Document, doc, spec::BinarySubtype};

/// Conditions that together hold these keys, each short enough for one find: for one key column an `$in`, for several
/// an `$or`. A key that no document can have is left out.
pub(super) fn filters(structure: &Structure, keys: &[ArrayRef]) -> Result<Vec<Document>, DictError> {
    let columns = structure.key_columns();
    let cells = columns
        .iter()
        .zip(keys)
        .map(|(column, array)| Cells::new(&column.data_type, array))
        .collect::<Result<Vec<_>, DictError>>()?;
    let most = if columns.len() == 1 { limits::MONGODB_KEYS_MAX } else { limits::MONGODB_TUPLES_MAX };
    let (mut filters, mut wanted, mut bytes) = (Vec::new(), Vec::new(), 0);
    for row in 0..keys[0].len() {
        let values = columns.iter().zip(&cells).map(|(column, cells)| values(column, cells.get(row)));
        let Some(values) = values.collect::<Option<Vec<Vec<Bson>>>>() else { continue };
        for key in combinations(values) {
            let size: usize = key.iter().map(size).sum();
            if wanted.len() == most || (bytes + size > limits::MONGODB_KEYS_BYTES && !wanted.is_empty()) {
                filters.push(filter(&columns, std::mem::take(&mut wanted)));
                bytes = 0;
            }
            wanted.push(key);
            bytes += size;
        }
    }
    if !wanted.is_empty() {
        filters.push(filter(&columns, wanted));
    }
    Ok(filters)
}

fn filter(columns: &[KeyColumn], wanted: Vec<Vec<Bson>>) -> Document {
    match columns {
        [column] => {
            let values: Vec<Bson> = wanted.into_iter().flatten().collect();
            doc! { &column.name: { "$in": values } }
        }
        _ => {
            let equal = |values: Vec<Bson>| {
                let fields = columns.iter().zip(values).map(|(column, value)| (column.name.clone(), value));
                fields.collect::<Document>()
            };
            doc! { "$or": wanted.into_iter().map(equal).collect::<Vec<_>>() }
        }
    }
}

/// An upper bound of the bytes of a key in a document, without its names.
fn size(value: &Bson) -> usize {
    match value {
        Bson::String(text) => 64 + text.len(),
        _ => 64,
    }
}

/// The values that a key may have in a column; `None`: no document has it.
fn values(column: &KeyColumn, raw: Raw<'_>) -> Option<Vec<Bson>> {
    match (column.data_type.inner(), raw) {
        (DataType::Float32, Raw::Fixed(raw)) => Some(doubles(raw).into_iter().map(Bson::Double).collect()),
        (_, raw) => Some(vec![value(column, raw)?]),
    }
}

/// A key column's value; `None`: no document has it. NULL is what a document has that lacks the field, too.
pub(super) fn value(column: &KeyColumn, raw: Raw<'_>) -> Option<Bson> {
    let data_type = column.data_type.inner();
    let raw = match raw {
        Raw::Null => return Some(Bson::Null),
        Raw::Bit(bit) => return Some(Bson::Boolean(bit)),
        Raw::Text(bytes) => return text(std::str::from_utf8(bytes).ok()?, column.object_id),
        Raw::Items(_) => return None,
        Raw::Fixed(raw) => raw,
    };
    let signed = || raw.first_chunk().map(|raw| i64::from_le_bytes(*raw));
    match data_type {
        DataType::Float32 => raw.first_chunk().map(|raw| Bson::Double(f32::from_le_bytes(*raw).into())),
        DataType::Float64 => raw.first_chunk().map(|raw| Bson::Double(f64::from_le_bytes(*raw))),
        DataType::Date | DataType::Date32 => {
            let days = raw.first_chunk().map(|raw| i32::from_le_bytes(*raw))?;
            Some(moment(i64::from(days) * 86_400_000))
        }
        DataType::DateTime { .. } => signed()?.checked_mul(1000).map(moment),
        DataType::DateTime64 { precision, .. } => {
            milliseconds(signed()?, kept_digits(*precision)).map(moment)
        }
        DataType::Uuid => Some(Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: raw.to_vec() })),
        DataType::Ipv4 | DataType::Ipv6 => Some(Bson::String(printed(data_type, raw))),
        _ => number(&printed(data_type, raw)),
    }
}

/// An ObjectId has one spelling.
fn text(text: &str, object_id: ObjectId) -> Option<Bson> {
    match object_id {
        ObjectId::No => Some(Bson::String(text.to_string())),
        ObjectId::Yes => {
            let id = bson::oid::ObjectId::parse_str(text).ok()?;
            (id.to_hex() == text).then_some(Bson::ObjectId(id))
        }
    }
}

/// Numbers of all kinds are compared by their values; what 64 bits do not hold may be a decimal of 34 digits.
fn number(text: &str) -> Option<Bson> {
    match text.parse::<i64>() {
        Ok(number) => Some(Bson::Int64(number)),
        Err(_) => text.parse::<Decimal128>().ok().map(Bson::Decimal128),
    }
}

/// Ticks of `digits` digits as milliseconds, which MongoDB has; `None`: they are finer.
fn milliseconds(ticks: i64, digits: u8) -> Option<i64> {
    match digits {
        0 => ticks.checked_mul(1000),
        3 => Some(ticks),
        digits => {
            let finer = 10i64.pow(u32::from(digits) - 3);
            (ticks % finer == 0).then_some(ticks / finer)
        }
    }
}

fn moment(milliseconds: i64) -> Bson {
    Bson::DateTime(DateTime::from_millis(milliseconds))
}

fn printed(data_type: &DataType, raw: &[u8]) -> String {
    let mut text = String::new();
    print_fixed(data_type, raw, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_create;
    use arrow::array::{StringArray, UInt64Array};
    use std::sync::Arc;

    fn structure(columns: &str, key: &str) -> Structure {
        let sql = format!(
            "CREATE DICTIONARY d ({columns}) PRIMARY KEY {key} SOURCE(MONGODB(DB 'd' COLLECTION 'c')) \
             LAYOUT(COMPLEX_KEY_DIRECT())"
        );
        parse_create(&sql).unwrap().definition.structure
    }

    fn column(data_type: &str, texts: &[Option<&str>]) -> ArrayRef {
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        DataType::parse(data_type).unwrap().adopt(&texts).unwrap()
    }

    #[test]
    fn one_column_is_a_list_and_several_are_alternatives() {
        let one = structure("a Nullable(String)", "a");
        let keys = column("Nullable(String)", &[Some("it's {$gt: 1}"), None]);
        assert_eq!(filters(&one, &[keys]).unwrap(), [doc! { "a": { "$in": ["it's {$gt: 1}", Bson::Null] } }]);
        let two = structure("`a.b` Int8, `\"'c` Bool", "`a.b`, `\"'c`");
        let keys = [column("Int8", &[Some("-1"), Some("2")]), column("Bool", &[Some("true"), Some("false")])];
        let expected = doc! { "$or": [{ "a.b": -1i64, "\"'c": true }, { "a.b": 2i64, "\"'c": false }] };
        assert_eq!(filters(&two, &keys).unwrap(), [expected]);
    }

    #[test]
    fn keys_are_of_their_own_types() {
        let uuid: Vec<u8> = (0x10..0x20).collect();
        let decimal = |text: &str| Some(Bson::Decimal128(text.parse().unwrap()));
        for (data_type, text, expected) in [
            ("UInt64", "9223372036854775807", Some(Bson::Int64(i64::MAX))),
            ("UInt64", "18446744073709551615", decimal("18446744073709551615")),
            ("Int16", "-300", Some(Bson::Int64(-300))),
            ("Float32", "0.5", Some(Bson::Double(0.5))),
            ("Float64", "-1e300", Some(Bson::Double(-1e300))),
            ("Decimal(9, 2)", "1.50", decimal("1.5")),
            ("Decimal(9, 2)", "3", Some(Bson::Int64(3))),
            ("Int128", "-170141183460469231731687303715884105728", None),
            ("UInt128", "1234567890123456789012345678901234", decimal("1234567890123456789012345678901234")),
            ("Date", "1970-01-02", Some(moment(86_400_000))),
            ("Date32", "1969-12-31", Some(moment(-86_400_000))),
            ("DateTime('Asia/Tokyo')", "1970-01-01 09:00:01", Some(moment(1000))),
            ("DateTime64(0)", "1969-12-31 23:59:59", Some(moment(-1000))),
            ("DateTime64(3)", "1969-12-31 23:59:59.999", Some(moment(-1))),
            ("DateTime64(6)", "1970-01-01 00:00:00.007", Some(moment(7))),
            ("DateTime64(6)", "1970-01-01 00:00:00.0075", None),
            ("DateTime64(9)", "1970-01-01 00:00:00.007", Some(moment(7))),
            (
                "UUID",
                "10111213-1415-1617-1819-1a1b1c1d1e1f",
                Some(Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: uuid })),
            ),
            ("IPv4", "10.0.0.1", Some(Bson::String("10.0.0.1".into()))),
            ("IPv6", "2001:DB8::1", Some(Bson::String("2001:db8::1".into()))),
        ] {
            let structure = structure(&format!("k {data_type}"), "k");
            let found = filters(&structure, &[column(data_type, &[Some(text)])]).unwrap();
            let expected: Vec<Document> =
                expected.map(|value| doc! { "k": { "$in": [value] } }).into_iter().collect();
            assert_eq!(found, expected, "{data_type} {text}");
        }
    }

    #[test]
    fn an_object_id_is_asked_for_as_one() {
        let one = structure("_id String IS_OBJECT_ID, v UInt8", "_id");
        let id = "65e0c3f0a1b2c3d4e5f60718";
        let keys = column("String", &[Some(id), Some("65E0C3F0A1B2C3D4E5F60718"), Some("none"), Some("")]);
        let expected = bson::oid::ObjectId::parse_str(id).unwrap();
        assert_eq!(filters(&one, &[keys]).unwrap(), [doc! { "_id": { "$in": [expected] } }]);
    }

    #[test]
    fn many_keys_are_several_finds() {
        let count = |filters: &[Document]| -> Vec<usize> {
            let of = |filter: &Document| match filter.iter().next() {
                Some((_, Bson::Document(list))) => list.get_array("$in").unwrap().len(),
                Some((_, Bson::Array(list))) => list.len(),
                other => panic!("{other:?}"),
            };
            filters.iter().map(of).collect()
        };
        let keys: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..20_000));
        let one = structure("a UInt64", "a");
        assert_eq!(count(&filters(&one, std::slice::from_ref(&keys)).unwrap()), [16_384, 3616]);
        let two = structure("a UInt64, b UInt64", "a, b");
        assert_eq!(
            count(&filters(&two, &[keys.slice(0, 2050), keys.slice(0, 2050)]).unwrap()),
            [1024, 1024, 2]
        );
        let long: Vec<String> = (0..5).map(|i| format!("{i}{}", "x".repeat(3 << 20))).collect();
        let long: ArrayRef = Arc::new(StringArray::from(long));
        assert_eq!(count(&filters(&structure("a String", "a"), &[long]).unwrap()), [2, 2, 1]);
        let none: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        assert_eq!(filters(&structure("a String IS_OBJECT_ID", "a"), &[none]).unwrap(), []);
    }
}
