//! Dictionaries over a real ClickHouse.

mod common;
#[path = "common/process.rs"]
mod process;
#[path = "common/clickhouse.rs"]
mod server;

use arrow::array::{ArrayRef, AsArray, Float32Array, Int32Array, Int64Array};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Int32Type, TimestampSecondType, UInt8Type, UInt64Type,
};
use common::*;
use granary_dict::{DataType, Dictionary, Environment};
use server::Server;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn sql(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> String {
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(1000)" };
    format!(
        "CREATE DICTIONARY c ({columns}) PRIMARY KEY {key} SOURCE(CLICKHOUSE(HOST '127.0.0.1' PORT {} \
         USER 'reader' PASSWORD 'it''s secret' DB 'app-1' SECURE 0 {source})) LAYOUT({layout}) {lifetime}",
        server.port
    )
}

fn open(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> Dictionary {
    let sql = sql(server, columns, key, source, layout);
    Dictionary::open(definition(&sql), &Environment::new("/")).unwrap()
}

#[test]
fn clickhouse() {
    let mut server = Server::start();
    for sql in [
        "CREATE DATABASE `app-1`",
        "CREATE TABLE `app-1`.users (id UInt32, name Nullable(String), score Float32, born Date, seen DateTime, \
             balance Decimal(12, 3), ok UInt8, u UUID, `Odd ``name` FixedString(3), number String, raw String) ENGINE = Log",
        "INSERT INTO `app-1`.users SELECT number + 1 AS i, concat('user ', toString(i)), i / 3, toDate('2000-01-01') + i % 1000, \
             toDateTime('2024-02-29 12:00:00', 'UTC') + i, toDecimal64(i, 3) / 4, i % 2 = 0, \
             toUUID('00112233-4455-6677-8899-aabbccddeeff'), 'odd', if(i = 5, 'five', toString(i)), \
             unhex('FF00') FROM system.numbers LIMIT 100000",
        "INSERT INTO `app-1`.users (id, name) VALUES (1000001, NULL)",
        "CREATE TABLE `app-1`.pairs (a Int64, b String, v Int32) ENGINE = Log",
        "INSERT INTO `app-1`.pairs VALUES (1, 'it\\'s', 10), (1, 'b', 11), (2, 'b\\\\', 12), (3, '\"é', 13)",
        "CREATE TABLE `app-1`.holes (a Nullable(Int32), v Int32) ENGINE = Log",
        "INSERT INTO `app-1`.holes VALUES (NULL, 5), (3, 6)",
        "CREATE TABLE `app-1`.days (d DateTime, v Int32) ENGINE = Log",
        "INSERT INTO `app-1`.days VALUES (1709208000, 7)",
    ] {
        server.execute(sql);
    }
    every_type(&server);
    texts_and_truths(&server);
    arrays(&server);
    many_keys(&server);
    other_keys(&server);
    floats(&server);
    conditions_and_queries(&server);
    answers_that_are_cut_are_refused(&server);
    long_keys(&server);
    errors(&server);
    updates(&server);
    outage(&mut server);
}

fn updates(server: &Server) {
    server.execute("CREATE TABLE `app-1`.news (id UInt64, v UInt64, at DateTime) ENGINE = Memory");
    let dictionary = open(server, NEWS.0, "id", NEWS.1, "CACHE(SIZE_IN_CELLS 1000)");
    changes_are_taken_in(&dictionary, &|rows| {
        server.execute("DROP TABLE `app-1`.news");
        server.execute("CREATE TABLE `app-1`.news (id UInt64, v UInt64, at DateTime) ENGINE = Memory");
        server.execute(&format!("INSERT INTO `app-1`.news VALUES {}", news(rows)));
    });
    let make = |data_type: &str, row: &str| {
        server.execute("DROP TABLE IF EXISTS `app-1`.marked");
        let columns = format!("(id UInt64, v UInt64, at {data_type})");
        server.execute(&format!("CREATE TABLE `app-1`.marked {columns} ENGINE = Memory"));
        if !row.is_empty() {
            server.execute(&format!("INSERT INTO `app-1`.marked VALUES {row}"));
        }
    };
    let open = |source: &str| open(server, NEWS.0, "id", source, "CACHE(SIZE_IN_CELLS 1000)");
    columns_tell_changes(
        &[
            ("UInt32", "1700000000", "1700000001", "UPDATE_LAG 0", None),
            ("Float64", "1.125", "1.25", "UPDATE_LAG 0", None),
            ("String", "'v1'", "'v2'", "UPDATE_LAG 0", None),
            ("Date", "'2026-11-27'", "'2026-11-27'", "UPDATE_LAG 0", None),
        ],
        &make,
        &open,
    );
    // The greatest time of no rows is 1970, and a lag before it is in the future.
    make("DateTime", "");
    let dictionary = open("TABLE 'marked' UPDATE_FIELD 'at'");
    let value = || values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0])[0];
    assert_eq!((dictionary.take_updates().unwrap(), value()), (0, 0));
    for v in [10, 11] {
        make("DateTime", &format!("(1, {v}, '2026-11-27 10:00:{v}')"));
        dictionary.take_updates().unwrap();
        assert_eq!(value(), v);
    }
    moments_that_were_changed(server);
}

/// A key that is a time is the same moment in the list of changes, whatever the zone of the server.
fn moments_that_were_changed(server: &Server) {
    let make = |row: &str| {
        server.execute("DROP TABLE IF EXISTS `app-1`.moves");
        server.execute("CREATE TABLE `app-1`.moves (d DateTime, v UInt64, at DateTime) ENGINE = Memory");
        server.execute(&format!("INSERT INTO `app-1`.moves VALUES {row}"));
    };
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 1000)";
    for (zone, array) in [("", None), ("('Europe/Berlin')", Some("Europe/Berlin"))] {
        // The second of two hours.
        make("(1698543000, 10, '2026-11-27 10:00:10')");
        let columns = format!("d DateTime{zone}, v UInt64");
        let dictionary = open(server, &columns, "d", "TABLE 'moves' UPDATE_FIELD 'at'", layout);
        let moments = arrow::array::TimestampSecondArray::from(vec![1_698_543_000]);
        let key: ArrayRef = Arc::new(moments.with_timezone_opt(array));
        let value = || values(&dictionary.get(&[0], &[Arc::clone(&key)]).unwrap().columns[0])[0];
        dictionary.take_updates().unwrap();
        assert_eq!(value(), 10);
        make("(1698543000, 11, '2026-11-27 10:00:20')");
        dictionary.take_updates().unwrap();
        assert_eq!(value(), 11, "{columns}");
    }
}

/// A value that cannot be read is an error, or NULL where the attribute is Nullable; a number is true if it is not 0.
fn texts_and_truths(server: &Server) {
    server.execute(
        "CREATE TABLE `app-1`.words (id UInt64, v Nullable(String), w String, n Int32, m Nullable(Float64)) ENGINE = Log",
    );
    server.execute(
        "INSERT INTO `app-1`.words VALUES (1, '7', '7', 256, 0.5), (2, NULL, 'abc', 0, NULL), (3, 'abc', '8', 65536, 0)",
    );
    let open = |columns: &str| open(server, columns, "id", "TABLE 'words'", "CACHE(SIZE_IN_CELLS 1000)");
    let numbers = open("id UInt64, v UInt64 DEFAULT 5");
    assert_eq!(values(&numbers.get(&[0], &u64s([1, 2])).unwrap().columns[0]), [7, 5]);
    let error = numbers.get(&[0], &u64s([3])).unwrap_err();
    assert!(error.message().contains("Cannot parse") && error.message().contains("abc"), "{error}");
    let nullable = open("id UInt64, w Nullable(UInt64)").get(&[0], &u64s([1, 2, 3])).unwrap();
    let read: Vec<Option<u64>> = nullable.columns[0].as_primitive::<UInt64Type>().iter().collect();
    assert_eq!(read, [Some(7), None, Some(8)]);
    let truths = open("id UInt64, n Bool, m Bool DEFAULT true").get(&[0, 1], &u64s([1, 2, 3])).unwrap();
    let truths = |column: usize| truths.columns[column].as_boolean().iter().flatten().collect::<Vec<bool>>();
    assert_eq!(truths(0), [true, false, true]);
    assert_eq!(truths(1), [true, true, false]);
}

fn every_type(server: &Server) {
    let columns = "id UInt64, name String DEFAULT 'nobody', score Float32, born Date, seen DateTime('America/New_York'), \
         balance Nullable(Decimal(18, 4)), ok Bool, u UUID, `Odd ``name` String, upper String EXPRESSION upper(name), \
         as_text String EXPRESSION toString(id), small UInt8 EXPRESSION toUInt64(ok)";
    let dictionary = open(server, columns, "id", "TABLE 'users'", "CACHE(SIZE_IN_CELLS 1000)");
    let all: Vec<usize> = (0..dictionary.definition().structure.attributes.len()).collect();
    let answer = dictionary.get(&all, &u64s([4, 5, 1_000_001, 7_777_777, u64::MAX])).unwrap();
    assert_eq!(found(&answer.found), [true, true, true, false, false]);
    let column = |i: usize| &answer.columns[i];
    assert_eq!(texts(column(0)), ["user 4", "user 5", "nobody", "nobody", "nobody"]);
    assert_eq!(column(1).as_primitive::<Float32Type>().values()[..3], [4.0 / 3.0, 5.0 / 3.0, 0.0]);
    assert_eq!(column(2).as_primitive::<Date32Type>().value(0), 10_957 + 4);
    assert_eq!(column(3).as_primitive::<TimestampSecondType>().value(0), 1_709_208_000 + 4);
    let balance: Vec<Option<i128>> = column(4).as_primitive::<Decimal128Type>().iter().collect();
    assert_eq!(balance, [Some(10_000), Some(12_500), Some(0), None, None]);
    assert!(column(5).as_boolean().value(0) && !column(5).as_boolean().value(1));
    assert_eq!(column(6).as_fixed_size_binary().value(0)[..3], [0, 0x11, 0x22]);
    assert_eq!(texts(column(7))[0], "odd");
    assert_eq!(texts(column(8))[..2], ["USER 4", "USER 5"]);
    assert_eq!(texts(column(9))[..2], ["4", "5"]);
    assert_eq!(column(10).as_primitive::<UInt8Type>().values()[..2], [1, 0]);
    assert_eq!(dictionary.status().source, "ClickHouse: app-1.users");
}

fn arrays(server: &Server) {
    server.execute(
        "CREATE TABLE `app-1`.arrays (id UInt32, n Array(UInt16), s Array(Nullable(String)), nested Array(Array(Date)), \
             path Array(String)) ENGINE = Log",
    );
    server.execute(
        "INSERT INTO `app-1`.arrays VALUES (1, [1, 2], ['it\\'s', NULL], [[], ['2024-02-29']], ['a', 'b']), \
             (2, [], [], [], ['it\\'s'])",
    );
    let columns = "id UInt64, n Array(Int64), s Array(Nullable(String)), nested Array(Array(Date))";
    let dictionary = open(server, columns, "id", "TABLE 'arrays'", "CACHE(SIZE_IN_CELLS 1000)");
    shows(&dictionary, &u64s([1]), &["[1,2]", r"['it\'s',NULL]", "[[],['2024-02-29']]"]);
    shows(&dictionary, &u64s([2]), &["[]", "[]", "[]"]);
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 1000)";
    let by_path = open(server, "path Array(String), id UInt64", "path", "TABLE 'arrays'", layout);
    let path = DataType::parse("Array(String)").unwrap();
    shows(&by_path, &[of_text(&path, r"['it\'s']")], &["2"]);
}

fn many_keys(server: &Server) {
    let dictionary =
        open(server, "id UInt64, name String", "id", "TABLE 'users'", "CACHE(SIZE_IN_CELLS 1000000)");
    let answer = dictionary.get(&[0], &u64s(0..150_000)).unwrap();
    assert_eq!(answer.found.true_count(), 100_000);
    let names = texts(&answer.columns[0]);
    assert!((1..=100_000).all(|i| names[i] == format!("user {i}")));
    let status = dictionary.status();
    assert_eq!((status.source_requests, status.source_rows), (3, 100_000));
    let direct = open(server, "id UInt64, name String", "id", "TABLE 'users'", "DIRECT()");
    assert_eq!(all_rows(&direct).unwrap().num_rows(), 100_001);
    reads_whole_in_batches(&direct);
}

fn other_keys(server: &Server) {
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 1000)";
    let pairs = open(server, "a Int64, b String, v Int32 DEFAULT -1", "(a, b)", "TABLE 'pairs'", layout);
    let a: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2, 2, 1, 3, -1]));
    let b = strings(&["it's", "b", "b\\", "x", "nul\0", "\"é", "') OR 1=1 -- "]);
    let answer = pairs.get(&[0], &[a, b]).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<Int32Type>().values(), &[10, 11, 12, -1, -1, 13, -1]);
    assert_eq!(pairs.status().source_rows, 4);
    let nullable = open(server, "a Nullable(Int32), v UInt64", "a", "TABLE 'holes'", layout);
    let a: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(3), Some(4)]));
    assert_eq!(values(&nullable.get(&[0], &[a]).unwrap().columns[0]), [5, 6, 0]);
    // A moment is found whatever the zones of client and server.
    let days = open(server, "d DateTime('America/New_York'), v UInt64", "d", "TABLE 'days'", layout);
    let moments = arrow::array::TimestampSecondArray::from(vec![1_709_208_000, 1_709_208_001]);
    let moments: ArrayRef = Arc::new(moments.with_timezone("America/New_York"));
    assert_eq!(values(&days.get(&[0], &[moments]).unwrap().columns[0]), [7, 0]);
}

/// A Float32 is compared in 64 bits.
fn floats(server: &Server) {
    server.execute("CREATE TABLE `app-1`.floats (f Float32, d Float64, v Int64) ENGINE = Log");
    server.execute("INSERT INTO `app-1`.floats VALUES (0.1, 0.1, 5), (1e30, 1e30, 6), (-1.5, -1.5, 7)");
    let keys: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 1e30, -1.5, 0.2]));
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 1000)";
    for key in ["f", "d"] {
        let dictionary = open(server, &format!("{key} Float32, v UInt64"), key, "TABLE 'floats'", layout);
        assert_eq!(
            values(&dictionary.get(&[0], std::slice::from_ref(&keys)).unwrap().columns[0]),
            [5, 6, 7, 0],
            "{key}"
        );
    }
    let pairs = open(server, "f Float32, v Int64, d Float64", "(f, v)", "TABLE 'floats'", layout);
    let v: ArrayRef = Arc::new(Int64Array::from(vec![5, 6, 7, 5]));
    assert_eq!(found(&pairs.has(&[keys, v]).unwrap()), [true, true, true, false]);
}

fn conditions_and_queries(server: &Server) {
    for source in [
        "TABLE 'users' WHERE 'id > 10 OR id = 3'",
        "QUERY 'SELECT id, ok FROM users WHERE {condition} AND (id > 10 OR id = 3)'",
        "QUERY 'SELECT id, ok FROM users WHERE id > 10 OR id = 3'",
    ] {
        let dictionary = open(server, "id UInt64, ok UInt8", "id", source, "DIRECT()");
        let answer = dictionary.get(&[0], &u64s([2, 3, 11])).unwrap();
        assert_eq!(found(&answer.found), [false, true, true], "{source}");
        assert_eq!(dictionary.status().source_rows, 2, "{source}");
    }
}

/// ClickHouse takes statements of 256 KiB: long keys go in statements of their own, and a longer one is an error only
/// for lookups of it.
fn long_keys(server: &Server) {
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
    let dictionary = open(server, "b String, v Int32", "b", "TABLE 'pairs'", layout);
    let (long, longer) = ("x".repeat(150 << 10), "y".repeat(300 << 10));
    let has = |keys: &[&str]| dictionary.has(&[strings(keys)]).map(|answer| found(&answer));
    assert_eq!(has(&["b", &long, "it's", &long[1..]]).unwrap(), [true, false, true, false]);
    has(&["b\\", &longer, "\"é"]).unwrap_err();
    assert_eq!(has(&["b\\", "\"é", "z"]).unwrap(), [true, true, false]);
}

/// A USER whose answers are cut would lose rows silently.
fn answers_that_are_cut_are_refused(server: &Server) {
    let sql = sql(server, "id UInt64, score Float32", "id", "TABLE 'users'", "DIRECT()");
    let dictionary =
        Dictionary::open(definition(&sql.replace("'reader'", "'cut'")), &Environment::new("/")).unwrap();
    let error = dictionary.has(&u64s([1, 2, 3, 4, 5])).unwrap_err();
    assert_eq!(error.code(), 48);
    assert!(error.message().contains("max_result_rows with result_overflow_mode = 'break'"), "{error}");
}

fn errors(server: &Server) {
    let cached = "CACHE(SIZE_IN_CELLS 100)";
    let try_key = |columns: &str, key: u64| {
        let dictionary = open(server, columns, "id", "TABLE 'users'", cached);
        let error = dictionary.get(&[0], &u64s([3, key])).unwrap_err();
        assert!(dictionary.has(&u64s([key])).is_err(), "nothing is known after {error}");
        error.to_string()
    };
    let error = try_key("id UInt64, nosuch String", 1);
    assert!(error.contains("answered 404") && error.contains("nosuch"), "{error}");
    // Not a default in its place.
    let error = try_key("id UInt64, number UInt64", 5);
    assert!(error.contains("Cannot parse") && error.contains("five"), "{error}");
    assert!(try_key("id UInt64, raw String", 1).contains("Column raw of the source is not valid UTF-8"));
    let sql = sql(server, "id UInt64, ok UInt8", "id", "TABLE 'users'", "DIRECT()");
    let wrong = definition(&sql.replace("it''s secret", "wrong-word"));
    let error = Dictionary::open(wrong, &Environment::new("/")).unwrap().has(&u64s([1])).unwrap_err();
    assert!(error.message().contains("password") && !error.message().contains("wrong-word"), "{error}");
    let source = "QUERY 'SELECT id, ok + sleep(3) AS ok FROM users WHERE {condition}'";
    let layout = "CACHE(SIZE_IN_CELLS 8 QUERY_WAIT_TIMEOUT_MILLISECONDS 100)";
    let slow = || {
        let dictionary = open(server, "id UInt64, ok UInt8", "id", source, layout);
        dictionary.has(&u64s([1])).unwrap_err().code()
    };
    // The source is given up later. A lookup that is woken later still is told of that.
    until("the lookup gives up first", || match slow() {
        159 => true,
        code => {
            assert_eq!(code, 510);
            false
        }
    });
}

fn outage(server: &mut Server) {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let layout = "CACHE(SIZE_IN_CELLS 1000 ALLOW_READ_EXPIRED_KEYS 1 STRICT_MAX_LIFETIME_SECONDS 1000000)";
    let sql = sql(server, "id UInt64, name String", "id", "TABLE 'users'", layout);
    let dictionary = Dictionary::open(definition(&sql), &environment).unwrap();
    let names = |keys: &[u64]| dictionary.get(&[0], &u64s(keys.to_vec())).map(|a| texts(&a.columns[0]));
    assert_eq!(names(&[2]).unwrap(), ["user 2"]);
    server.stop();
    clock.fetch_add(2000, Ordering::SeqCst);
    assert_eq!(names(&[2]).unwrap(), ["user 2"]);
    assert_eq!(names(&[2, 3]).unwrap_err().code(), 510);
    server.start_again();
    assert_eq!(comes_back(&clock, || names(&[2, 3])), ["user 2", "user 3"]);
}
