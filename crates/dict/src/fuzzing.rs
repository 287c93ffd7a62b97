//! Any text is refused or read, never a panic, and what is read prints so that it reads the same
//! again. Called by the fuzz targets and, with a fixed seed, by the tests.

use crate::definition::{Key, KeyColumn, Structure};
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

/// Keys as somebody sends them, in the format and of the columns that the first byte says: in one piece and in
/// several, they are the same keys, or wrong both times.
pub fn keys(bytes: &[u8]) {
    let Some((&first, body)) = bytes.split_first() else { return };
    let formats: Vec<Format> = Format::names().filter_map(Format::named).collect();
    let format = formats[usize::from(first) % formats.len()];
    let column = |name: &str, data_type| KeyColumn { name: name.into(), data_type };
    let parsed = |name: &str, text: &str| column(name, DataType::parse(text).expect("a type"));
    let beyond_arrow = vec![
        parsed("a", "Array(Array(Nullable(String)))"),
        parsed("t", "Nullable(DateTime64(7))"),
        parsed("i", "IPv6"),
        parsed("w", "Array(UInt128)"),
        parsed("d", "Decimal(40, 2)"),
    ];
    let columns = match usize::from(first) / formats.len() % 2 {
        1 => beyond_arrow,
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
