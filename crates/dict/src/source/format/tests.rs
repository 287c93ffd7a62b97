mod bounds;

use super::*;
use crate::definition::{Attribute, Key, KeyColumn, Structure};
use arrow::array::{
    AsArray, Date32Array, FixedSizeBinaryArray, Int32Array, RecordBatch, StringArray, TimestampSecondArray,
    UInt64Array,
};
use arrow::datatypes::{Date32Type, Decimal128Type, Float64Type, TimestampSecondType, UInt64Type};
use std::sync::Arc;

fn structure() -> Structure {
    let attribute = |name: &str, text: &str| Attribute::new(name, DataType::parse(text).unwrap());
    Structure {
        key: Key::Simple { name: "id".into() },
        attributes: vec![
            attribute("s", "String"),
            attribute("n", "Nullable(Float64)"),
            attribute("d", "Date"),
            attribute("t", "DateTime"),
            attribute("u", "UUID"),
            attribute("m", "Decimal(9, 2)"),
            attribute("b", "Bool"),
        ],
    }
}

fn read_all(format: Format, bytes: &[u8]) -> Result<RecordBatch, DictError> {
    let mut rows = Rows::new(&structure());
    read_rows(format, bytes, &mut rows)?;
    rows.finish(&[])
}

/// The two rows that every format below writes.
fn check(batch: &RecordBatch) {
    assert_eq!(batch.num_rows(), 2);
    let column = |i: usize| batch.column(i);
    assert_eq!(column(0).as_primitive::<UInt64Type>().values(), &[7, u64::MAX]);
    assert_eq!(column(1).as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a\tb\"'\\\n,", ""]);
    assert_eq!(column(2).as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), [None, Some(-1.5)]);
    assert_eq!(column(3).as_primitive::<Date32Type>().values(), &[1, 65_535]);
    assert_eq!(column(4).as_primitive::<TimestampSecondType>().values(), &[61, u32::MAX.into()]);
    assert_eq!(column(5).as_fixed_size_binary().value(0)[..3], [0x00, 0x11, 0x22]);
    assert_eq!(column(6).as_primitive::<Decimal128Type>().values(), &[-1250, 5]);
    assert_eq!(column(7).as_boolean().iter().flatten().collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_header_is_found_as_clickhouse_finds_it() {
    let ids = |format, bytes: &[u8]| {
        let batch = read_all(format, bytes)?;
        let text = batch.column(1).as_string::<i32>().iter().flatten().collect::<String>();
        Ok::<_, DictError>((batch.column(0).as_primitive::<UInt64Type>().values().to_vec(), text))
    };
    for format in [Format::TabSeparated, Format::Csv] {
        for text in [
            "s\tid\nx\t7\n",
            "id\ts\nUInt64\tString\n7\tx\n",
            "id\ts\tn\td\tt\tu\tm\tb\tmore\n7\tx\t\\N\t1970-01-02\t1\t00112233-4455-6677-8899-aabbccddeeff\t1\t1\t?\n",
        ] {
            let text = if format == Format::Csv { text.replace('\t', ",") } else { text.to_owned() };
            assert_eq!(ids(format, text.as_bytes()).unwrap(), (vec![7], "x".into()), "{text}");
        }
        // Names are compared exactly, and a name among values makes no header.
        for text in ["ID\tS\n7\tx\n", "id\tx\n", "7\ts\n"] {
            let text = if format == Format::Csv { text.replace('\t', ",") } else { text.to_owned() };
            assert!(ids(format, text.as_bytes()).unwrap_err().message().contains("row 1"), "{text}");
        }
        assert_eq!(ids(format, b"id").unwrap(), (vec![], String::new()), "a header alone");
    }
    let columns = [("id", "UInt64"), ("p", "Tuple(a Int32, b String)")]
        .map(|(n, t)| (n.to_owned(), DataType::parse_column(t).unwrap()));
    for (format, text) in [
        (Format::TabSeparated, "id\tp\nUInt64\tTuple(a Int32, b String)\n7\t(1,'x')\n"),
        (Format::TabSeparatedWithNamesAndTypes, "id\tp\nUInt64\tTuple(a Int32, b String)\n7\t(1,'x')\n"),
        (Format::CsvWithNamesAndTypes, "id,p\nUInt64,\"Tuple(a Int32, b String)\"\n7,\"(1,'x')\"\n"),
    ] {
        let mut rows = Rows::of_columns(&columns);
        read_rows(format, text.as_bytes(), &mut rows).unwrap();
        assert_eq!(rows.ended(), 1, "{text}");
    }
    for (format, head) in [
        (Format::Csv, "id,s\nUInt8,String\n7,x\n"),
        (Format::CsvWithNamesAndTypes, "id,s\nUInt8,String\n7,x\n"),
        (Format::TabSeparatedWithNamesAndTypes, "id\ts\nUInt8\tString\n7\tx\n"),
    ] {
        let error = ids(format, head.as_bytes()).unwrap_err();
        assert_eq!(error.code(), 117);
        assert!(error.message().contains("Type of 'id' must be UInt64, not UInt8"), "{error}");
    }
    // Types that are none here are types of a header, too; what is no type is a row, unless there have to be types.
    for (format, head, sent) in [
        (Format::Csv, "id,s\nUInt64,LowCardinality(String)\n7,x\n", "LowCardinality(String)"),
        (Format::Csv, "id,s\nUInt64,\"Enum8('a'=1)\"\n7,x\n", "Enum8('a'=1)"),
        (Format::TabSeparated, "id\ts\nUInt64\tFixedString(3)\n7\tx\n", "FixedString(3)"),
        (Format::CsvWithNamesAndTypes, "id,s\nUInt64,Nosuch\n7,x\n", "Nosuch"),
    ] {
        let error = ids(format, head.as_bytes()).unwrap_err();
        let wanted = format!("Type of 's' must be String, not {sent}");
        assert!(error.code() == 117 && error.message().contains(&wanted), "{error}");
    }
    let error = ids(Format::Csv, b"id,s\nUInt64,Nosuch\n7,x\n").unwrap_err();
    assert_ne!(error.code(), 117, "{error}");
}

#[test]
fn a_head_in_binary_may_have_any_type_of_clickhouse() {
    let head = |format, data_type: &str, value: &[u8]| {
        let mut bytes = vec![1];
        if format == Format::Native {
            bytes.push(1);
        }
        for text in ["p", data_type] {
            bytes.push(text.len() as u8);
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(value);
        let columns = [("p".to_owned(), DataType::parse_column("Tuple(UInt8, String)").unwrap())];
        let mut rows = Rows::of_columns(&columns);
        read_rows(format, &bytes, &mut rows).map(|()| rows.ended())
    };
    for format in [Format::RowBinaryWithNamesAndTypes, Format::Native] {
        assert_eq!(head(format, "Tuple(UInt8, String)", b"\x07\x01x"), Ok(1), "{format:?}");
        for (data_type, code) in [("FixedString(3)", 117), ("LowCardinality(String)", 117), ("Nosuch", 50)] {
            let error = head(format, data_type, b"\x07\x01x").unwrap_err();
            assert_eq!(error.code(), code, "{format:?} {error}");
        }
    }
}

#[test]
fn keys_that_are_names_of_columns_are_keys() {
    let structure = Structure {
        key: Key::Complex(vec![KeyColumn::new("k", DataType::String)]),
        attributes: vec![Attribute::new("v", DataType::String)],
    };
    for format in [Format::TabSeparated, Format::Csv] {
        let mut rows = Rows::of_key(&structure);
        Reader::without_detection(format).read(b"k\nv\n", End::Here, &mut rows).unwrap();
        assert_eq!(rows.ended(), 2);
    }
}

#[test]
fn tab_separated() {
    let bytes = b"7\ta\\tb\"\\'\\\\\\n,\t\\N\t1970-01-02\t1970-01-01 00:01:01\t00112233-4455-6677-8899-aabbccddeeff\t-12.50\ttrue\n\
        18446744073709551615\t\t-1.5\t2149-06-06\t4294967295\t00112233-4455-6677-8899-aabbccddeeff\t0.05\t0";
    check(&read_all(Format::TabSeparated, bytes).unwrap());
    assert_eq!(read_all(Format::TabSeparated, b"").unwrap().num_rows(), 0);
    let error = read_all(Format::TabSeparated, b"1\tx\n").unwrap_err();
    assert!(error.message().contains("row 1") && error.message().contains("8 columns"), "{error}");
    let error = read_all(Format::TabSeparated, b"x\t\t\t\t\t\t\t\n").unwrap_err();
    assert!(error.message().contains("Column id") && error.message().contains("'x' as UInt64"), "{error}");
}

#[test]
fn csv() {
    let bytes = b"7,\"a\tb\"\"'\\\n,\",\\N,\"1970-01-02\",1970-01-01 00:01:01,\"00112233-4455-6677-8899-aabbccddeeff\",-12.50,true\r\n\
        18446744073709551615,,-1.5,2149-06-06,4294967295,00112233-4455-6677-8899-aabbccddeeff,0.05,false\n";
    check(&read_all(Format::Csv, bytes).unwrap());
    for bad in ["1,2\n", "1,\"x", "\"1\"2,,,,,,,\n", "1,,,,,,,,,\n"] {
        assert!(read_all(Format::Csv, bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn json_each_row() {
    let bytes = br#"{"id":7,"s":"a\tb\"'\\\n,","d":"1970-01-02","t":61,"u":"00112233-4455-6677-8899-aabbccddeeff","m":-12.5,"b":true,"extra":[1]}
        {"id":"18446744073709551615","s":"","n":-1.5,"d":"2149-06-06","t":"2106-02-07 06:28:15","u":"00112233-4455-6677-8899-aabbccddeeff","m":"0.05","b":0}"#;
    check(&read_all(Format::JSON_EACH_ROW, bytes).unwrap());
    assert!(read_all(Format::JSON_EACH_ROW, b"{\"id\":").is_err());
    assert!(read_all(Format::JSON_EACH_ROW, b"[1]").is_err());
    let keyless = read_all(Format::JSON_EACH_ROW, br#"{"idd":1,"s":"a"}"#).unwrap_err().to_string();
    assert!(keyless.contains("Column id of the key is missing; there are idd, s"), "{keyless}");
}

#[test]
fn row_binary() {
    let uuid =
        [0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88];
    let mut bytes = Vec::new();
    bytes.extend(7u64.to_le_bytes());
    bytes.extend(b"\x08a\tb\"'\\\n,\x01\x01\x00");
    bytes.extend(61u32.to_le_bytes());
    bytes.extend(uuid);
    bytes.extend((-1250i32).to_le_bytes());
    bytes.push(1);
    bytes.extend(u64::MAX.to_le_bytes());
    bytes.extend(b"\x00\x00");
    bytes.extend((-1.5f64).to_le_bytes());
    bytes.extend(b"\xff\xff\xff\xff\xff\xff");
    bytes.extend(uuid);
    bytes.extend(5i32.to_le_bytes());
    bytes.push(0);
    check(&read_all(Format::RowBinary, &bytes).unwrap());
    for length in 1..bytes.len() {
        let cut = read_all(Format::RowBinary, &bytes[..length]);
        assert!(cut.is_err() || cut.unwrap().num_rows() == 1, "cut at {length}");
    }
}

#[test]
fn keys_are_written_as_clickhouse_writes_them() {
    let columns = vec![
        ("k".to_string(), DataType::UInt64),
        ("s".to_string(), DataType::String),
        ("i".to_string(), DataType::Nullable(Box::new(DataType::Int32))),
    ];
    let keys: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(vec![42])),
        Arc::new(StringArray::from(vec!["x\ty\"'"])),
        Arc::new(Int32Array::from(vec![None])),
    ];
    let write = |format| write_keys(format, &columns, &keys).unwrap();
    assert_eq!(write(Format::TabSeparated), b"42\tx\\ty\"\\'\t\\N\n");
    assert_eq!(write(Format::Csv), b"42,\"x\ty\"\"'\",\\N\n");
    assert_eq!(write(Format::JSON_EACH_ROW), b"{\"k\":42,\"s\":\"x\\ty\\\"'\",\"i\":null}\n");
    assert_eq!(write(Format::RowBinary), b"\x2a\0\0\0\0\0\0\0\x05x\ty\"'\x01");
}

#[test]
fn texts_are_cut_behind_whole_rows() {
    use crate::source::TextFormat::{Csv, TabSeparated};
    for (format, text, expected) in [
        (Csv, "a,b\nc", 4),
        (Csv, "a,\"b\n\"\nc", 7),
        (Csv, "\"a\"\"\n\",b", 0),
        (Csv, "a\"b\n\"c\n", 4),
        (Csv, "a, \t\"b\n\"\nc", 9),
        (Csv, "\"a\" \"b\n\"c\n", 7),
        (TabSeparated, "a\\\nb\nc", 5),
        (TabSeparated, "a\\\\\nb", 4),
        (TabSeparated, "\"a\nb\"", 3),
    ] {
        assert_eq!(format.whole_rows(text.as_bytes()), expected, "{text:?}");
    }
}

fn of_texts<const N: usize>(data_type: &str, texts: [&str; N]) -> ArrayRef {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    DataType::parse(data_type).unwrap().adopt(&texts).unwrap()
}

/// Numbers have all their digits, in quotes and without.
#[test]
fn json_loses_no_digits() {
    let attribute = |name: &str, text: &str| Attribute::new(name, DataType::parse(text).unwrap());
    let structure = Structure {
        key: Key::Simple { name: "id".into() },
        attributes: vec![
            attribute("w", "UInt128"),
            attribute("m", "Decimal(76, 3)"),
            attribute("i", "Int128"),
            attribute("f", "Decimal(38, 18)"),
            attribute("n", "Decimal(38, 0)"),
        ],
    };
    let read = |text: &str| {
        let mut rows = Rows::new(&structure);
        read_rows(Format::JSON_EACH_ROW, text.as_bytes(), &mut rows)?;
        rows.finish(&[])
    };
    let plain = r#"{"id":1,"w":340282366920938463463374607431768211455,"m":12345678901234567890.123,"i":-170141183460469231731687303715884105728,"f":1.000000000000000001,"n":100000000000000000001}"#;
    let quoted = r#"{"id":1,"w":"340282366920938463463374607431768211455","m":"12345678901234567890.123","i":"-170141183460469231731687303715884105728","f":"1.000000000000000001","n":"100000000000000000001"}"#;
    for text in [plain, quoted] {
        let batch = read(text).unwrap();
        assert_eq!(batch.column(1), &of_texts("UInt128", ["340282366920938463463374607431768211455"]));
        assert_eq!(batch.column(2), &of_texts("Decimal(76, 3)", ["12345678901234567890.123"]));
        assert_eq!(batch.column(3), &of_texts("Int128", ["-170141183460469231731687303715884105728"]));
        let decimal = |column: usize| batch.column(column).as_primitive::<Decimal128Type>().value(0);
        assert_eq!(decimal(4), 1_000_000_000_000_000_001);
        assert_eq!(decimal(5), 100_000_000_000_000_000_001);
    }
    assert_eq!(read(r#"{"id":1,"m":-12.5}"#).unwrap().column(2), &of_texts("Decimal(76, 3)", ["-12.5"]));
    for bad in [
        r#"{"id":1,"w":340282366920938463463374607431768211456}"#,
        r#"{"id":1,"w":1.5}"#,
        r#"{"id":1,"i":1e3}"#,
        r#"{"id":1,"n":1e38}"#,
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

/// RowBinary as ClickHouse has it.
#[test]
fn wide_types_in_row_binary() {
    let types = ["DateTime64(4)", "IPv4", "IPv6", "Decimal(76, 2)", "Int128", "UInt128"];
    let attributes = types.iter().enumerate();
    let attributes =
        attributes.map(|(i, text)| Attribute::new(format!("a{i}"), DataType::parse(text).unwrap())).collect();
    let structure = Structure { key: Key::Simple { name: "id".into() }, attributes };
    let mut bytes = 7u64.to_le_bytes().to_vec();
    bytes.extend(12_345i64.to_le_bytes());
    bytes.extend([4, 3, 2, 1]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xff; 32]);
    bytes.extend([0xff; 16]);
    bytes.extend([0xff; 16]);
    let mut rows = Rows::new(&structure);
    read_rows(Format::RowBinary, &bytes, &mut rows).unwrap();
    let batch = rows.finish(&[]).unwrap();
    let texts =
        ["1.2345", "1.2.3.4", "2001:db8::1", "-0.01", "-1", "340282366920938463463374607431768211455"];
    for (i, (data_type, text)) in types.into_iter().zip(texts).enumerate() {
        assert_eq!(batch.column(i + 1), &of_texts(data_type, [text]), "{data_type}");
    }
    let ticks = [&7u64.to_le_bytes()[..], &i64::MAX.to_le_bytes()].concat();
    let structure = Structure {
        key: Key::Simple { name: "id".into() },
        attributes: vec![Attribute::new("t", DataType::parse("DateTime64(7)").unwrap())],
    };
    let error = read_rows(Format::RowBinary, &ticks, &mut Rows::new(&structure)).unwrap_err();
    assert!(error.message().contains("Column t"), "{error}");
}

#[test]
fn malformed_arrays_are_refused() {
    let structure = Structure {
        key: Key::Complex(vec![KeyColumn::new("a", DataType::parse("Array(Nullable(UInt8))").unwrap())]),
        attributes: Vec::new(),
    };
    let read = |format, bytes: &[u8]| RowReader::new(format, &structure).read_all(bytes);
    let native = |rest: &[u8]| [&b"\x01\x02\x01a\x16Array(Nullable(UInt8))"[..], rest].concat();
    assert_eq!(
        read(Format::RowBinary, b"\x02\x00\x07\x01").unwrap(),
        [of_texts("Array(Nullable(UInt8))", ["[7,NULL]"])]
    );
    for bytes in [
        &b"\xff\xff\xff\xff\x7f"[..],
        b"\x01",
        b"\x01\x02\x00",
        b"\x02\x00\x07",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        assert!(read(Format::RowBinary, bytes).is_err(), "{bytes:?}");
    }
    let ends = |first: u64, second: u64| [first.to_le_bytes(), second.to_le_bytes()].concat();
    let good = [&ends(1, 2)[..], b"\x00\x01", b"\x07\x00"].concat();
    let expected = of_texts("Array(Nullable(UInt8))", ["[7]", "[NULL]"]);
    assert_eq!(read(Format::Native, &native(&good)).unwrap(), [expected]);
    for (first, second) in [(2, 1), (u64::MAX, 1), (0, u64::MAX), (1, 3), (3, 2)] {
        let bad = [&ends(first, second)[..], b"\x00\x01", b"\x07\x00"].concat();
        assert!(read(Format::Native, &native(&bad)).is_err(), "{first} {second}");
    }
    for text in [r#"{"a":[1,2"#, r#"{"a":[256]}"#, r#"{"a":{}}"#, r#"{"a":5}"#] {
        assert!(read(Format::JSON_EACH_ROW, text.as_bytes()).is_err(), "{text}");
    }
}

const NESTED: &str = "Nested(a UInt8, `b c` Nullable(String), m Map(String, UInt8))";
const TUPLES: &str = "Array(Tuple(IPv4, Tuple(a Tuple(Bool), b IPv6)))";

#[test]
fn a_column_is_called_so_or_so_but_for_capitals() {
    let attribute = |name: &str| Attribute::new(name, DataType::UInt8);
    let structure = Structure {
        key: Key::Simple { name: "id".into() },
        attributes: ["a", "A", "B", "cD", "Cd"].map(attribute).into(),
    };
    let read = |text: &str| {
        let mut rows = Rows::new(&structure);
        read_rows(Format::JSON_EACH_ROW, text.as_bytes(), &mut rows)?;
        rows.finish(&[])
    };
    let batch = read(r#"{"ID":1,"A":2,"b":3,"Cd":4}"#).unwrap();
    let row: Vec<String> = batch.columns().iter().map(|column| format!("{column:?}")).collect();
    let has = |column: usize, value: &str| row[column].contains(&format!("  {value},"));
    assert!(has(0, "1") && has(1, "null") && has(2, "2") && has(3, "3"), "{row:?}");
    assert!(has(4, "null") && has(5, "4"), "{row:?}");
    let error = read(r#"{"id":1,"cd":4}"#).unwrap_err();
    assert!(error.message().contains("Ambiguous field (cd)"), "{error}");
}

/// Members of an object keep their order, and one that comes twice is there twice.
#[test]
fn maps_in_json() {
    let structure = Structure {
        key: Key::Simple { name: "id".into() },
        attributes: vec![
            Attribute::new("m", DataType::parse("Map(String, Array(Map(UInt8, String)))").unwrap()),
            Attribute::new("w", DataType::parse("Map(String, Decimal(40, 2))").unwrap()),
        ],
    };
    let read = |text: &str| {
        let mut rows = Rows::new(&structure);
        read_rows(Format::JSON_EACH_ROW, text.as_bytes(), &mut rows)?;
        rows.finish(&[])
    };
    let batch = read(r#"{"id":1,"m":{"b":[{"2":"x","1":7,"2":null}],"a":[]},"w":{"z":"1.25","y":1.5}}"#);
    assert!(batch.unwrap_err().message().contains("Column m"));
    let batch = read(
        r#"{"id":1,"m":{"b":[{"2":"x","1":7,"2":"y"}],"a":[]},"w":{"z":"1.25","y":1.5},"m":{}}{"id":2}"#,
    )
    .unwrap();
    assert_eq!(
        batch.column(1).slice(0, 1).as_ref(),
        of_texts("Map(String, Array(Map(UInt8, String)))", ["{}"]).as_ref()
    );
    assert_eq!(
        batch.column(2).slice(0, 1).as_ref(),
        of_texts("Map(String, Decimal(40, 2))", ["{'z':1.25,'y':1.5}"]).as_ref()
    );
    let batch = read(r#"{"id":1,"m":{"b":[{"2":"x","1":7,"2":"y"}],"a":[]}}"#).unwrap();
    assert_eq!(
        batch.column(1),
        &of_texts("Map(String, Array(Map(UInt8, String)))", ["{'b':[{2:'x',1:'7',2:'y'}],'a':[]}"])
    );
    let batch =
        read(r#"{"id":1, "w":{"z": 12345678901234567.25 }, "m" : {"b" :[{"2" : 1.10,"1":true}]} }"#).unwrap();
    assert_eq!(
        batch.column(1),
        &of_texts("Map(String, Array(Map(UInt8, String)))", ["{'b':[{2:'1.10',1:'true'}]}"])
    );
    assert_eq!(batch.column(2), &of_texts("Map(String, Decimal(40, 2))", ["{'z':12345678901234567.25}"]));
    for bad in [r#"{"id":1,"m":[]}"#, r#"{"id":1,"m":{"a":1}}"#, "{\"id\":1,\"m\":{1:[]}}"] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn malformed_maps_are_refused() {
    let structure = Structure {
        key: Key::Complex(vec![KeyColumn::new(
            "m",
            DataType::parse("Map(UInt8, Nullable(String))").unwrap(),
        )]),
        attributes: Vec::new(),
    };
    let read = |format, bytes: &[u8]| RowReader::new(format, &structure).read_all(bytes);
    let native = |rest: &[u8]| [&b"\x01\x02\x01m\x1cMap(UInt8, Nullable(String))"[..], rest].concat();
    assert_eq!(
        read(Format::RowBinary, b"\x02\x07\x00\x01x\x07\x01").unwrap(),
        [of_texts("Map(UInt8, Nullable(String))", ["{7:'x',7:NULL}"])]
    );
    for bytes in [
        &b"\xff\xff\xff\xff\x7f"[..],
        b"\x01",
        b"\x01\x07",
        b"\x01\x07\x02",
        b"\x01\x07\x00\x02x",
        b"\x01\x07\x00\x01\xff",
    ] {
        assert!(read(Format::RowBinary, bytes).is_err(), "{bytes:?}");
    }
    // Where the rows end, the keys, which values are NULL, the values.
    let ends = |first: u64, second: u64| [first.to_le_bytes(), second.to_le_bytes()].concat();
    let good = [&ends(1, 2)[..], b"\x07\x08", b"\x00\x01", b"\x01x\x00"].concat();
    let expected = of_texts("Map(UInt8, Nullable(String))", ["{7:'x'}", "{8:NULL}"]);
    assert_eq!(read(Format::Native, &native(&good)).unwrap(), [expected]);
    for (first, second) in [(2, 1), (u64::MAX, 1), (0, u64::MAX), (1, 3), (3, 2)] {
        let bad = [&ends(first, second)[..], b"\x07\x08", b"\x00\x01", b"\x01x\x00"].concat();
        assert!(read(Format::Native, &native(&bad)).is_err(), "{first} {second}");
    }
    let other = [&b"\x01\x00\x01m\x12Map(UInt8, String)"[..]].concat();
    assert_eq!(read(Format::Native, &other).unwrap_err().code(), 117);
}

/// Keys in every format, in pieces of every length: the same keys as in one piece.
#[test]
fn keys_in_pieces_are_the_keys_in_one() {
    let structure = Structure {
        key: Key::Complex(vec![
            KeyColumn::new("k", DataType::UInt64),
            KeyColumn::new("s", DataType::String),
            KeyColumn::new("i", DataType::Nullable(Box::new(DataType::Int32))),
            KeyColumn::new("d", DataType::Date),
            KeyColumn::new("t", DataType::DateTime { tz: None }),
            KeyColumn::new("u", DataType::Uuid),
            KeyColumn::new("p", DataType::parse("DateTime64(4, 'Asia/Tokyo')").unwrap()),
            KeyColumn::new("n", DataType::parse("Nullable(DateTime64(9))").unwrap()),
            KeyColumn::new("i4", DataType::Ipv4),
            KeyColumn::new("i6", DataType::Ipv6),
            KeyColumn::new("m", DataType::parse("Decimal(50, 3)").unwrap()),
            KeyColumn::new("w", DataType::Int128),
            KeyColumn::new("x", DataType::Int256),
            KeyColumn::new("as", DataType::parse("Array(Array(Nullable(String)))").unwrap()),
            KeyColumn::new("at", DataType::parse("Array(Nullable(DateTime64(4)))").unwrap()),
            KeyColumn::new("au", DataType::parse("Array(UUID)").unwrap()),
            KeyColumn::new("ai", DataType::parse("Array(UInt16)").unwrap()),
            KeyColumn::new("ms", DataType::parse("Map(String, Nullable(DateTime64(4)))").unwrap()),
            KeyColumn::new("mu", DataType::parse("Map(UUID, Array(UInt16))").unwrap()),
            KeyColumn::new("ma", DataType::parse("Map(Array(UInt8), Map(Date, Bool))").unwrap()),
            KeyColumn::new("ne", DataType::parse(NESTED).unwrap()),
            KeyColumn::new("tu", DataType::parse(TUPLES).unwrap()),
        ]),
        attributes: Vec::new(),
    };
    let columns: Vec<(String, DataType)> =
        structure.key_columns().into_iter().map(|key| (key.name, key.data_type)).collect();
    let texts = ["x\ty\"'", "", "a,\nb\\", "\u{e9}\u{1f33e}"];
    let uuid = [[7_u8; 16]; 4];
    let keys: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(vec![42, 0, u64::MAX, 7])),
        Arc::new(StringArray::from_iter_values(texts)),
        Arc::new(Int32Array::from(vec![None, Some(-1), Some(7), None])),
        Arc::new(Date32Array::from(vec![0, 1, 65_535, 9])),
        Arc::new(TimestampSecondArray::from(vec![0, 1, i64::from(u32::MAX), 9])),
        Arc::new(FixedSizeBinaryArray::try_from_iter(uuid.iter()).unwrap()),
        of_texts(
            "DateTime64(4, 'Asia/Tokyo')",
            ["1.2345", "-0.0001", "2299-12-31 23:59:59.9999", "1900-01-02"],
        ),
        of_texts(
            "Nullable(DateTime64(9))",
            ["1.000000001", "0", "2262-04-11 23:47:16.854775807", "1900-01-01"],
        ),
        of_texts("IPv4", ["1.2.3.4", "0.0.0.0", "255.255.255.255", "10.0.0.1"]),
        of_texts("IPv6", ["::", "1.2.3.4", "2001:db8::1", "fe80::1:2:3:4"]),
        of_texts("Decimal(50, 3)", ["1.5", "-0.001", "0", "123456789.123"]),
        of_texts("Int128", ["1", "-1", "0", "-9223372036854775808"]),
        of_texts("Int256", ["1", "-1", "0", "18446744073709551615"]),
        of_texts(
            "Array(Array(Nullable(String)))",
            ["[]", r"[['a\tb\n',NULL],[]]", r#"[['it\'s "','\\']]"#, "[['é,']]"],
        ),
        of_texts("Array(Nullable(DateTime64(4)))", ["[1.2345,NULL]", "[]", "[NULL]", "['2024-02-29']"]),
        of_texts("Array(UUID)", ["['00112233-4455-6677-8899-aabbccddeeff']", "[]", "[]", "[]"]),
        of_texts("Array(UInt16)", ["[]", "[1]", "[1,2,65535]", "[0]"]),
        of_texts(
            "Map(String, Nullable(DateTime64(4)))",
            [r#"{'b':1.5,'it\'s "':NULL,'b':2}"#, "{}", r"{'\t':'2024-02-29 12:34:56.7891'}", "{'':0}"],
        ),
        of_texts(
            "Map(UUID, Array(UInt16))",
            ["{'00112233-4455-6677-8899-aabbccddeeff':[1,2]}", "{}", "{}", "{}"],
        ),
        of_texts(
            "Map(Array(UInt8), Map(Date, Bool))",
            ["{[1,2]:{'2024-02-29':true},[]:{}}", "{}", "{[7]:{}}", "{}"],
        ),
        of_texts(NESTED, ["[(1,NULL,{'x':1}),(2,'a,b',{})]", "[]", r"[(3,'it\'s',{'\n':0})]", "[]"]),
        of_texts(TUPLES, ["[('1.2.3.4',((true),'::1'))]", "[]", "[]", "[('0.0.0.0',((false),'::'))]"]),
    ];
    for format in Format::names().map(|name| Format::named(name).unwrap()) {
        let bytes = write_keys(format, &columns, &keys).unwrap();
        let whole = RowReader::new(format, &structure).read_all(&bytes).unwrap();
        for (column, expected) in whole.iter().zip(&keys) {
            assert_eq!(column, expected, "{}", format.name());
        }
        for step in [1, 2, 3, 7, 64, bytes.len()] {
            let mut reader = RowReader::new(format, &structure);
            bytes.chunks(step).for_each(|piece| reader.push(piece).unwrap());
            reader.finish().unwrap();
            assert_eq!(reader.take().unwrap(), whole, "{} by {step}", format.name());
            assert!(reader.is_empty());
        }
        for end in 1..bytes.len() {
            // A cut-off row is an error, or gives fewer keys.
            let cut = RowReader::new(format, &structure).read_all(&bytes[..end]);
            assert!(cut.map_or(0, |keys| keys[0].len()) <= 4, "{} cut at {end}", format.name());
        }
    }
}

#[test]
fn a_row_that_never_ends_is_refused() {
    let structure = Structure { key: Key::Simple { name: "id".into() }, attributes: Vec::new() };
    for format in [Format::TabSeparated, Format::CsvWithNames, Format::JSON_EACH_ROW, Format::Native] {
        let (mut reader, piece) = (RowReader::new(format, &structure), vec![b'"'; 1 << 20]);
        let refused = (0..200).any(|_| reader.push(&piece).is_err());
        assert!(refused, "{}", format.name());
    }
}

/// A block is looked at a few times while it comes, and not once for each piece.
#[test]
fn a_block_that_never_ends_is_refused() {
    let head = b"\x01\xff\xff\xff\x7f\x01s\x06String";
    let rows = Rows::of_columns(&[("s".to_string(), DataType::String)]);
    let endless = head.chain(std::io::repeat(0));
    let error = pass_rows(Format::Native, endless, rows, &mut |_| Ok(())).unwrap_err();
    assert!(error.message().contains("A row or block of more than 67108864 bytes"), "{error}");
}

/// Rows of an id and a text, read in pieces of several lengths.
fn texts_by_pieces(format: &str, bytes: &str) -> Result<Vec<String>, DictError> {
    let format = Format::named(format).unwrap();
    let structure = Structure {
        key: Key::Simple { name: "id".into() },
        attributes: vec![Attribute::new("s", DataType::Nullable(Box::new(DataType::String)))],
    };
    let read = |step: usize| -> Result<Vec<String>, DictError> {
        let (mut reader, mut rows) = (Reader::new(format), Rows::new(&structure));
        let (mut kept, mut pieces) = (Vec::new(), bytes.as_bytes().chunks(step).peekable());
        while let Some(piece) = pieces.next() {
            kept.extend_from_slice(piece);
            let end = if pieces.peek().is_some() { End::Later } else { End::Here };
            let read = reader.read(&kept, end, &mut rows)?;
            kept.drain(..read);
        }
        let batch = rows.finish(&[])?;
        let texts = batch.column(1).as_string::<i32>();
        let ids = batch.column(0).as_primitive::<arrow::datatypes::UInt64Type>();
        Ok(ids
            .values()
            .iter()
            .zip(texts)
            .map(|(id, text)| format!("{id}={}", text.unwrap_or("NULL")))
            .collect())
    };
    let whole = read(bytes.len())?;
    for step in [1, 2, 3, 5] {
        assert_eq!(read(step)?, whole, "{} by {step}", format.name());
    }
    Ok(whole)
}

#[test]
fn a_byte_order_mark_is_not_of_the_first_column() {
    for (format, rows) in [
        ("CSV", "1,a\n2,b\n"),
        ("CSVWithNames", "id,s\n1,a\n2,b\n"),
        ("CSVWithNamesAndTypes", "\"id\",\"s\"\n\"UInt64\",\"String\"\n1,a\n2,b\n"),
        ("TabSeparated", "1\ta\n2\tb\n"),
        ("TSVWithNames", "id\ts\n1\ta\n2\tb\n"),
        ("JSONEachRow", "{\"id\":1,\"s\":\"a\"}\n{\"id\":2,\"s\":\"b\"}\n"),
        ("JSONCompactEachRow", "[1,\"a\"]\n[2,\"b\"]"),
    ] {
        assert_eq!(texts_by_pieces(format, &format!("\u{feff}{rows}")).unwrap(), ["1=a", "2=b"], "{format}");
        assert_eq!(texts_by_pieces(format, rows).unwrap(), ["1=a", "2=b"], "{format}");
        assert!(
            texts_by_pieces(format, &format!("\u{feff}\u{feff}{rows}")).is_err(),
            "{format}: one is enough"
        );
    }
}

#[test]
fn blanks_around_fields_of_csv_are_none_of_them() {
    for (rows, expected) in [
        ("1, abc\n", "1=abc"),
        ("2, \"x y\"\n", "2=x y"),
        ("3,\"a\" \n", "3=a"),
        ("\"4\" ,b", "4=b"),
        (" \t5\t ,  a b \t\r\n", "5=a b"),
        ("6, \" c \"\t\r\n", "6= c "),
        ("7, \"d\n, \"\"e\"", "7=d\n, \"e"),
        ("8, \\N \n", "8=NULL"),
        ("9, \t\n", "9=NULL"),
        ("10, \"\" \n", "10="),
    ] {
        assert_eq!(texts_by_pieces("CSV", rows).unwrap(), [expected], "{rows}");
        let rows = format!("{rows}\n11,x\n").replace("\n\n", "\n");
        assert_eq!(texts_by_pieces("CSV", &rows).unwrap(), [expected, "11=x"], "{rows}");
    }
    for rows in ["id, s\n1, a\n", " id\t,\t\"s\" \r\n1,a\r\n", "\"s\" ,id \n\"a\" ,1\n"] {
        assert_eq!(texts_by_pieces("CSVWithNames", rows).unwrap(), ["1=a"], "{rows}");
    }
    for bad in ["1, \"a\" b\n", "1, \"a\n"] {
        assert!(texts_by_pieces("CSV", bad).is_err(), "{bad}");
    }
}

#[test]
fn what_is_no_string_of_json_becomes_one_as_it_came() {
    for value in [
        "true",
        "false",
        "1.10",
        "-0",
        "1E+2",
        "12345678901234567890123",
        r#"{"p": 1.10}"#,
        r#"[ 1.50, "a\n\u0063" ,{"b":-1,"b":null}]"#,
    ] {
        let expected = [format!("1={value}")];
        let rows = format!(r#"{{"s":{value},"id":1}}"#);
        assert_eq!(texts_by_pieces("JSONEachRow", &rows).unwrap(), expected, "{rows}");
        let rows = format!("[1, {value} ]");
        assert_eq!(texts_by_pieces("JSONCompactEachRow", &rows).unwrap(), expected, "{rows}");
    }
    for (value, expected) in [("null", "1=NULL"), (r#""1.10""#, "1=1.10"), (r#""\u0063\"\n""#, "1=c\"\n")] {
        let rows = format!(r#"{{"id":1,"s":{value}}}"#);
        assert_eq!(texts_by_pieces("JSONEachRow", &rows).unwrap(), [expected], "{rows}");
    }
    for bad in ["tru", "1.", "-", "01", "1e", r#""\ud800""#, "{1:2}", "[1", "\"\u{1}\"", "[,]"] {
        let rows = format!(r#"{{"id":1,"s":{bad}}}"#);
        assert!(texts_by_pieces("JSONEachRow", &rows).is_err(), "{rows}");
    }
}

#[test]
fn json_comes_in_lines_with_commas_or_as_one_array() {
    let expected = ["1=a", "2=NULL", "3=[x"];
    for rows in [
        r#"{"id":1,"s":"a"}{"id":2,"s":null} {"s":"[x","id":3}"#,
        r#"{"id":1,"s":"a"}, {"id":2,"s":null},{"s":"[x","id":"3"}"#,
        " [ {\"id\":1,\"s\":\"a\"},\n{\"id\":2}\n, {\"s\":\"[x\",\"id\":3} ] \n",
    ] {
        assert_eq!(texts_by_pieces("JSONEachRow", rows).unwrap(), expected, "{rows}");
    }
    assert!(texts_by_pieces("JSONEachRow", "[]").unwrap().is_empty());
    for bad in
        ["[{\"id\":1,\"s\":\"a\"}", "[{\"id\":1}]{\"id\":2}", "{\"id\":1}]", "[[1]]", ",{\"id\":1}", "[1]"]
    {
        assert!(texts_by_pieces("JSONEachRow", bad).is_err(), "{bad}");
    }
}

#[test]
fn json_with_values_in_strings_and_rows_in_arrays() {
    let expected = ["1=a", "2=NULL"];
    for (format, rows) in [
        ("JSONStringsEachRow", "{\"id\":\"1\",\"s\":\"a\"}\n{\"id\":\"2\",\"s\":\"ᴺᵁᴸᴸ\"}"),
        ("JSONCompactEachRow", "[1,\"a\"]\n[\"2\",null]\n"),
        ("JSONCompactStringsEachRow", "[\"1\",\"a\"],[\"2\",\"ᴺᵁᴸᴸ\"]"),
        ("JSONCompactEachRowWithNames", "[\"s\",\"more\",\"id\"]\n[\"a\",0,1]\n[null,{},2]"),
        ("JSONCompactEachRowWithNamesAndTypes", "[\"id\"]\n[\"UInt64\"]\n[1]\n[2]"),
    ] {
        let read = texts_by_pieces(format, rows).unwrap();
        let expected = if format.ends_with("Types") { ["1=NULL", "2=NULL"] } else { expected };
        assert_eq!(read, expected, "{format}");
    }
    let short = texts_by_pieces("JSONCompactEachRow", "[1]").unwrap_err().to_string();
    assert!(short.contains("Expected 2 columns, got 1"), "{short}");
}

#[test]
fn dates_and_times_of_arrow_that_a_type_does_not_have_are_refused() {
    let read = |name: &str, array: ArrayRef| {
        let data_type = structure().attributes.iter().find(|a| a.name == name).unwrap().data_type.clone();
        let columns = [("id".to_string(), DataType::UInt64), (name.to_string(), data_type)];
        let keys: [ArrayRef; 2] = [Arc::new(UInt64Array::from(vec![1])), array];
        read_all(Format::ArrowStream, &write_keys(Format::ArrowStream, &columns, &keys).unwrap())
    };
    read("d", Arc::new(Date32Array::from(vec![65_535]))).unwrap();
    read("t", Arc::new(TimestampSecondArray::from(vec![i64::from(u32::MAX)]))).unwrap();
    let error = read("d", Arc::new(Date32Array::from(vec![-7154]))).unwrap_err();
    assert_eq!(error.name(), "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE");
    assert!(error.message().contains("Column d of the source: Value -7154"), "{error}");
    let error = read("t", Arc::new(TimestampSecondArray::from(vec![7_258_118_400]))).unwrap_err();
    assert!(error.message().contains("Column t of the source: Value 7258118400"), "{error}");
}

/// As in ClickHouse; and defaults of one row do not affect the next.
#[test]
fn a_tuple_that_is_not_there_has_the_defaults_of_its_elements() {
    let tuple =
        DataType::parse_column("Tuple(UInt8, Nullable(UInt8), Tuple(Date32, Array(String)))").unwrap();
    let columns = [("a".to_string(), DataType::UInt8), ("t".to_string(), tuple.clone())];
    let defaults = "(0, NULL, ('1900-01-01', []))";
    let texts: ArrayRef = Arc::new(StringArray::from(vec![defaults, "(1, 2, ('2024-02-29', ['x']))"]));
    let expected = tuple.adopt(&texts).unwrap();
    for (format, text) in [
        ("JSONEachRow", "{\"a\":1}\n{\"a\":2,\"t\":[1,2,[\"2024-02-29\",[\"x\"]]]}"),
        ("JSONEachRow", "{\"a\":1,\"t\":null}\n{\"a\":2,\"t\":[1,2,[\"2024-02-29\",[\"x\"]]]}"),
        ("TabSeparated", "1\t\\N\n2\t(1,2,('2024-02-29',['x']))\n"),
        ("CSV", "1,\n2,\"(1,2,('2024-02-29',['x']))\"\n"),
    ] {
        let reader = RowReader::of_columns(Format::named(format).unwrap(), &columns);
        let arrays = reader.read_all(text.as_bytes()).unwrap();
        assert_eq!(arrays[1].to_data(), expected.to_data(), "{format} {text}");
    }
}
