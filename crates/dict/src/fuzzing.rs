//! Any text is refused or read, never a panic, and what is read prints so that it reads the same
//! again. Called by the fuzz targets and, with a fixed seed, by the tests.

use crate::definition::{Key, KeyColumn, Structure};
use crate::row::{Cell, Raw, Style, are_items, print};
use crate::source::RowReader;
use crate::types::DataType;
use crate::{Format, parse_create, parse_xml};

/// A CREATE DICTIONARY statement.
pub fn ddl(text: &str) {
    if let Ok(read) = parse_create(text) {
        let printed = read.definition.to_sql_with_secrets();
        let again = parse_create(&printed).expect("what is printed is read");
        assert_eq!(again.definition, read.definition);
    }
}

/// A configuration file: it says what DDL could say.
pub fn xml(text: &str) {
    for definition in parse_xml(text).unwrap_or_default() {
        let printed = definition.to_sql_with_secrets();
        let again = parse_create(&printed).expect("what is printed is read");
        assert_eq!(again.definition, definition);
    }
}

/// A regular expression on the first line, and a text after it. Returns whether the expression could be read.
#[cfg(feature = "full-load")]
pub fn regexp(text: &str) -> bool {
    let (regexp, text) = text.split_once('\n').unwrap_or((text, ""));
    crate::full_load::check_needed(regexp, text)
}

/// A file of regular expressions; returns how many it has.
#[cfg(feature = "full-load")]
pub fn yaml(text: &str) -> usize {
    let sql = "CREATE DICTIONARY d (regexp String, v String, n UInt64) PRIMARY KEY regexp \
               SOURCE(YAMLREGEXPTREE(PATH 'p')) LAYOUT(REGEXP_TREE) LIFETIME(0)";
    let definition = parse_create(sql).expect("it is right").definition;
    // A parser that panics is caught where a source is asked; here, nothing catches it.
    crate::source::Yaml::new("p".as_ref(), &definition).rows(text).map_or(0, |rows| rows.num_rows())
}

/// Types whose values are made of parts, and without floats, of which JSON does not have all.
const COMPOSITE: [&str; 5] = [
    "Array(Array(Nullable(String)))",
    "Map(String, Map(Int16, Nullable(Date)))",
    "Map(Array(String), Array(Tuple(UInt8, Bool)))",
    "Nested(a Nullable(UInt8), `b c` String)",
    "Array(Tuple(Decimal(9, 2), Tuple(x IPv6, y Map(DateTime('Asia/Tokyo'), UInt128))))",
];

/// The text of a value of the type that the first byte selects. Returns whether it was one: then it prints so that it
/// reads the same again, as JSON too.
pub fn text(bytes: &[u8]) -> bool {
    let Some((&first, text)) = bytes.split_first() else { return false };
    let data_type = DataType::parse(COMPOSITE[usize::from(first) % COMPOSITE.len()]).expect("a type");
    let read = |text: &str| Cell::parse(&data_type, text);
    let Ok(Cell::Items(items)) = read(&String::from_utf8_lossy(text)) else { return false };
    assert!(are_items(data_type.item(), &items));
    for style in [Style::Quoted, Style::Json] {
        let mut printed = String::new();
        print(&data_type, &Raw::Items(&items), style, &mut printed);
        assert_eq!(read(&printed).expect("what is printed is read"), Cell::Items(items.clone()), "{printed}");
    }
    true
}

/// Keys in the format and of the columns that the first byte selects: read in one piece and in several, they are the
/// same keys, or wrong both times.
pub fn keys(bytes: &[u8]) {
    let Some((&first, body)) = bytes.split_first() else { return };
    let formats: Vec<Format> = Format::names().filter_map(Format::named).collect();
    let format = formats[usize::from(first) % formats.len()];
    let column = |name: &str, data_type| KeyColumn::new(name, data_type);
    let parsed = |name: &str, text: &str| column(name, DataType::parse(text).expect("a type"));
    let beyond_arrow = vec![
        parsed("a", "Array(Array(Nullable(String)))"),
        parsed("t", "Nullable(DateTime64(7))"),
        parsed("i", "IPv6"),
        parsed("w", "Array(UInt128)"),
        parsed("d", "Decimal(40, 2)"),
    ];
    let composite = vec![
        parsed("m", "Map(String, Nullable(UInt16))"),
        parsed("n", "Nested(x UInt8, y Array(Date))"),
        parsed("t", "Array(Tuple(Bool, Map(UInt8, String)))"),
    ];
    let columns = match usize::from(first) / formats.len() % 3 {
        1 => beyond_arrow,
        2 => composite,
        _ => vec![
            column("a", DataType::UInt64),
            column("b", DataType::String),
            column("c", DataType::Nullable(Box::new(DataType::Int32))),
            column("d", DataType::Date),
        ],
    };
    let structure = Structure { key: Key::Complex(columns), attributes: Vec::new() };
    let whole = RowReader::new(format, &structure).read_all(body);
    for step in [1, 7, 64] {
        let mut reader = RowReader::new(format, &structure);
        let pushed =
            body.chunks(step).try_for_each(|piece| reader.push(piece)).and_then(|()| reader.finish());
        match (&whole, pushed) {
            (Ok(whole), Ok(())) => assert_eq!(*whole, reader.take().expect("it is short")),
            (Err(_), Err(_)) => {}
            (whole, pushed) => panic!("{}: {whole:?} at once, {pushed:?} by {step}", format.name()),
        }
    }
}
