//! Dictionaries over a real Redis.

mod common;
#[path = "common/process.rs"]
mod process;
#[path = "common/redis.rs"]
mod server;

use arrow::array::{ArrayRef, AsArray, Int32Array};
use arrow::datatypes::Date32Type;
use common::*;
use granary_dict::{Dictionary, Environment};
use server::Server;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn sql(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> String {
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(1000)" };
    format!(
        "CREATE DICTIONARY r ({columns}) PRIMARY KEY {key} \
         SOURCE(REDIS(HOST '127.0.0.1' PORT {} PASSWORD 'secret' {source})) LAYOUT({layout}) {lifetime}",
        server.port
    )
}

fn open(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> Dictionary {
    let sql = sql(server, columns, key, source, layout);
    Dictionary::open(definition(&sql), &Environment::new("/")).unwrap()
}

#[test]
fn redis() {
    let mut server = Server::start();
    server.execute(
        0,
        &["SET 1 one", "SET 2 two", "SET 18446744073709551615 last", "SET name text", "SET 007 agent"],
    );
    server.execute(0, &["HSET 5 a hash", "SADD 6 member"]);
    server.execute(3, &["SET x 2024-02-29", "SET é\ty 1970-01-02", "SET bad 2024-02-30", "SET raw \u{1}"]);
    server.execute(4, &["HSET -1 a 10 b 11", "HSET 2 a 20", "SET 3 30"]);
    strings_by_number(&server);
    dates_by_string(&server);
    types_beyond_arrow(&server);
    one_bad_value_fails_nobody_else(&server);
    many_keys(&server);
    hashes(&server);
    errors(&server);
    a_connection_that_the_server_has_ended_is_made_anew(&server);
    outage(&mut server);
}

fn types_beyond_arrow(server: &Server) {
    server.execute(
        5,
        &["SET ip 10.0.0.1", "SET list ['a','b']", "SET map {'a':1,'a':2}", "SET at 1700000000.123456"],
    );
    for (key, data_type, text) in [
        ("ip", "IPv4", "10.0.0.1"),
        ("list", "Array(String)", "['a','b']"),
        ("map", "Map(String, UInt8)", "{'a':1,'a':2}"),
        ("at", "DateTime64(4, 'Asia/Tokyo')", "2023-11-15 07:13:20.1234"),
    ] {
        let columns = format!("name String, value {data_type}");
        let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
        shows(&open(server, &columns, "name", "DB_INDEX 5", layout), &[strings(&[key])], &[text]);
    }
}

fn strings_by_number(server: &Server) {
    let columns = "id UInt64, name String DEFAULT 'nobody'";
    let dictionary = open(server, columns, "id", "", "CACHE(SIZE_IN_CELLS 1000)");
    // 5 is a hash and 6 a set: they have no string.
    let answer = dictionary.get(&[0], &u64s([2, 1, u64::MAX, 7, 5, 6])).unwrap();
    assert_eq!(texts(&answer.columns[0]), ["two", "one", "last", "nobody", "nobody", "nobody"]);
    assert_eq!(found(&answer.found), [true, true, true, false, false, false]);
    assert_eq!(dictionary.status().source, format!("Redis: 127.0.0.1:{}", server.port));
    // A name that is no number, or not written as one, is not a key of this dictionary.
    let direct = open(server, columns, "id", "", "DIRECT()");
    let rows = all_rows(&direct).unwrap();
    let mut ids = values(rows.column(0));
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, u64::MAX]);
}

fn dates_by_string(server: &Server) {
    let dictionary = open(server, "k String, day Date", "k", "DB_INDEX 3", "COMPLEX_KEY_DIRECT()");
    let answer = dictionary.get(&[0], &[strings(&["x", "é\ty", "z"])]).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<Date32Type>().values(), &[19_782, 1, 0]);
    let error = dictionary.get(&[0], &[strings(&["x", "bad"])]).unwrap_err();
    assert!(error.message().contains("Column day of the source: Cannot parse '2024-02-30'"), "{error}");
}

/// A text that is no number is an error only for lookups of it.
fn one_bad_value_fails_nobody_else(server: &Server) {
    server.execute(6, &["SET 7 70", "SET 8 8x", "SET 9 90"]);
    let columns = "id UInt64, v UInt32";
    let dictionary = open(server, columns, "id", "DB_INDEX 6", "CACHE(SIZE_IN_CELLS 100)");
    let error = dictionary.get(&[0], &u64s([7, 8, 9])).unwrap_err();
    assert!(error.message().contains("Cannot parse '8x' as UInt32"), "{error}");
    for keys in [vec![7, 9], vec![10]] {
        let answer = dictionary.get(&[0], &u64s(keys.clone())).unwrap();
        assert_eq!(answer.found.true_count(), keys.iter().filter(|key| **key < 10).count());
    }
}

fn many_keys(server: &Server) {
    let mut connection = server.connection();
    let mut pipeline = redis::pipe();
    pipeline.cmd("SELECT").arg(5);
    for i in 0..50_000u64 {
        pipeline.cmd("SET").arg(i * 2).arg(format!("value {i}"));
    }
    pipeline.cmd("SET").arg(1).arg(&b"\xff\x00"[..]);
    pipeline.exec(&mut connection).unwrap();
    let dictionary = open(server, "id UInt64, v String", "id", "DB_INDEX 5", "CACHE(SIZE_IN_CELLS 200000)");
    let answer = dictionary.get(&[0], &u64s(2..100_000)).unwrap();
    assert_eq!(answer.found.true_count(), 49_999);
    assert_eq!(texts(&answer.columns[0])[99_996], "value 49999");
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.message().contains("Column v of the source is not valid UTF-8"), "{error}");
    let direct = open(server, "k Int32, v String", "k", "DB_INDEX 5", "COMPLEX_KEY_DIRECT()");
    assert!(all_rows(&direct).is_err());
    redis::cmd("DEL").arg(1).exec(&mut connection).unwrap();
    assert_eq!(all_rows(&direct).unwrap().num_rows(), 50_000);
    let direct = open(server, "id UInt64, v String", "id", "DB_INDEX 5", "DIRECT()");
    long_answers_are_refused(&direct, (0..2000).map(|key| key * 2));
    long_hashes_are_refused(server);
}

fn long_hashes_are_refused(server: &Server) {
    let source = "STORAGE_TYPE 'hash_map' DB_INDEX 7";
    let mut connection = server.connection();
    let mut pipeline = redis::pipe();
    pipeline.cmd("SELECT").arg(7);
    (0..2000).for_each(|field| _ = pipeline.cmd("HSET").arg("h").arg(field).arg("a value"));
    pipeline.exec(&mut connection).unwrap();
    let sql = sql(server, "a String, b Int32, v String", "a, b", source, "COMPLEX_KEY_DIRECT()");
    let environment = Environment { answer_bytes_max: 5_000, ..Environment::new("/") };
    let bounded = Dictionary::open(definition(&sql), &environment).unwrap();
    let keys = |count: i32| -> [ArrayRef; 2] {
        let fields = Int32Array::from_iter_values(0..count);
        [strings(&vec!["h"; count as usize]), Arc::new(fields)]
    };
    assert_eq!(bounded.get(&[0], &keys(10)).unwrap().found.true_count(), 10);
    for error in [bounded.get(&[0], &keys(2000)).err(), all_rows(&bounded).err()] {
        let error = error.unwrap();
        assert!(error.message().contains("an answer of more than 5000 bytes"), "{error}");
    }
}

fn hashes(server: &Server) {
    let source = "STORAGE_TYPE 'hash_map' DB_INDEX 4";
    let columns = "a Int32, b String, v UInt64 DEFAULT 7";
    let dictionary = open(server, columns, "a, b", source, "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)");
    let a: ArrayRef = Arc::new(Int32Array::from(vec![2, -1, -1, -1, 9]));
    let answer = dictionary.get(&[0], &[a, strings(&["a", "b", "c", "a", "a"])]).unwrap();
    assert_eq!(values(&answer.columns[0]), [20, 11, 7, 10, 7]);
    let direct = open(server, columns, "a, b", source, "COMPLEX_KEY_DIRECT()");
    assert_eq!(all_rows(&direct).unwrap().num_rows(), 3);
    // A value that is no hash has no fields, and does not fail lookups of others.
    let a: ArrayRef = Arc::new(Int32Array::from(vec![2, 3, 2]));
    let answer = dictionary.get(&[0], &[a, strings(&["z", "a", "a"])]).unwrap();
    assert_eq!(values(&answer.columns[0]), [7, 7, 20]);
    assert_eq!(dictionary.status().element_count, 7);
}

fn errors(server: &Server) {
    let sql = sql(server, "id UInt64, v String", "id", "", "DIRECT()").replace("'secret'", "'wrong-word'");
    let error =
        Dictionary::open(definition(&sql), &Environment::new("/")).unwrap().has(&u64s([1])).unwrap_err();
    assert_eq!(error.code(), 484, "{error}");
    assert!(!error.message().contains("wrong-word"), "{error}");
    let far = open(server, "id UInt64, v String", "id", "DB_INDEX 999", "DIRECT()");
    assert_eq!(far.has(&u64s([1])).unwrap_err().code(), 484);
    // One thread: the second request uses the connection of the first.
    let layout = "CACHE(SIZE_IN_CELLS 8 QUERY_WAIT_TIMEOUT_MILLISECONDS 1000 MAX_THREADS_FOR_UPDATES 1)";
    let dictionary = open(server, "id UInt64, v String", "id", "", layout);
    answers_at_last(|| dictionary.has(&u64s([1])));
    server.pause();
    let said = gives_up(&dictionary);
    server.go_on();
    assert!(said.contains("no whole answer within 2000 ms"), "{said}");
}

fn a_connection_that_the_server_has_ended_is_made_anew(server: &Server) {
    let layout = "CACHE(SIZE_IN_CELLS 8 MAX_THREADS_FOR_UPDATES 1)";
    let dictionary = open(server, "id UInt64, name String", "id", "", layout);
    for (id, name) in [(1, "one"), (2, "two")] {
        assert_eq!(texts(&dictionary.get(&[0], &u64s([id])).unwrap().columns[0]), [name]);
        server.execute(0, &["CLIENT KILL TYPE normal"]);
    }
    let status = dictionary.status();
    assert_eq!((status.source_requests, status.source_errors), (2, 0));
}

fn outage(server: &mut Server) {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let layout = "CACHE(SIZE_IN_CELLS 1000 ALLOW_READ_EXPIRED_KEYS 1 STRICT_MAX_LIFETIME_SECONDS 1000000)";
    let sql = sql(server, "id UInt64, name String", "id", "", layout);
    let dictionary = Dictionary::open(definition(&sql), &environment).unwrap();
    let names = |keys: &[u64]| dictionary.get(&[0], &u64s(keys.to_vec())).map(|a| texts(&a.columns[0]));
    assert_eq!(names(&[2]).unwrap(), ["two"]);
    server.stop();
    clock.fetch_add(2000, Ordering::SeqCst);
    assert_eq!(names(&[2]).unwrap(), ["two"]);
    assert_eq!(names(&[2, 1]).unwrap_err().code(), 510);
    server.start_again();
    server.execute(0, &["SET 1 uno"]);
    assert_eq!(comes_back(&clock, || names(&[2, 1])), ["", "uno"]);
}
