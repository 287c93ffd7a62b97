//! Layouts whose rows are found by something else than their keys.

mod common;

use arrow::array::ArrayRef;
use common::*;
use granary_dict::{DataType, Dictionary, Environment, parse_create, parse_xml};
use std::path::Path;

/// A dictionary over a file of these rows.
fn open(folder: &Path, columns: &str, clauses: &str, format: &str, rows: &[u8]) -> Dictionary {
    let files = folder.join("user_files");
    let _ = std::fs::create_dir(&files);
    std::fs::write(files.join("rows"), rows).unwrap();
    let sql = format!(
        "CREATE DICTIONARY d ({columns}) {clauses} SOURCE(FILE(PATH 'rows' FORMAT {format})) LIFETIME(0)"
    );
    let definition = definition(&sql);
    assert_eq!(parse_create(&definition.to_sql()).unwrap().definition, definition, "it is printed as it is");
    Dictionary::open(definition, &Environment { user_files: Some(files), ..Environment::new(folder) })
        .unwrap()
}

/// The dictionary's value for a key given as texts.
fn look_up(dictionary: &Dictionary, key: &[&str]) -> String {
    let columns = dictionary.definition().lookup_columns();
    let columns: Vec<ArrayRef> =
        columns.iter().zip(key).map(|(column, text)| of_text(&column.data_type, text)).collect();
    let value = dictionary.definition().attribute_index("v").unwrap();
    texts(&dictionary.get(&[value], &columns).unwrap().columns[0]).remove(0)
}

/// All columns of all rows, as texts.
fn shown(dictionary: &Dictionary) -> Vec<String> {
    let rows = all_rows(dictionary).unwrap();
    let cell = |column: &ArrayRef, row| arrow::util::display::array_value_to_string(column, row).unwrap();
    let line = |row| rows.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" ");
    (0..rows.num_rows()).map(line).collect()
}

#[test]
fn bounds_come_before_the_other_attributes_and_may_be_null() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "v String DEFAULT '-', high Int16, id UInt64, low Int16";
    let clauses = "PRIMARY KEY id LAYOUT(RANGE_HASHED()) RANGE(MAX high MIN low)";
    let rows = b"1\t\\N\t-5\ta\n1\t-4\t7\tb\n1\t8\t\\N\tc\n2\t5\t4\td\n";
    let dictionary = open(folder.path(), columns, clauses, "TabSeparated", rows);
    let found = ["-32768", "-5", "-4", "7", "8", "32767"].map(|value| look_up(&dictionary, &["1", value]));
    assert_eq!(found, ["a", "a", "b", "b", "c", "c"]);
    assert_eq!(
        (look_up(&dictionary, &["2", "4"]), look_up(&dictionary, &["3", "4"])),
        ("-".into(), "-".into())
    );
    assert_eq!(shown(&dictionary), ["1 -32768 -5 a", "1 -4 7 b", "1 8 32767 c", "2 5 4 d"]);
    let status = dictionary.status();
    assert_eq!((status.layout_type, status.element_count), ("RangeHashed", 4));
    assert!(status.load_factor > 0.0 && status.bytes_allocated > 4 * 48, "{status:?}");
}

#[test]
fn a_source_is_asked_for_bounds_that_may_be_null() {
    let folder = tempfile::tempdir().unwrap();
    let clauses =
        "PRIMARY KEY id LAYOUT(RANGE_HASHED(CONVERT_NULL_RANGE_BOUND_TO_OPEN 0)) RANGE(MIN low MAX high)";
    // As in ClickHouse, each bound has a byte before it.
    let mut rows = Vec::new();
    for (low, v) in [(Some(7u8), b'a'), (None, b'b')] {
        rows.extend(1u64.to_le_bytes());
        rows.extend(low.map_or(vec![1], |low| vec![0, low]));
        rows.extend([0, 9, 1, v]);
    }
    let dictionary =
        open(folder.path(), "id UInt64, low UInt8, high UInt8, v String", clauses, "RowBinary", &rows);
    assert_eq!(shown(&dictionary), ["1 7 9 a"], "without a bound there is no row");
}

#[test]
fn xml_has_bounds_of_their_own() {
    let xml = "<clickhouse><dictionary><name>d</name><structure><id><name>id</name></id>
        <range_min><name>low</name></range_min><range_max><name>high</name><type>Nullable(Date)</type></range_max>
        <attribute><name>v</name><type>String</type><null_value></null_value></attribute></structure>
        <source><file><path>rows</path><format>CSV</format></file></source>
        <layout><range_hashed><range_lookup_strategy>max</range_lookup_strategy></range_hashed></layout>
        <lifetime>0</lifetime></dictionary></clickhouse>";
    let same = "CREATE DICTIONARY d (id UInt64, low Date, high Date, v String) PRIMARY KEY id
        SOURCE(FILE(PATH 'rows' FORMAT CSV)) LAYOUT(RANGE_HASHED(RANGE_LOOKUP_STRATEGY 'max'))
        RANGE(MIN low MAX high) LIFETIME(0)";
    assert_eq!(parse_xml(xml).unwrap(), [definition(same)]);
    let half = xml.replace("<range_min><name>low</name></range_min>", "");
    let error = parse_xml(&half).unwrap_err();
    assert!(error.message().contains("either specified or not"), "{error}");
    assert_eq!(definition(same).lookup_columns()[1].data_type, DataType::Date);
}

#[test]
fn networks_are_read_and_shown_as_texts() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "prefix String, v String DEFAULT '-'";
    let rows = b"10.0.0.0/8\ta\n10.1.2.3/16\tb\n10.1.0.0/16\tc\n192.168.0.1\td\n";
    let clauses = "PRIMARY KEY prefix LAYOUT(IP_TRIE(ACCESS_TO_KEY_FROM_ATTRIBUTES 1))";
    let dictionary = open(folder.path(), columns, clauses, "TabSeparated", rows);
    let found = ["10.0.0.1", "10.1.0.1", "11.0.0.0", "::"].map(|address| look_up(&dictionary, &[address]));
    assert_eq!(found, ["a", "b", "-", "-"]);
    let prefix = dictionary.definition().attribute_index("prefix").unwrap();
    let addresses = arrow::compute::concat(&[
        &of_text(&DataType::Ipv6, "192.168.0.1"),
        &of_text(&DataType::Ipv6, "10.1.9.9"),
        &of_text(&DataType::Ipv6, "10.9.9.9"),
        &of_text(&DataType::Ipv6, "9.9.9.9"),
    ]);
    let answer = dictionary.get(&[0, prefix, 0], &[addresses.unwrap()]).unwrap();
    assert_eq!(texts(&answer.columns[0]), ["d", "b", "a", "-"]);
    assert_eq!(texts(&answer.columns[1]), ["192.168.0.1/32", "10.1.0.0/16", "10.0.0.0/8", ""]);
    assert_eq!(shown(&dictionary), ["10.0.0.0/8 a", "10.1.0.0/16 b", "192.168.0.1/32 d"]);
    assert_eq!(dictionary.status().layout_type, "Trie");
    let hidden =
        open(folder.path(), columns, "PRIMARY KEY prefix LAYOUT(IP_TRIE)", "TabSeparated", b"x\ty\n");
    assert_eq!(hidden.definition().attribute_index("prefix"), None);
    let address = [of_text(&DataType::Ipv6, "::")];
    let error = hidden.get(&[0], &address).unwrap_err();
    assert_eq!((error.code(), error.message()), (27, "Can't parse address \"x\""));
}
