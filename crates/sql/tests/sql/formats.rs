//! The output formats, byte for byte. The expected bytes were written by ClickHouse 26.9.2.1, except that JSON's
//! statistics are left out.

use granary_sql::arrow::array::AsArray;
use granary_sql::arrow::datatypes::{DataType, TimeUnit};
use granary_sql::arrow::ipc::reader::{FileReader, StreamReader};
use granary_sql::format::{self, Format};
use granary_sql::{Options, Session};
use tokio::runtime::Runtime;

const QUERY: &str = "SELECT 1 AS x, toUInt64(18446744073709551615) AS u, 'a\\tb\"c/d\\\\\\nq' AS s, NULL AS n, \
     toDate('2024-01-02') AS d, toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS uu, ('a\\'\\tb', 1, NULL) AS tu, \
     1.5 AS f, 1 / 0 AS inf";

fn bytes(query: &str, format: Format) -> Vec<u8> {
    let runtime = Runtime::new().unwrap();
    let session = Session::open(Options::default()).unwrap();
    let mut out = Vec::new();
    runtime.block_on(async {
        let statements = granary_sql::split(query).unwrap();
        let mut output = session.execute(&statements[0]).await.unwrap();
        let mut writer = format::open(format, output.schema.clone(), &mut out).unwrap();
        while let Some(batch) = output.next().await {
            writer.write(&batch.unwrap()).unwrap();
        }
        writer.finish(output.progress().read()).unwrap();
    });
    out
}

fn text(query: &str, format: Format) -> String {
    String::from_utf8(bytes(query, format)).unwrap()
}

#[test]
fn tab_separated() {
    let names = "x\tu\ts\tn\td\tuu\ttu\tf\tinf\n";
    let types = "UInt8\tUInt64\tString\tNullable(Nothing)\tDate\tUUID\tTuple(String, UInt8, Nullable(Nothing))\tFloat64\tFloat64\n";
    let row = "1\t18446744073709551615\ta\\tb\"c/d\\\\\\nq\t\\N\t2024-01-02\t61f0c404-5cb3-11e7-907b-a6006ad3dba0\t('a\\'\\tb',1,NULL)\t1.5\tinf\n";
    assert_eq!(text(QUERY, Format::TabSeparated), row);
    assert_eq!(text(QUERY, Format::TabSeparatedWithNames), format!("{names}{row}"));
    assert_eq!(text(QUERY, Format::TabSeparatedWithNamesAndTypes), format!("{names}{types}{row}"));
    assert_eq!(text("SELECT 'a\\tb\\\\', NULL", Format::TabSeparatedRaw), "a\tb\\\t\\N\n");
}

#[test]
fn unnamed_columns_are_named_by_the_functions_that_they_are() {
    for (expressions, names) in [
        ("2.0, 1e3, 1.50, 1e25, 1e-10, .5, -1.0, 1_0", "2.\t1000.\t1.5\t1e25\t1e-10\t0.5\t-1.\t10"),
        (
            "[number, 1], (number, true), [true, false], [[1], []]",
            "[number, 1]\t(number, true)\t[1, 0]\t[[1], []]",
        ),
        ("CASE WHEN number = 1 THEN 'a' ELSE 'b' END", "multiIf(equals(number, 1), \\'a\\', \\'b\\')"),
        ("CASE number WHEN 1 THEN 2 END", "caseWithExpression(number, 1, 2, NULL)"),
        (
            "[1, 2][number], map('a', 1)['a']",
            "arrayElement([1, 2], number)\tarrayElement(map(\\'a\\', 1), \\'a\\')",
        ),
        (
            "number NOT BETWEEN 1 AND 2, number IN (1)",
            "or(less(number, 1), greater(number, 2))\tin(number, 1)",
        ),
        ("'a' ILIKE 'b', 'a\\nb'", "ilike(\\'a\\', \\'b\\')\t\\'a\\\\nb\\'"),
        ("SUBSTRING('abc' FROM 1 FOR 2)", "substring(\\'abc\\', 1, 2)"),
        (
            "trim(BOTH 'a' FROM 'aba'), position('a' IN 'ba')",
            "trimBoth(\\'aba\\', \\'a\\')\tposition(\\'ba\\', \\'a\\')",
        ),
        (
            "sum(number) OVER (PARTITION BY number % 2 ORDER BY number ROWS 1 PRECEDING)",
            "sum(number) OVER (PARTITION BY modulo(number, 2) ORDER BY number ASC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        ),
    ] {
        let query = format!("SELECT {expressions} FROM numbers(1)");
        let shown = text(&query, Format::TabSeparatedWithNames);
        assert_eq!(shown.lines().next(), Some(names), "{query}");
    }
}

#[test]
fn columns_of_one_name_are_told_apart_by_their_tables() {
    let two = "(SELECT 1 AS k, 2 AS v) AS z JOIN (SELECT 1 AS k, 3 AS v) AS b";
    let using = "(SELECT 1 AS k, 2 AS v) AS a JOIN (SELECT 1 AS k, 3 AS v) AS b USING (k)";
    let three = "(SELECT 1 AS k) AS a JOIN (SELECT 1 AS k) AS b ON a.k = b.k JOIN (SELECT 1 AS k, 2 AS x) AS c ON b.k = c.k";
    for (sql, names) in [
        (format!("SELECT * FROM {two} ON z.k = b.k"), "k\tv\tb.k\tb.v\n1\t2\t1\t3\n"),
        (format!("SELECT * FROM {using}"), "k\tv\tb.v\n1\t2\t3\n"),
        (format!("SELECT b.v, z.v FROM {two} ON z.k = b.k"), "b.v\tv\n3\t2\n"),
        (format!("SELECT DISTINCT z.v, b.v FROM {two} ON z.k = b.k ORDER BY b.v"), "v\tb.v\n2\t3\n"),
        (format!("SELECT b.v, count() FROM {two} ON z.k = b.k GROUP BY b.v"), "b.v\tcount()\n3\t1\n"),
        (format!("SELECT b.v AS v FROM {two} ON z.k = b.k ORDER BY v"), "v\n3\n"),
        (format!("SELECT DISTINCT b.v AS v FROM {two} ON z.k = b.k ORDER BY v"), "v\n3\n"),
        (
            format!("SELECT b.v AS v, count() FROM {two} ON z.k = b.k GROUP BY v ORDER BY v"),
            "v\tcount()\n3\t1\n",
        ),
        (format!("SELECT * FROM {three}"), "a.k\tb.k\tc.k\tx\n1\t1\t1\t2\n"),
        ("SELECT a.k, a.k FROM (SELECT 1 AS k) AS a".to_owned(), "k\tk\n1\t1\n"),
    ] {
        assert_eq!(text(&sql, Format::TabSeparatedWithNames), names, "{sql}");
    }
}

#[test]
fn csv() {
    let names = "\"x\",\"u\",\"s\",\"n\",\"d\",\"uu\",\"tu.1\",\"tu.2\",\"tu.3\",\"f\",\"inf\"\n";
    let row = "1,18446744073709551615,\"a\tb\"\"c/d\\\nq\",\\N,\"2024-01-02\",\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\",\"a'\tb\",1,\\N,1.5,inf\n";
    assert_eq!(text(QUERY, Format::Csv), row);
    assert_eq!(text(QUERY, Format::CsvWithNames), format!("{names}{row}"));
    assert_eq!(text("SELECT number FROM numbers(0)", Format::CsvWithNames), "\"number\"\n");
}

#[test]
fn json() {
    let row = "{\"x\":1,\"u\":18446744073709551615,\"s\":\"a\\tb\\\"c\\/d\\\\\\nq\",\"n\":null,\"d\":\"2024-01-02\",\
               \"uu\":\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\",\"tu\":[\"a'\\tb\",1,null],\"f\":1.5,\"inf\":null}\n";
    assert_eq!(text(QUERY, Format::JsonEachRow), row);
    let json = text("SELECT number AS n, ('a', 2) AS q FROM numbers(2)", Format::Json);
    let expected = "{\n\t\"meta\":\n\t[\n\t\t{\n\t\t\t\"name\": \"n\",\n\t\t\t\"type\": \"UInt64\"\n\t\t},\n\t\t{\n\t\t\t\"name\": \"q\",\n\
                    \t\t\t\"type\": \"Tuple(String, UInt8)\"\n\t\t}\n\t],\n\n\t\"data\":\n\t[\n\
                    \t\t{\n\t\t\t\"n\": 0,\n\t\t\t\"q\": [\n\t\t\t\t\"a\",\n\t\t\t\t2\n\t\t\t]\n\t\t},\n\
                    \t\t{\n\t\t\t\"n\": 1,\n\t\t\t\"q\": [\n\t\t\t\t\"a\",\n\t\t\t\t2\n\t\t\t]\n\t\t}\n\t],\n\n\t\"rows\": 2,\n";
    let (document, statistics) = json.split_once("\n\t\"statistics\"").unwrap();
    assert_eq!(document, expected);
    let (_, read) = statistics.split_once(",\n").unwrap();
    assert_eq!(read, "\t\t\"rows_read\": 2,\n\t\t\"bytes_read\": 16\n\t}\n}\n");
    assert!(text("SELECT 1", Format::Json).ends_with("\"rows_read\": 1,\n\t\t\"bytes_read\": 1\n\t}\n}\n"));
    assert!(text("SELECT number FROM numbers(0)", Format::Json).contains("\t[\n\n\t],\n\n\t\"rows\": 0,\n"));
}

#[test]
fn pretty() {
    let query = "SELECT number, 'aé' AS s, NULL FROM numbers(2)";
    let compact = "   ┌─number─┬─s──┬─NULL─┐\n1. │      0 │ aé │ ᴺᵁᴸᴸ │\n2. │      1 │ aé │ ᴺᵁᴸᴸ │\n   └────────┴────┴──────┘\n";
    assert_eq!(text(query, Format::PrettyCompact), compact);
    let full = "   ┏━━━━━━━━┳━━━━┳━━━━━━┓\n   ┃ number ┃ s  ┃ NULL ┃\n   ┡━━━━━━━━╇━━━━╇━━━━━━┩\n1. │      0 │ aé │ ᴺᵁᴸᴸ │\n\
                \u{20}  ├────────┼────┼──────┤\n2. │      1 │ aé │ ᴺᵁᴸᴸ │\n   └────────┴────┴──────┘\n";
    assert_eq!(text(query, Format::Pretty), full);
    let broken = "SELECT 'a\nbcd' AS x, number AS y, '\nb\n\n' AS z FROM numbers(1)";
    let compact = "   ┌─x───┬─y─┬─z─┐\n1. │ a  ↴│ 0 │  ↴│\n   │↳bcd │   │↳b↴│\n   │     │   │↳ ↴│\n   └─────┴───┴───┘\n";
    assert_eq!(text(broken, Format::PrettyCompact), compact);
    let large = "   ┌─12345678─┐\n1. │ 12345678 │ -- 12.35 million\n   └──────────┘\n";
    assert_eq!(text("SELECT 12345678", Format::PrettyCompact), large);
    let vertical = "Row 1:\n──────\nnumber: 0\ns:      aé\nNULL:   ᴺᵁᴸᴸ\n\nRow 2:\n──────\nnumber: 1\ns:      aé\nNULL:   ᴺᵁᴸᴸ\n";
    assert_eq!(text(query, Format::Vertical), vertical);
}

#[test]
fn row_binary() {
    let query = "SELECT NULL, 'ab', toDate('2024-01-02'), toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0'), (1, 'a'), \
                 toDateTime(5), toInt32(-1), 1.5, 258";
    let expected =
        "01 026162 0c4d e711b35c04c4f061a0dbd36a00a67b90 010161 05000000 ffffffff 000000000000f83f 0201";
    let hex: String = bytes(query, Format::RowBinary).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected.replace(' ', ""));
}

/// Values of types that Arrow does not have, in all families of formats.
const BEYOND_ARROW: &str = "SELECT toIPv4('1.2.3.4') AS a, toIPv6('2001:db8::1') AS b, \
     toDateTime64('2024-02-29 12:34:56.7891', 4, 'Asia/Tokyo') AS c, toInt128('-2') AS d, toDecimal256('1.25', 2) AS e, \
     CAST(['1.2.3.4'] AS Array(IPv4)) AS f, ['a\\'b', NULL] AS g";

#[test]
fn types_beyond_arrow() {
    let moment = "2024-02-29 12:34:56.7891";
    let tab = format!("1.2.3.4\t2001:db8::1\t{moment}\t-2\t1.25\t['1.2.3.4']\t['a\\'b',NULL]\n");
    assert_eq!(text(BEYOND_ARROW, Format::TabSeparated), tab);
    let types = "IPv4\tIPv6\tDateTime64(4, \\'Asia/Tokyo\\')\tInt128\tDecimal(76, 2)\tArray(IPv4)\tArray(Nullable(String))";
    let head = text(BEYOND_ARROW, Format::TabSeparatedWithNamesAndTypes);
    assert_eq!(head.lines().nth(1), Some(types));
    let csv =
        format!("\"1.2.3.4\",\"2001:db8::1\",\"{moment}\",-2,1.25,\"['1.2.3.4']\",\"['a\\'b',NULL]\"\n");
    assert_eq!(text(BEYOND_ARROW, Format::Csv), csv);
    let json = format!(
        "{{\"a\":\"1.2.3.4\",\"b\":\"2001:db8::1\",\"c\":\"{moment}\",\"d\":-2,\"e\":1.25,\"f\":[\"1.2.3.4\"],\
         \"g\":[\"a'b\",null]}}\n"
    );
    assert_eq!(text(BEYOND_ARROW, Format::JsonEachRow), json);
    let ticks: i64 = 1_709_177_696 * 10_000 + 7891;
    let values = [
        vec![4, 3, 2, 1],
        vec![0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        ticks.to_le_bytes().to_vec(),
        [&[0xfe][..], &[0xff; 15]].concat(),
        [&[125][..], &[0; 31]].concat(),
    ];
    let date32 = bytes("SELECT toDate32('1900-01-01')", Format::RowBinary);
    assert_eq!(date32, (-25_567i32).to_le_bytes());
    let arrays = b"\x01\x04\x03\x02\x01\x02\x00\x03a'b\x01";
    assert_eq!(bytes(BEYOND_ARROW, Format::RowBinary), [&values.concat()[..], arrays].concat());
    let native = bytes(BEYOND_ARROW, Format::Native);
    let nested = b"\x17Array(Nullable(String))\x02\0\0\0\0\0\0\0\x00\x01\x03a'b\x00";
    assert!(native.ends_with(nested), "{}", String::from_utf8_lossy(&native));
}

/// Maps, nested in and around other types, in all families of formats, as ClickHouse writes them.
const MAPS: &str = "SELECT map('a', 1, 'it\\'s \"', 2, 'a', 3) AS m, \
     CAST(map(1, NULL, 2, 'x') AS Map(UInt8, Nullable(String))) AS n, [map(toDate('2024-01-01'), [1, 2])] AS o, map() AS e";

#[test]
fn maps() {
    let tab = "{'a':1,'it\\'s \"':2,'a':3}\t{1:NULL,2:'x'}\t[{'2024-01-01':[1,2]}]\t{}\n";
    assert_eq!(text(MAPS, Format::TabSeparated), tab);
    let types = "Map(String, UInt8)\tMap(UInt8, Nullable(String))\tArray(Map(Date, Array(UInt8)))\tMap(Nothing, Nothing)";
    let head = text(MAPS, Format::TabSeparatedWithNamesAndTypes);
    assert_eq!(head.lines().nth(1), Some(types));
    let csv = "\"{'a':1,'it\\'s \"\"':2,'a':3}\",\"{1:NULL,2:'x'}\",\"[{'2024-01-01':[1,2]}]\",\"{}\"\n";
    assert_eq!(text(MAPS, Format::Csv), csv);
    let json = "{\"m\":{\"a\":1,\"it's \\\"\":2,\"a\":3},\"n\":{\"1\":null,\"2\":\"x\"},\
         \"o\":[{\"2024-01-01\":[1,2]}],\"e\":{}}\n";
    assert_eq!(text(MAPS, Format::JsonEachRow), json);
    let indented = "\t\t{\n\t\t\t\"n\": {\n\t\t\t\t\"1\": null,\n\t\t\t\t\"2\": \"x\"\n\t\t\t},\n\
         \t\t\t\"o\": [\n\t\t\t\t{\n\t\t\t\t\t\"2024-01-01\": [1,2]\n\t\t\t\t}\n\t\t\t],\n\t\t\t\"e\": {}\n\t\t}\n";
    let shown = text(&format!("SELECT n, o, e FROM ({MAPS})"), Format::Json);
    assert!(shown.contains(indented), "{shown}");
    assert!(text(MAPS, Format::Vertical).contains("m: {'a':1,'it\\'s \"':2,'a':3}\n"));
    assert!(text(MAPS, Format::PrettyCompact).contains("│ {1:NULL,2:'x'} │"));
    let hex: String = bytes(MAPS, Format::RowBinary).iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = "03 016101 066974277320 2202 016103 02 0101 02000178 01 01 0b4d 020102 00";
    assert_eq!(hex, expected.replace(' ', ""));
    let native =
        bytes("SELECT CAST(map(1, NULL, 2, 'x') AS Map(UInt8, Nullable(String))) AS n", Format::Native);
    let ends = b"\x02\0\0\0\0\0\0\0";
    let expected =
        [&b"\x01\x01\x01n\x1cMap(UInt8, Nullable(String))"[..], ends, b"\x01\x02\x01\x00\x00\x01x"].concat();
    assert_eq!(native, expected);
}

#[test]
fn maps_in_arrow_and_parquet() {
    let query = "SELECT map('b', number, 'a', 7, 'b', 9) AS m, number FROM numbers(3) WHERE number > 0";
    let stream = bytes(query, Format::ArrowStream);
    let batches: Vec<_> =
        StreamReader::try_new(stream.as_slice(), None).unwrap().map(Result::unwrap).collect();
    assert!(matches!(batches[0].schema().field(0).data_type(), DataType::Map(_, false)));
    let file = tempfile::NamedTempFile::with_suffix(".parquet").unwrap();
    std::fs::write(file.path(), bytes(query, Format::Parquet)).unwrap();
    let read = format!("SELECT m, m['b'], toTypeName(m) FROM '{}' ORDER BY number", file.path().display());
    assert_eq!(
        text(&read, Format::TabSeparated),
        "{'b':1,'a':7,'b':9}\t1\tMap(String, UInt64)\n{'b':2,'a':7,'b':9}\t2\tMap(String, UInt64)\n"
    );
}

#[test]
fn parquet_keeps_types() {
    let query = "SELECT toDateTime('2024-01-02 03:04:05') AS t, toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS u, \
                 number = 0 AS e, [toDateTime(5)] AS a, toDate('2024-01-02') AS d FROM numbers(2)";
    let file = tempfile::NamedTempFile::with_suffix(".parquet").unwrap();
    std::fs::write(file.path(), bytes(query, Format::Parquet)).unwrap();
    let read = |what: &str| {
        text(&format!("SELECT {what} FROM '{}' LIMIT 1", file.path().display()), Format::TabSeparated)
    };
    assert_eq!(
        read("*"),
        "2024-01-02 03:04:05.000\t61f0c404-5cb3-11e7-907b-a6006ad3dba0\t1\t['1970-01-01 00:00:05.000']\t2024-01-02\n"
    );
    assert_eq!(
        read("toTypeName(t), toTypeName(u), toTypeName(e), toTypeName(d)"),
        "DateTime64(3, \\'UTC\\')\tUUID\tUInt8\tDate\n"
    );
}

#[test]
fn arrow_and_parquet_read_back() {
    let query = "SELECT number, toString(number) AS s FROM numbers(3)";
    let stream = bytes(query, Format::ArrowStream);
    let batches: Vec<_> =
        StreamReader::try_new(stream.as_slice(), None).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
    assert_eq!(batches[0].schema().field(1).name(), "s");
    let parquet = bytes(query, Format::Parquet);
    assert_eq!((&parquet[..4], &parquet[parquet.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    assert_eq!(bytes(query, Format::Null), b"");
}

const COMPACT: &str = "SELECT number, 'a\\'b' AS s, [1, NULL] AS a, NULL AS n, toDate('2024-01-01') AS d, ('x', 1) AS t, \
     map('k', 1) AS m, true AS b FROM numbers(2)";

#[test]
fn arrow_has_the_types_that_clickhouse_writes() {
    let query = "SELECT toDateTime('2020-01-01 00:00:00', 'Asia/Tokyo') AS t, toDateTime64('2020-01-01 00:00:00.123', 3) AS m, \
         toFixedString('ab', 3) AS f, toInt128(-5) AS w, number = 0 AS e, true AS b, [toDateTime(5)] AS a, \
         (toFixedString('x', 2), 1) AS tu, map('k', toDateTime(6)) AS p, \
         toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS u, toNullable(toDateTime(7)) AS n FROM numbers(1)";
    let stream = bytes(query, Format::ArrowStream);
    let batch = StreamReader::try_new(stream.as_slice(), None).unwrap().next().unwrap().unwrap();
    let schema = batch.schema();
    let of = |name: &str| schema.field_with_name(name).unwrap().data_type().clone();
    let wanted = [
        ("t", DataType::UInt32),
        ("m", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))),
        ("f", DataType::FixedSizeBinary(3)),
        ("w", DataType::FixedSizeBinary(16)),
        ("e", DataType::UInt8),
        ("b", DataType::Boolean),
        ("u", DataType::FixedSizeBinary(16)),
        ("n", DataType::UInt32),
    ];
    for (name, wanted) in wanted {
        assert_eq!(of(name), wanted, "{name}");
    }
    assert!(matches!(of("a"), DataType::List(item) if item.data_type() == &DataType::UInt32));
    assert!(
        matches!(of("tu"), DataType::Struct(items) if items[0].data_type() == &DataType::FixedSizeBinary(2))
    );
    assert!(matches!(of("p"), DataType::Map(..)));
    let metadata = |name: &str| schema.field_with_name(name).unwrap().metadata().clone();
    assert_eq!(metadata("u").get("ARROW:extension:name").map(String::as_str), Some("arrow.uuid"));
    assert!(metadata("w").is_empty() && metadata("b").is_empty());
    let column = |name: &str| batch.column_by_name(name).unwrap().clone();
    assert_eq!(column("w").as_fixed_size_binary().value(0), (-5_i128).to_le_bytes());
    assert_eq!(column("f").as_fixed_size_binary().value(0), b"ab\0");
}

#[test]
fn a_fixed_string_is_bytes_in_parquet() {
    let file = tempfile::NamedTempFile::with_suffix(".parquet").unwrap();
    std::fs::write(file.path(), bytes("SELECT toFixedString('ab', 3) AS f", Format::Parquet)).unwrap();
    let read = format!("SELECT toTypeName(f), f FROM '{}'", file.path().display());
    assert_eq!(text(&read, Format::TabSeparated), "FixedString(3)\tab\\0\n");
}

#[test]
fn json_compact() {
    let row = |n: u8| format!("[{n}, \"a'b\", [1,null], null, \"2024-01-01\", [\"x\",1], {{\"k\":1}}, true]");
    let rows = format!("{}\n{}\n", row(0), row(1));
    let names = "[\"number\", \"s\", \"a\", \"n\", \"d\", \"t\", \"m\", \"b\"]\n";
    let types = "[\"UInt64\", \"String\", \"Array(Nullable(UInt8))\", \"Nullable(Nothing)\", \"Date\", \
                 \"Tuple(String, UInt8)\", \"Map(String, UInt8)\", \"Bool\"]\n";
    assert_eq!(text(COMPACT, Format::JsonCompactEachRow), rows);
    assert_eq!(text(COMPACT, Format::JsonCompactEachRowWithNames), format!("{names}{rows}"));
    assert_eq!(text(COMPACT, Format::JsonCompactEachRowWithNamesAndTypes), format!("{names}{types}{rows}"));
    let document = text(COMPACT, Format::JsonCompact);
    let wanted = format!("\t\"data\":\n\t[\n\t\t{},\n\t\t{}\n\t],\n\n\t\"rows\": 2,\n", row(0), row(1));
    assert!(document.contains(&wanted), "{document}");
    let none = text("SELECT number FROM numbers(0)", Format::JsonCompact);
    assert!(none.contains("\t[\n\n\t],\n\n\t\"rows\": 0,\n"), "{none}");
}

#[test]
fn values() {
    let row = |n: u8| format!("({n},'a\\'b',[1,NULL],NULL,'2024-01-01',('x',1),{{'k':1}},true)");
    assert_eq!(text(COMPACT, Format::Values), format!("{},{}", row(0), row(1)));
    assert_eq!(text("SELECT number FROM numbers(0)", Format::Values), "");
}

#[test]
fn arrow_files_read_back() {
    let file = bytes("SELECT number, toString(number) AS s FROM numbers(3)", Format::Arrow);
    let reader = FileReader::try_new(std::io::Cursor::new(file), None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 3);
}
