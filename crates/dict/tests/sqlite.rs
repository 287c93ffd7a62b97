//! Dictionaries over a real SQLite file.

mod common;

use arrow::array::{ArrayRef, AsArray, Float32Array, Int64Array};
use arrow::datatypes::{Float64Type, Int32Type};
use common::*;
use granary_dict::{DataType, Dictionary, Environment};
use std::path::Path;
use std::sync::Arc;

fn database(folder: &Path) {
    let files = folder.join("user_files");
    std::fs::create_dir_all(&files).unwrap();
    let connection = rusqlite::Connection::open(files.join("users.db")).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, city TEXT, score REAL, signed_up TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             INSERT INTO users SELECT i, 'user ' || i, 'city ' || (i % 7), i / 4.0, date('2020-01-01', (i % 900) || ' days') FROM n;
             INSERT INTO users (id, name) VALUES (200000, 'sparse');
             CREATE TABLE pairs (a INTEGER, b TEXT, v INTEGER, PRIMARY KEY (a, b));
             INSERT INTO pairs VALUES (1, 'x', 10), (1, 'it''s', 11), (2, 'x', 12), (NULL, 'x', 13);",
        )
        .unwrap();
}

fn open(folder: &Path, columns: &str, key: &str, source: &str, layout: &str) -> Dictionary {
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(MIN 900 MAX 1000)" };
    let sql = format!(
        "CREATE DICTIONARY s ({columns}) PRIMARY KEY {key} SOURCE(SQLITE(PATH 'users.db' {source})) \
         LAYOUT({layout}) {lifetime}"
    );
    Dictionary::open(definition(&sql), &Environment::new(folder)).unwrap()
}

const USERS: &str = "id UInt64, name String DEFAULT 'nobody', score Float64 DEFAULT -1, \
     signed_up Date DEFAULT '1999-12-31', city Nullable(String), loud String EXPRESSION upper(name)";
const SSD: &str = "SSD_CACHE(PATH 'cache' FILE_SIZE 67108864 WRITE_BUFFER_SIZE 1048576)";

#[test]
fn an_answer_has_so_many_bytes() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let source = format!("PATH '{}' TABLE 'users'", folder.path().join("user_files/users.db").display());
    let sql = format!(
        "CREATE DICTIONARY s (id UInt64, name String) PRIMARY KEY id SOURCE(SQLITE({source})) LAYOUT(DIRECT())"
    );
    let direct = Dictionary::open(definition(&sql), &Environment::new(folder.path())).unwrap();
    long_answers_are_refused(&direct, 1..2000);
}

#[test]
fn types_beyond_arrow() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    connection
        .execute_batch(
            r#"CREATE TABLE hosts (ip TEXT, at TEXT, seen REAL, six TEXT, tags TEXT, wide TEXT, big TEXT, labels TEXT, hops TEXT);
             INSERT INTO hosts VALUES ('10.0.0.1', '2024-02-29 12:00:00.1234', 1700000000.5, '::1', '["a", null]', '-5', '1.5', '{"b": [], "a": [2], "b": []}', '[(1,''x'')]')"#,
        )
        .unwrap();
    let columns = "ip IPv4, at DateTime64(4), seen DateTime64(3), six IPv6, tags Array(Nullable(String)), wide Int256, big Decimal256(2), \
         labels Map(String, Array(UInt8)), hops Nested(n UInt8, s String)";
    let source = "TABLE 'hosts'";
    let dictionary = open(folder.path(), columns, "ip, at", source, "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)");
    let at = DataType::parse("DateTime64(4)").unwrap();
    let key = [of_text(&DataType::Ipv4, "10.0.0.1"), of_text(&at, "2024-02-29 12:00:00.1234")];
    shows(
        &dictionary,
        &key,
        &["1700000000.5", "::1", "['a',NULL]", "-5", "1.5", "{'b':[],'a':[2],'b':[]}", "[(1,'x')]"],
    );
}

/// A REAL has 64 bits: the number that a Float32 is written as, or that it is.
#[test]
fn floats_are_found_as_they_are_written_and_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE floats (f REAL, a INTEGER, v INTEGER);
             INSERT INTO floats VALUES (0.1, 1, 5), (0.20000000298023224, 2, 6), (-1.5, 3, 7);",
        )
        .unwrap();
    let f: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 0.2, -1.5, 0.3]));
    let a: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 1]));
    for (columns, key, keys) in [
        ("f Float32, v UInt64", "f", vec![Arc::clone(&f)]),
        ("f Float32, a Int64, v UInt64", "(f, a)", vec![f, a]),
    ] {
        let dictionary = open(folder.path(), columns, key, "TABLE 'floats'", "COMPLEX_KEY_DIRECT()");
        assert_eq!(values(&dictionary.get(&[0], &keys).unwrap().columns[0]), [5, 6, 7, 0], "{key}");
    }
}

#[test]
fn texts_without_a_zone_are_local_times() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE clocks (at TEXT, local TEXT, fine TEXT, seconds INTEGER);
             INSERT INTO clocks VALUES ('2024-01-01 10:00:00', '2024-01-01 10:00:00Z', '2024-01-01 10:00:00.5', 5)",
        )
        .unwrap();
    let zone = "DateTime('Asia/Tokyo')";
    let columns = format!(
        "at {zone}, local {zone}, fine DateTime64(1, 'Asia/Tokyo'), seconds {zone}, plain DateTime EXPRESSION at"
    );
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
    let dictionary = open(folder.path(), &columns, "at", "TABLE 'clocks'", layout);
    let key = [of_text(&DataType::parse(zone).unwrap(), "2024-01-01 10:00:00")];
    let row = ["2024-01-01 19:00:00", "2024-01-01 10:00:00.5", "1970-01-01 09:00:05", "2024-01-01 10:00:00"];
    shows(&dictionary, &key, &row);
}

#[test]
fn fetches_just_the_keys_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let dictionary = open(folder.path(), USERS, "id", "TABLE 'users'", SSD);
    let answer = dictionary.get(&[0, 1, 2, 3, 4], &u64s([5, 200_000, 300_000, u64::MAX, 5])).unwrap();
    assert_eq!(found(&answer.found), [true, true, false, false, true]);
    assert_eq!(texts(&answer.columns[0]), ["user 5", "sparse", "nobody", "nobody", "user 5"]);
    let score = answer.columns[1].as_primitive::<Float64Type>();
    assert_eq!(score.values(), &[1.25, -1.0, -1.0, -1.0, 1.25]);
    let dates = answer.columns[2].as_primitive::<arrow::datatypes::Date32Type>();
    assert_eq!(dates.values(), &[18_267, 10_956, 10_956, 10_956, 18_267]);
    assert_eq!(texts(&answer.columns[3]), ["city 5", "NULL", "NULL", "NULL", "city 5"]);
    assert_eq!(texts(&answer.columns[4])[0], "USER 5");
    assert_eq!((dictionary.status().source_keys, dictionary.status().source_rows), (4, 2));
    let keys: Vec<u64> = (0..120_000).rev().collect();
    let answer = dictionary.get(&[0], &u64s(keys.clone())).unwrap();
    let names = texts(&answer.columns[0]);
    for (key, name) in keys.iter().zip(names) {
        let expected = if (1..=100_000).contains(key) { format!("user {key}") } else { "nobody".into() };
        assert_eq!(name, expected);
    }
    // The index tells keys apart by some bits of a hash: it may lose an entry in a thousand, no more.
    let asked = dictionary.status().source_keys;
    dictionary.get(&[0], &u64s(keys)).unwrap();
    let status = dictionary.status();
    assert!(status.source_keys - asked <= 240 + status.index_evictions, "{status:?}");
}

#[test]
fn integers_may_be_texts() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE hashes (id TEXT, other TEXT, v INTEGER);
             INSERT INTO hashes VALUES ('5', '1', 1), ('18446744073709551615', '2', 2);
             CREATE TABLE numbers (id INTEGER, v INTEGER);
             INSERT INTO numbers VALUES (5, 1), (18446744073709551615, 2), (6.0, 3);
             CREATE TABLE reals (id REAL, v INTEGER);
             INSERT INTO reals VALUES (5, 1), (18446744073709551615, 2), (6.0, 3)",
        )
        .unwrap();
    // Of the float that is nearest nobody knows which integer it was.
    for table in ["numbers", "reals"] {
        let source = format!("TABLE '{table}'");
        let dictionary = open(folder.path(), "id UInt64, v Int32", "id", &source, "CACHE(SIZE_IN_CELLS 100)");
        let answer = dictionary.get(&[0], &u64s([5, 6, u64::MAX, u64::MAX - 1])).unwrap();
        assert_eq!(answer.columns[0].as_primitive::<Int32Type>().values(), &[1, 3, 0, 0], "{table}");
    }
    let keys = u64s([5, 6, u64::MAX, u64::MAX - 1]);
    let simple =
        open(folder.path(), "id UInt64, v Int32", "id", "TABLE 'hashes'", "CACHE(SIZE_IN_CELLS 100)");
    let answer = simple.get(&[0], &keys).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<Int32Type>().values(), &[1, 0, 2, 0]);
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
    for first in ["UInt64", "Nullable(UInt64)"] {
        let columns = format!("id {first}, other Int128, v Int32");
        let complex = open(folder.path(), &columns, "id, other", "TABLE 'hashes'", layout);
        let first = DataType::parse(first).unwrap();
        for (id, other, v) in
            [("5", "1", 1), ("18446744073709551615", "2", 2), ("18446744073709551614", "2", 0)]
        {
            let key = [of_text(&first, id), of_text(&DataType::Int128, other)];
            let answer = complex.get(&[0], &key).unwrap();
            assert_eq!(answer.columns[0].as_primitive::<Int32Type>().values(), &[v], "{id}");
        }
    }
}

#[test]
fn composite_and_nullable_keys() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(1), Some(2), Some(2), None]));
    let b = strings(&["x", "it's", "x", "y", "x"]);
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
    let strict = open(folder.path(), "a Int64, b String, v Int32", "a, b", "TABLE 'pairs'", layout);
    let answer = strict.get(&[0], &[a.clone(), b.clone()]).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<Int32Type>().values(), &[10, 11, 12, 0, 0]);
    let nullable =
        open(folder.path(), "a Nullable(Int64), b String, v Int32", "a, b", "TABLE 'pairs'", layout);
    let answer = nullable.get(&[0], &[a, b]).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<Int32Type>().values(), &[10, 11, 12, 0, 13]);
    assert_eq!(all_rows(&nullable).unwrap().num_rows(), 4);
}

/// Columns named like those of a table of keys, or like SQLite's rowid.
#[test]
fn nullable_keys_of_any_names() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(7), Some(8), None, None]));
    let b: ArrayRef = Arc::new(Int64Array::from(vec![70, 71, 80, 90, 91]));
    for (i, (first, second)) in
        [("k1", "k2"), ("k0", "k1"), ("K1", "K0"), ("rowid", "oid"), ("oid", "_rowid_")].iter().enumerate()
    {
        connection
            .execute_batch(&format!(
                "CREATE TABLE named{i} ({first} INTEGER, {second} INTEGER, v INTEGER);
                 INSERT INTO named{i} VALUES (7, 70, 1), (8, 80, 2), (NULL, 90, 3);"
            ))
            .unwrap();
        for table in
            [format!("TABLE 'named{i}'"), format!("QUERY 'SELECT * FROM named{i} WHERE {{condition}}'")]
        {
            let columns = format!("{first} Nullable(Int64), {second} Int64, v UInt64");
            let key = format!("{first}, {second}");
            let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
            let dictionary = open(folder.path(), &columns, &key, &table, layout);
            let answer = dictionary.get(&[0], &[Arc::clone(&a), Arc::clone(&b)]).unwrap();
            assert_eq!(values(&answer.columns[0]), [1, 0, 2, 3, 0], "{key} {table}");
        }
    }
}

#[test]
fn where_and_query() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    for source in [
        "TABLE 'users' WHERE 'id > 10 OR id = 3'",
        "QUERY 'SELECT id, score FROM users WHERE {condition} AND (id > 10 OR id = 3)'",
        "QUERY 'SELECT id, score FROM users WHERE id > 10 OR id = 3'",
        "TABLE 'users' WHERE 'id > 10 OR id = 3 -- the living'",
        "QUERY 'SELECT id, score FROM users WHERE id > 10 OR id = 3 -- the living'",
        "QUERY 'SELECT id, score FROM users WHERE {condition} AND (id > 10 OR id = 3) -- the living'",
    ] {
        let dictionary = open(folder.path(), "id UInt64, score Float64", "id", source, "DIRECT");
        let answer = dictionary.get(&[0], &u64s([2, 3, 11])).unwrap();
        assert_eq!(found(&answer.found), [false, true, true], "{source}");
        assert_eq!(dictionary.status().source_rows, 2, "{source}");
    }
    let direct = open(folder.path(), "id UInt64, score Float64", "id", "TABLE 'users'", "DIRECT");
    assert_eq!(all_rows(&direct).unwrap().num_rows(), 100_001);
    reads_whole_in_batches(&direct);
}

#[test]
fn says_what_is_wrong_with_the_source() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let get = |columns: &str, source: &str| {
        let dictionary = open(folder.path(), columns, "id", source, "DIRECT");
        dictionary.get(&[0], &u64s([1])).unwrap_err().to_string()
    };
    let error = get("id UInt64, v UInt8", "TABLE 'nosuch'");
    assert!(error.starts_with("Code: 626.") && error.contains("no such table: nosuch"), "{error}");
    let error = get("id UInt64, name UInt8", "TABLE 'users'");
    assert!(error.contains("Column name of the source: Cannot parse 'user 1' as UInt8"), "{error}");
    let error = get("id UInt64, nmae String", "TABLE 'users'");
    assert!(error.starts_with("Code: 626.") && error.contains("no such column: \"nmae\""), "{error}");
    for (columns, key) in [("idd UInt64, name String", "idd"), ("a Int64, bb String, v Int32", "a, bb")] {
        let table = if key == "idd" { "TABLE 'users'" } else { "TABLE 'pairs'" };
        let dictionary = open(folder.path(), columns, key, table, "DIRECT");
        let keys =
            if key == "idd" { u64s([1]) } else { vec![Arc::new(Int64Array::from(vec![1])), strings(&["x"])] };
        let error = dictionary.get(&[0], &keys).unwrap_err().to_string();
        assert!(error.contains("no such column"), "{error}");
    }
    let sql = "CREATE DICTIONARY s (id UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH '/nosuch/x.db' TABLE 't')) LAYOUT(DIRECT)";
    let dictionary = Dictionary::open(definition(sql), &Environment::new(folder.path())).unwrap();
    let error = dictionary.has(&u64s([1])).unwrap_err().to_string();
    assert!(error.contains("/nosuch/x.db") && error.contains("unable to open"), "{error}");
    let confined =
        Environment { user_files: Some(folder.path().join("user_files")), ..Environment::new(folder.path()) };
    assert_eq!(Dictionary::open(definition(sql), &confined).err().unwrap().code(), 481);
}

#[test]
fn changes_are_found_by_update_field_and_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    connection.execute_batch("CREATE TABLE news (id INTEGER, v INTEGER, at TEXT)").unwrap();
    let write = |rows: &[News<'_>]| {
        let sql = format!("DELETE FROM news; INSERT INTO news VALUES {}", news(rows));
        connection.execute_batch(&sql).unwrap();
    };
    let dictionary = open(folder.path(), NEWS.0, "id", NEWS.1, SSD);
    changes_are_taken_in(&dictionary, &write);
    drop(dictionary);
    let fourth = "2026-01-01 00:30:00";
    write(&[
        (1, 13, fourth),
        (2, 21, "2026-01-01 00:20:07"),
        (3, 31, "2026-01-01 00:00:00"),
        (99, 991, fourth),
    ]);
    let dictionary = open(folder.path(), NEWS.0, "id", NEWS.1, SSD);
    assert!(dictionary.status().element_count > 0, "it is warm");
    // Rows that were changed while it was closed, and the last ones before.
    assert_eq!(dictionary.take_updates().unwrap(), 3);
    let answer = dictionary.get(&[0], &u64s([1, 2, 3, 99])).unwrap();
    assert_eq!(values(&answer.columns[0]), [13, 21, 30, 991]);
    assert_eq!(dictionary.status().source_keys, 3);
    // Without its watermark it starts empty.
    drop(dictionary);
    std::fs::remove_file(folder.path().join("user_files/cache.mark")).unwrap();
    let dictionary = open(folder.path(), NEWS.0, "id", NEWS.1, SSD);
    dictionary.take_updates().unwrap();
    assert_eq!(dictionary.status().element_count, 0);
    dictionary.remove();
    assert!(!folder.path().join("user_files/cache.mark").exists());
}

#[test]
fn a_column_that_is_not_there_leaves_lookups_alone() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let source = "TABLE 'users' UPDATE_FIELD 'nosuch'";
    let dictionary = Arc::new(open(folder.path(), "id UInt64, name String", "id", source, SSD));
    dictionary.watch();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !dictionary.status().last_exception.contains("UPDATE_FIELD") {
        assert!(std::time::Instant::now() < deadline, "it says what is wrong");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let answer = dictionary.get(&[0], &u64s([5])).unwrap();
    assert_eq!(texts(&answer.columns[0]), ["user 5"]);
}

#[test]
fn a_number_that_grows_tells_changes_too() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    connection
        .execute_batch("CREATE TABLE versions (id INTEGER, v INTEGER, n INTEGER); INSERT INTO versions VALUES (1, 1, 100), (2, 1, 200)")
        .unwrap();
    let source = "TABLE 'versions' UPDATE_FIELD 'n' UPDATE_LAG 0";
    let dictionary = open(folder.path(), "id UInt64, v UInt64", "id", source, "CACHE(SIZE_IN_CELLS 10)");
    assert_eq!(dictionary.take_updates().unwrap(), 0);
    dictionary.get(&[0], &u64s([1, 2])).unwrap();
    connection.execute_batch("UPDATE versions SET v = 2, n = 201 WHERE id = 1").unwrap();
    dictionary.take_updates().unwrap();
    let answer = dictionary.get(&[0], &u64s([1, 2])).unwrap();
    assert_eq!(values(&answer.columns[0]), [2, 1]);
}

/// A changed row whose key no lookup can ask for (here a negative one) must not keep other changes from being taken in.
#[test]
fn a_changed_row_that_nobody_can_ask_for_keeps_no_other_change_away() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    connection
        .execute_batch("CREATE TABLE versions (id INTEGER, v INTEGER, n INTEGER); INSERT INTO versions VALUES (1, 1, 100)")
        .unwrap();
    let source = "TABLE 'versions' UPDATE_FIELD 'n' UPDATE_LAG 0";
    let dictionary = open(folder.path(), "id UInt64, v UInt64", "id", source, "CACHE(SIZE_IN_CELLS 10)");
    dictionary.take_updates().unwrap();
    dictionary.get(&[0], &u64s([1])).unwrap();
    connection
        .execute_batch(
            "UPDATE versions SET v = 2, n = 201 WHERE id = 1; INSERT INTO versions VALUES (-1, 0, 202)",
        )
        .unwrap();
    for _ in 0..3 {
        let _ = dictionary.take_updates();
    }
    assert_eq!(values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), [2]);
}

/// The row is forgotten, and an error only for lookups of it; the others have their new values.
#[test]
fn a_changed_row_that_cannot_be_read_keeps_no_other_change_away() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    connection
        .execute_batch("CREATE TABLE versions (id INTEGER, v TEXT, n INTEGER); INSERT INTO versions VALUES (1, '1', 100), (2, '1', 100)")
        .unwrap();
    let source = "TABLE 'versions' UPDATE_FIELD 'n' UPDATE_LAG 0";
    let dictionary = open(folder.path(), "id UInt64, v UInt64", "id", source, "CACHE(SIZE_IN_CELLS 10)");
    dictionary.take_updates().unwrap();
    dictionary.get(&[0], &u64s([1, 2])).unwrap();
    for n in 101..104 {
        let change = format!(
            "UPDATE versions SET v = '{n}x', n = {n} WHERE id = 1; UPDATE versions SET v = '{n}', n = {n} WHERE id = 2"
        );
        connection.execute_batch(&change).unwrap();
        dictionary.take_updates().unwrap();
        assert_eq!(values(&dictionary.get(&[0], &u64s([2])).unwrap().columns[0]), [n]);
        let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
        assert!(error.message().contains("x' as UInt64"), "{error}");
    }
}

/// A file is deployed by writing it beside the old one and renaming it. All connections see that, and so does the look
/// for changes.
#[test]
fn a_file_that_takes_the_name_of_another_is_read() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let put = |value: u64| {
        let files = folder.path().join("user_files");
        let new = files.join("new.db");
        let connection = rusqlite::Connection::open(&new).unwrap();
        let table = format!(
            "CREATE TABLE t (id INTEGER, v INTEGER, n INTEGER); INSERT INTO t VALUES (1, {value}, {value}), (2, {value}, 0)"
        );
        connection.execute_batch(&table).unwrap();
        drop(connection);
        std::fs::rename(new, files.join("users.db")).unwrap();
    };
    put(1);
    let source = "TABLE 't' UPDATE_FIELD 'n' UPDATE_LAG 0";
    let layout = "CACHE(SIZE_IN_CELLS 10 MAX_THREADS_FOR_UPDATES 1)";
    let cached = open(folder.path(), "id UInt64, v UInt64", "id", source, layout);
    let direct = open(folder.path(), "id UInt64, v UInt64", "id", source, "DIRECT");
    assert_eq!(cached.take_updates().unwrap(), 0);
    let shown = |dictionary: &Dictionary| values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]);
    for value in 2..5 {
        put(value);
        cached.take_updates().unwrap();
        assert_eq!((shown(&cached), shown(&direct)), (vec![value], vec![value]));
        assert_eq!(values(all_rows(&direct).unwrap().column(1)), [value, value]);
    }
    std::fs::remove_file(folder.path().join("user_files/users.db")).unwrap();
    assert!(direct.has(&u64s([1])).unwrap_err().message().contains("unable to open"));
    put(9);
    assert_eq!(shown(&direct), [9]);
}

#[test]
fn a_query_without_an_end_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path());
    let source = "QUERY 'SELECT id, name FROM users WHERE {condition} AND \
         (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n) > id'";
    let layout = "CACHE(SIZE_IN_CELLS 10 QUERY_WAIT_TIMEOUT_MILLISECONDS 1000)";
    let dictionary = open(folder.path(), "id UInt64, name String", "id", source, layout);
    let said = gives_up(&dictionary);
    assert!(said.contains("SQLite: no whole answer within 2000 ms. (TIMEOUT_EXCEEDED)"), "{said}");
}
