//! The bytes of a row and of a key with every type, as docs/format.md says. If these change,
//! `ROW_FORMAT_VERSION` must.

use super::{Cells, Column, Decoder, KeyFormat, RowFormat};
use crate::definition::{Attribute, Key, KeyColumn, Structure};
use crate::types::DataType;
use arrow::array::ArrayRef;
use std::sync::Arc;

/// Type, value (`None`: NULL), bytes. Strings, arrays and maps come last in a row, wherever they are declared.
const FIXED: [(&str, Option<&str>, &str); 33] = [
    ("UInt8", Some("200"), "c8"),
    ("Int8", Some("-2"), "fe"),
    ("UInt16", Some("258"), "0201"),
    ("Int16", Some("-2"), "feff"),
    ("UInt32", Some("16909060"), "04030201"),
    ("Int32", Some("-2"), "feffffff"),
    ("UInt64", Some("72623859790382856"), "0807060504030201"),
    ("Int64", Some("-2"), "feffffffffffffff"),
    ("Float32", Some("1.5"), "0000c03f"),
    ("Float64", Some("-2.5"), "00000000000004c0"),
    ("Bool", Some("true"), "01"),
    ("Date", Some("2024-02-29"), "464d0000"),
    ("Date32", Some("1900-01-02"), "229cffff"),
    ("DateTime", Some("1700000000"), "00f1536500000000"),
    ("DateTime('Asia/Tokyo')", Some("1970-01-01 09:00:01"), "0100000000000000"),
    ("UUID", Some("00112233-4455-6677-8899-aabbccddeeff"), "00112233445566778899aabbccddeeff"),
    ("Decimal(9, 2)", Some("1.25"), "7d000000000000000000000000000000"),
    ("Decimal(38, 3)", Some("-0.001"), "ffffffffffffffffffffffffffffffff"),
    ("DateTime64(0)", Some("1700000000"), "00f1536500000000"),
    ("DateTime64(3)", Some("1.002"), "ea03000000000000"),
    ("DateTime64(4, 'Asia/Tokyo')", Some("-0.0001"), "9cffffffffffffff"),
    ("DateTime64(9)", Some("1.000000002"), "02ca9a3b00000000"),
    ("IPv4", Some("1.2.3.4"), "04030201"),
    ("IPv6", Some("2001:db8::1"), "20010db8000000000000000000000001"),
    ("Decimal(39, 1)", Some("-0.2"), "feffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
    ("Decimal(76, 2)", Some("2.58"), "0201000000000000000000000000000000000000000000000000000000000000"),
    ("Int128", Some("-2"), "feffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
    ("UInt128", Some("258"), "0201000000000000000000000000000000000000000000000000000000000000"),
    ("Int256", Some("-2"), "feffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
    ("Nullable(UInt16)", Some("258"), "0201"),
    ("Nullable(UInt16)", None, "0000"),
    ("Nullable(Bool)", Some("false"), "00"),
    ("Nullable(UUID)", None, "00000000000000000000000000000000"),
];

const TEXTS: [(&str, Option<&str>, &str); 11] = [
    ("String", Some("grain"), "05677261696e"),
    ("String", Some(""), "00"),
    ("Array(UInt16)", Some("[258,1]"), "0402010100"),
    ("Array(Array(Bool))", Some("[[],[true]]"), "03000101"),
    ("Array(Nullable(String))", Some("[NULL,'ü']"), "05010002c3bc"),
    ("Nullable(String)", None, "00"),
    ("Nullable(String)", Some("ü"), "02c3bc"),
    ("Map(String, UInt16)", Some("{'ab':258,'':1}"), "080261620201000100"),
    ("Map(UInt8, Nullable(String))", Some("{7:NULL,7:'x'}"), "06070107000178"),
    ("Nested(a UInt8, b String)", Some("[(1,'x')]"), "03010178"),
    ("Array(Tuple(Bool, Map(UInt8, UInt8)))", Some("[(true,{1:2}),(false,{})]"), "06010201020000"),
];

/// Bits of the Nullable ones, in the order they are declared: the second and the fourth of the fixed
/// ones, and the first of the strings.
const BITMAP: &str = "1a";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn array(data_type: &DataType, value: Option<&str>) -> ArrayRef {
    let mut column = Column::new(data_type);
    match value {
        Some(text) => column.push_parsed(text).unwrap(),
        None => column.push_null(),
    }
    column.finish().unwrap()
}

#[test]
fn a_row_with_every_type() {
    let columns: Vec<_> = FIXED.into_iter().chain(TEXTS).collect();
    let types: Vec<DataType> = columns.iter().map(|(name, ..)| DataType::parse(name).unwrap()).collect();
    let attributes = types.iter().enumerate().map(|(i, t)| Attribute::new(format!("a{i}"), t.clone()));
    let structure = Structure { key: Key::Simple { name: "id".into() }, attributes: attributes.collect() };
    let format = RowFormat::new(&structure, None).unwrap();
    let arrays: Vec<ArrayRef> = types.iter().zip(&columns).map(|(t, (_, v, _))| array(t, *v)).collect();
    let cells: Vec<Cells> =
        types.iter().zip(&arrays).map(|(t, array)| Cells::new(t, array).unwrap()).collect();
    let mut row = Vec::new();
    format.encode(&cells, 0, &mut row);
    let expected: String = std::iter::once(BITMAP).chain(columns.iter().map(|(.., bytes)| *bytes)).collect();
    assert_eq!(hex(&row), expected, "the format changed: ROW_FORMAT_VERSION must, too");
    let wanted: Vec<usize> = (0..columns.len()).collect();
    let mut decoder = Decoder::new(&format, &wanted, 1);
    decoder.push(&row).unwrap();
    assert_eq!(decoder.finish().unwrap(), arrays);
}

#[test]
fn a_key_with_every_type() {
    // In a key each Nullable column has a byte before it, 1 for NULL alone, and strings stay in order.
    let columns: Vec<_> = TEXTS.into_iter().chain(FIXED).collect();
    let expected: String = columns
        .iter()
        .map(|(name, value, bytes)| match (name.starts_with("Nullable"), value) {
            (true, None) => "01".to_string(),
            (true, Some(_)) => format!("00{bytes}"),
            (false, _) => bytes.to_string(),
        })
        .collect();
    let keys: Vec<KeyColumn> = columns
        .iter()
        .enumerate()
        .map(|(i, (name, ..))| KeyColumn::new(format!("k{i}"), DataType::parse(name).unwrap()))
        .collect();
    let arrays: Vec<ArrayRef> =
        keys.iter().zip(&columns).map(|(key, (_, value, _))| array(&key.data_type, *value)).collect();
    let format = KeyFormat::new(&Structure { key: Key::Complex(keys), attributes: Vec::new() });
    let batch = format.encode(&arrays).unwrap();
    assert_eq!(hex(batch.get(0)), expected, "the format changed: ROW_FORMAT_VERSION must, too");
    assert!(format.is_whole(batch.get(0)));
    let simple =
        KeyFormat::new(&Structure { key: Key::Simple { name: "id".into() }, attributes: Vec::new() });
    for (id, bytes) in [
        ("0", "00"),
        ("1", "01"),
        ("255", "ff"),
        ("256", "0001"),
        ("300000", "e09304"),
        ("72623859790382856", "0807060504030201"),
        ("18446744073709551615", "ffffffffffffffff"),
    ] {
        let id = array(&DataType::UInt64, Some(id));
        let batch = simple.encode(&[Arc::clone(&id)]).unwrap();
        assert_eq!(hex(batch.get(0)), bytes, "the format changed: ROW_FORMAT_VERSION must, too");
        assert!(simple.is_whole(batch.get(0)));
        let mut columns = [Column::new(&DataType::UInt64)];
        simple.decode(batch.get(0), &mut columns);
        let [column] = columns;
        assert_eq!(*column.finish().unwrap(), *id);
    }
    for no_key in [&[][..], &[0, 0], &[1, 0], &[1; 9]] {
        assert!(!simple.is_whole(no_key));
    }
}
