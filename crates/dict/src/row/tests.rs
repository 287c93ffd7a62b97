use super::*;
use crate::definition::{Attribute, Key, KeyColumn, Literal, Structure};
use crate::types::DataType;
use arrow::array::ArrayRef;
use proptest::prelude::*;

const TYPES: [&str; 21] = [
    "UInt8",
    "Int16",
    "UInt32",
    "Int64",
    "Float64",
    "String",
    "Date",
    "DateTime",
    "UUID",
    "Bool",
    "Decimal(20, 3)",
    "Date32",
    "DateTime64(4, 'Asia/Tokyo')",
    "IPv4",
    "IPv6",
    "Decimal(50, 3)",
    "UInt128",
    "Array(UInt16)",
    "Array(Array(Nullable(String)))",
    "Map(String, Nullable(Int16))",
    "Nested(a UInt8, b Array(Tuple(Bool)))",
];

/// A type, and some of its values as text; `None`: NULL.
fn column(rows: usize) -> impl Strategy<Value = (DataType, Vec<Option<String>>)> {
    (0..TYPES.len(), any::<bool>()).prop_flat_map(move |(i, nullable)| {
        let values = match TYPES[i] {
            "UInt8" => any::<u8>().prop_map(|v| v.to_string()).boxed(),
            "Int16" => any::<i16>().prop_map(|v| v.to_string()).boxed(),
            "UInt32" => any::<u32>().prop_map(|v| v.to_string()).boxed(),
            "Int64" => any::<i64>().prop_map(|v| v.to_string()).boxed(),
            "Float64" => any::<f64>().prop_map(|v| v.to_string()).boxed(),
            "String" => prop_oneof![".{0,10}", ".{100,300}"].boxed(),
            "Date" | "Date32" => Just("2024-02-29".to_string()).boxed(),
            "DateTime" => any::<u32>().prop_map(|v| v.to_string()).boxed(),
            "UUID" => Just("00112233-4455-6677-8899-aabbccddeeff".to_string()).boxed(),
            "DateTime64(4, 'Asia/Tokyo')" => {
                (any::<i32>(), 0..10_000u32).prop_map(|(s, f)| format!("{s}.{f:04}")).boxed()
            }
            "IPv4" => any::<[u8; 4]>().prop_map(|v| std::net::Ipv4Addr::from(v).to_string()).boxed(),
            "IPv6" => any::<[u8; 16]>().prop_map(|v| std::net::Ipv6Addr::from(v).to_string()).boxed(),
            "Array(UInt16)" => {
                prop::collection::vec(any::<u16>(), 0..5).prop_map(|v| format!("{v:?}")).boxed()
            }
            "Array(Array(Nullable(String)))" => {
                let item = prop::option::of("[a-z',é ]{0,3}").prop_map(|item| match item {
                    None => "NULL".to_string(),
                    Some(text) => format!("'{}'", text.replace('\'', "\\'")),
                });
                let inner =
                    prop::collection::vec(item, 0..3).prop_map(|items| format!("[{}]", items.join(",")));
                prop::collection::vec(inner, 0..3).prop_map(|inner| format!("[{}]", inner.join(","))).boxed()
            }
            "Map(String, Nullable(Int16))" => {
                let value = prop::option::of(any::<i16>())
                    .prop_map(|value| value.map_or("NULL".to_string(), |value| value.to_string()));
                let entry =
                    ("[a-b',:é ]{0,2}", value).prop_map(|(k, v)| format!("'{}':{v}", k.replace('\'', "\\'")));
                prop::collection::vec(entry, 0..4).prop_map(|all| format!("{{{}}}", all.join(","))).boxed()
            }
            "Nested(a UInt8, b Array(Tuple(Bool)))" => {
                let flags = prop::collection::vec(any::<bool>(), 0..3).prop_map(|flags| {
                    flags.iter().map(|flag| format!("({flag})")).collect::<Vec<_>>().join(",")
                });
                let item = (any::<u8>(), flags).prop_map(|(a, b)| format!("({a},[{b}])"));
                prop::collection::vec(item, 0..3).prop_map(|all| format!("[{}]", all.join(","))).boxed()
            }
            "UInt128" => any::<u128>().prop_map(|v| v.to_string()).boxed(),
            "Bool" => any::<bool>().prop_map(|v| v.to_string()).boxed(),
            _ => any::<i32>().prop_map(|v| format!("{v}.125")).boxed(),
        };
        let data_type = DataType::parse(TYPES[i]).unwrap();
        let data_type = if nullable { DataType::Nullable(Box::new(data_type)) } else { data_type };
        // NULLs come for every type: a source may answer NULL where the type has none.
        let values = prop::collection::vec(prop::option::weighted(0.8, values), rows);
        (Just(data_type), values)
    })
}

fn nullable(data_type: &DataType) -> DataType {
    DataType::Nullable(Box::new(data_type.inner().clone()))
}

fn array(data_type: &DataType, values: &[Option<String>]) -> ArrayRef {
    let mut column = Column::new(data_type);
    for value in values {
        match value {
            None => column.push_null(),
            Some(text) => column.push_parsed(text).unwrap(),
        }
    }
    column.finish().unwrap()
}

proptest! {
    /// Rows go to bytes and back; NULL where the type has none becomes the default; any choice of
    /// attributes, in any order, decodes alike; a cut or changed row is refused or decoded, never a panic.
    #[test]
    fn rows_round_trip(
        columns in prop::collection::vec(column(5), 1..8),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let attributes = columns.iter().enumerate().map(|(i, (data_type, _))| {
            let mut attribute = Attribute::new(format!("a{i}"), data_type.clone());
            if *data_type == DataType::String {
                attribute.default = Some(Literal::Quoted("default".into()));
            }
            attribute
        });
        let structure = Structure { key: Key::Simple { name: "id".into() }, attributes: attributes.collect() };
        let format = RowFormat::new(&structure, None).unwrap();
        let cells: Vec<Cells> =
            columns.iter().map(|(t, values)| Cells::new(t, &array(&nullable(t), values)).unwrap()).collect();
        let wanted: Vec<usize> = order.iter().map(|i| i.index(columns.len())).collect();
        let mut decoder = Decoder::new(&format, &wanted, 0);
        let mut row = Vec::new();
        for i in 0..5 {
            row.clear();
            format.encode(&cells, i, &mut row);
            prop_assert_eq!(decoder.push(&row), Ok(()));
            for length in 0..row.len() {
                let _ = Decoder::new(&format, &wanted, 0).push(&row[..length]);
            }
            let mut changed = row.clone();
            for (at, byte) in &noise {
                if !changed.is_empty() {
                    let at = at.index(changed.len());
                    changed[at] = *byte;
                }
            }
            let mut other = Decoder::new(&format, &wanted, 0);
            let _ = other.push(&changed);
            other.finish().unwrap();
        }
        let decoded = decoder.finish().unwrap();
        for (&attribute, decoded) in wanted.iter().zip(&decoded) {
            let (data_type, values) = &columns[attribute];
            let mut expected = Column::new(data_type);
            for value in values {
                match value {
                    Some(text) => expected.push_parsed(text).unwrap(),
                    None => expected.push_cell(&Cell::of_attribute(&structure.attributes[attribute]).unwrap()),
                }
            }
            prop_assert_eq!(&expected.finish().unwrap(), decoded);
        }
    }

    /// Keys go to bytes and back, different keys to different bytes, and nothing else is a key.
    #[test]
    fn keys_round_trip(columns in prop::collection::vec(column(6), 1..5), garbage in prop::collection::vec(any::<u8>(), 0..40)) {
        let keys: Vec<KeyColumn> = columns
            .iter()
            .enumerate()
            .map(|(i, (data_type, _))| KeyColumn::new(format!("k{i}"), nullable(data_type)))
            .collect();
        let arrays: Vec<ArrayRef> =
            columns.iter().zip(&keys).map(|((_, values), key)| array(&key.data_type, values)).collect();
        let structure = Structure { key: Key::Complex(keys.clone()), attributes: Vec::new() };
        let format = KeyFormat::new(&structure);
        let batch = format.encode(&arrays).unwrap();
        let mut decoded: Vec<Column> = keys.iter().map(|key| Column::new(&key.data_type)).collect();
        for row in 0..6 {
            prop_assert!(format.is_whole(batch.get(row)));
            format.decode(batch.get(row), &mut decoded);
            for other in 0..row {
                let same = columns.iter().zip(&arrays).all(|(_, array)| array.slice(row, 1) == array.slice(other, 1));
                prop_assert_eq!(batch.get(row) == batch.get(other), same);
            }
            let key = batch.get(row);
            prop_assert!(!format.is_whole(&key[..key.len() - 1]));
        }
        for (column, array) in decoded.into_iter().zip(&arrays) {
            prop_assert_eq!(&column.finish().unwrap(), array);
        }
        if format.is_whole(&garbage) {
            let mut columns: Vec<Column> = keys.iter().map(|key| Column::new(&key.data_type)).collect();
            format.decode(&garbage, &mut columns);
        }
    }
}

#[test]
fn the_row_of_the_documentation() {
    let attribute = |name: &str, data_type: &str| Attribute::new(name, DataType::parse(data_type).unwrap());
    let structure = Structure {
        key: Key::Simple { name: "id".into() },
        attributes: vec![
            attribute("s", "Nullable(String)"),
            attribute("n", "UInt16"),
            attribute("t", "String"),
        ],
    };
    let format = RowFormat::new(&structure, None).unwrap();
    let cells = |i: usize, text: Option<&str>| {
        let data_type = &structure.attributes[i].data_type;
        Cells::new(data_type, &array(&nullable(data_type), &[text.map(str::to_string)])).unwrap()
    };
    let mut row = Vec::new();
    format.encode(&[cells(0, Some("ab")), cells(1, Some("258")), cells(2, Some("c"))], 0, &mut row);
    assert_eq!(row, b"\x00\x02\x01\x02ab\x01c");
    row.clear();
    format.encode(&[cells(0, None), cells(1, None), cells(2, None)], 0, &mut row);
    assert_eq!(row, b"\x01\x00\x00\x00\x00");
    assert_eq!(Decoder::new(&format, &[2], 0).push(b"\x00\x02\x01\x02ab\x05c"), Err(decode::BadRow));
    assert_eq!(Decoder::new(&format, &[0], 0).push(b"\x00\x02\x01\x02\xff\xfe\x01c"), Err(decode::BadRow));
    assert_eq!(Decoder::new(&format, &[1], 0).push(b"\x00\x02"), Err(decode::BadRow));
    let mut decoder = Decoder::new(&format, &[2, 0, 1], 0);
    decoder.push(b"\x00\x02\x01\x02ab\x01c").unwrap();
    decoder.push_default();
    decoder.push("\0\x03\x01\x01d\x0a12345678\u{e9}".as_bytes()).unwrap();
    let columns = decoder.columns(&[2, 0, 0, 1]).unwrap();
    let shown: Vec<String> = (0..4)
        .flat_map(|row| columns.iter().map(move |column| (column, row)))
        .map(|(column, row)| arrow::util::display::array_value_to_string(column, row).unwrap())
        .collect();
    assert_eq!(shown, ["12345678\u{e9}", "d", "259", "c", "ab", "258", "c", "ab", "258", "", "", "0"]);
}

#[test]
fn bytes_are_appended_whatever_their_number() {
    let bytes: Vec<u8> = (1..=40).collect();
    for len in 0..bytes.len() {
        let mut out = vec![7; 3];
        super::append(&mut out, &bytes[..len]);
        assert_eq!(out, [&[7; 3], &bytes[..len]].concat());
    }
}
