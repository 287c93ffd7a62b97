//! Columns that UPDATE_FIELD may name: none of their values stops the search for changes, or is taken for another.

mod common;

use common::*;
use granary_dict::Dictionary;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CACHE: &str = "CACHE(SIZE_IN_CELLS 1000)";
const SSD: &str = "SSD_CACHE(PATH 'cache' FILE_SIZE 1048576 WRITE_BUFFER_SIZE 65536 MEMORY_CACHE_SIZE 0)";

/// A table `t` of id, v and at, the last of a type: rows 1, 2 and 3 with v 10, 20 and 30 and these times.
fn table(folder: &Path, data_type: &str, times: [&str; 3]) -> Connection {
    std::fs::create_dir_all(folder.join("user_files")).unwrap();
    let connection = Connection::open(folder.join("user_files/t.db")).unwrap();
    let sql = format!("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, at {data_type})");
    connection.execute_batch(&sql).unwrap();
    for (id, at) in (1..).zip(times) {
        connection.execute_batch(&format!("INSERT INTO t VALUES ({id}, {id} * 10, {at})")).unwrap();
    }
    connection
}

fn open(folder: &Path, lag: &str, layout: &str) -> (Dictionary, Arc<AtomicU64>) {
    let sql = format!(
        "CREATE DICTIONARY d (id UInt64, v UInt64) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 't.db' TABLE 't' UPDATE_FIELD 'at' UPDATE_PERIOD 1 {lag})) LAYOUT({layout}) LIFETIME(100)"
    );
    let (environment, clock) = manual_environment(folder);
    (Dictionary::open(definition(&sql), &environment).unwrap(), clock)
}

fn shown(dictionary: &Dictionary) -> Vec<u64> {
    values(&dictionary.get(&[0], &u64s([1, 2, 3])).unwrap().columns[0])
}

fn set(connection: &Connection, id: u64, v: u64, at: &str) {
    connection.execute_batch(&format!("UPDATE t SET v = {v}, at = {at} WHERE id = {id}")).unwrap();
}

fn wait_for(dictionary: &Dictionary, said: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !dictionary.status().last_exception.contains(said) {
        assert!(Instant::now() < deadline, "{}", dictionary.status().last_exception);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_change_of_the_far_future_hides_others_only_until_it_is_mended() {
    for layout in [CACHE, SSD] {
        let folder = tempfile::tempdir().unwrap();
        let connection = table(folder.path(), "TEXT", ["'2026-01-01 00:00:07'"; 3]);
        let (mut dictionary, _) = open(folder.path(), "", layout);
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [10, 20, 30]);
        set(&connection, 2, 21, "'9999-12-31 00:00:07'");
        dictionary.take_updates().unwrap();
        set(&connection, 3, 31, "'2026-01-01 00:10:07'");
        dictionary.take_updates().unwrap();
        set(&connection, 2, 22, "'2026-01-01 00:20:07'");
        if layout == SSD {
            drop(dictionary);
            dictionary = open(folder.path(), "", layout).0;
        }
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [10, 22, 31]);
        // From here on changes are known again, and nothing is forgotten any more: the one before is no older than the
        // lag.
        dictionary.take_updates().unwrap();
        set(&connection, 1, 11, "'2026-01-01 00:30:07'");
        assert_eq!(dictionary.take_updates().unwrap(), 2);
        assert_eq!(shown(&dictionary), [11, 22, 31]);
    }
}

#[test]
fn a_time_of_the_future_and_one_that_went_back_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let connection = table(folder.path(), "TEXT", ["'9999-12-31 00:00:07'"; 3]);
    let dictionary = Arc::new(open(folder.path(), "", CACHE).0);
    dictionary.watch();
    wait_for(&dictionary, "UPDATE_FIELD: The latest change is of the future, 9999-12-31 00:00:07");
    connection.execute_batch("UPDATE t SET at = '2001-01-01 00:00:07'").unwrap();
    wait_for(&dictionary, "UPDATE_FIELD: No row is as late as 9999-12-31");
}

/// Nothing can be known of changes, but what is cached lives as long as LIFETIME says.
#[test]
fn a_column_without_any_value_empties_the_cache_once() {
    for layout in [CACHE, SSD] {
        let folder = tempfile::tempdir().unwrap();
        let connection = table(folder.path(), "INTEGER", ["NULL"; 3]);
        let (dictionary, _) = open(folder.path(), "UPDATE_LAG 0", layout);
        assert_eq!(shown(&dictionary), [10, 20, 30]);
        for _ in 0..3 {
            assert_eq!(dictionary.take_updates(), Ok(0));
            assert_eq!(shown(&dictionary), [10, 20, 30]);
        }
        assert_eq!(
            dictionary.status().source_keys,
            6,
            "{layout}: they were forgotten at the first look alone"
        );
        // Two changes: the first one is before the first watermark.
        set(&connection, 1, 11, "1");
        set(&connection, 2, 21, "9");
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [11, 21, 30], "{layout}");
        set(&connection, 3, 31, "10");
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [11, 21, 31], "{layout}");
        // All values are gone again: a cache that has known changes is emptied once more.
        connection.execute_batch("UPDATE t SET v = v + 1, at = NULL").unwrap();
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [12, 22, 32], "{layout}");
    }
}

#[test]
fn a_column_without_any_value_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let _connection = table(folder.path(), "INTEGER", ["NULL"; 3]);
    let dictionary = Arc::new(open(folder.path(), "UPDATE_LAG 0", CACHE).0);
    dictionary.watch();
    wait_for(&dictionary, "UPDATE_FIELD: No row has a value in at, so no changes are found");
}

#[test]
fn a_counter_that_begins_anew_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let connection = table(folder.path(), "INTEGER", ["500"; 3]);
    let (dictionary, _) = open(folder.path(), "UPDATE_LAG 0", CACHE);
    dictionary.take_updates().unwrap();
    assert_eq!(shown(&dictionary), [10, 20, 30]);
    connection.execute_batch("UPDATE t SET v = v + 1, at = id").unwrap();
    dictionary.take_updates().unwrap();
    assert_eq!(shown(&dictionary), [11, 21, 31]);
    set(&connection, 1, 12, "4");
    dictionary.take_updates().unwrap();
    assert_eq!(shown(&dictionary), [12, 21, 31]);
}

/// Rows go on getting the time that others have already: those of a date for a whole day.
#[test]
fn changes_with_the_same_date_are_found() {
    for (data_type, at, lag) in [
        ("TEXT", "'2026-11-27'", ""),
        ("TEXT", "'2026-11-27 10:05:00'", ""),
        ("INTEGER", "20261127", "UPDATE_LAG 0"),
        ("INTEGER", "20784", "UPDATE_LAG 0"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let connection = table(folder.path(), data_type, [at; 3]);
        let (dictionary, _) = open(folder.path(), lag, CACHE);
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [10, 20, 30]);
        dictionary.take_updates().unwrap();
        std::thread::sleep(Duration::from_millis(1050));
        dictionary.take_updates().unwrap();
        set(&connection, 2, 21, at);
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [10, 21, 30], "{at}");
    }
}

/// A value without an earlier one by UPDATE_LAG, or with a wrong one, is an error; cached rows stay.
#[test]
fn a_column_that_the_lag_cannot_be_taken_from_is_refused() {
    let text = "TEXT";
    for (data_type, at, lag, said) in [
        (text, "'1700000000'", "", "UPDATE_LAG 2 cannot be taken from a number; say UPDATE_LAG 0"),
        (text, "'12345'", "", "UPDATE_LAG 2 cannot be taken from a number; say UPDATE_LAG 0"),
        ("INTEGER", "12345", "", "UPDATE_LAG 2 cannot be taken from a number; say UPDATE_LAG 0"),
        ("INTEGER", "20261127100030", "", "UPDATE_LAG 2 cannot be taken from a number; say UPDATE_LAG 0"),
        (text, "'10:00:30'", "", "can be taken only from times"),
        (text, "'yesterday'", "", "can be taken only from times"),
        (text, "'2026-11-27 10:00:30-05:00'", "", "keep them in UTC"),
        (text, "'2026-11-27 10:00:30+02:00'", "UPDATE_LAG 0", "keep them in UTC"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let connection = table(folder.path(), data_type, ["'2026-01-01 00:00:07'"; 3]);
        let (dictionary, _) = open(folder.path(), if lag.is_empty() { "UPDATE_LAG 2" } else { lag }, CACHE);
        connection.execute_batch(&format!("UPDATE t SET at = {at}")).unwrap();
        assert_eq!(shown(&dictionary), [10, 20, 30]);
        let error = dictionary.take_updates().unwrap_err();
        assert!(error.message().contains(said), "{at}: {error}");
        assert_eq!(dictionary.status().element_count, 3);
    }
}

/// A transaction may be committed after a later one: its change is found, whatever the column counts.
#[test]
fn a_change_that_is_committed_late_is_found_for_as_long_as_the_lag() {
    for (data_type, first, late, latest) in [
        ("INTEGER", "1700000000", "1700000009", "1700000010"),
        ("INTEGER", "1700000000000", "1700000009001", "1700000010000"),
        ("INTEGER", "1700000000000000", "1700000009000001", "1700000010000000"),
        ("REAL", "1700000000.5", "1700000009.25", "1700000010.125"),
        (
            "REAL",
            "julianday('2026-11-27 10:00:00')",
            "julianday('2026-11-27 10:00:09.2')",
            "julianday('2026-11-27 10:00:10')",
        ),
        ("TEXT", "'2026-11-27 10:00:00'", "'2026-11-27 10:00:09'", "'2026-11-27 10:00:10'"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let connection = table(folder.path(), data_type, [first; 3]);
        let (dictionary, _) = open(folder.path(), "UPDATE_LAG 1", CACHE);
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [10, 20, 30]);
        set(&connection, 2, 21, latest);
        assert!(dictionary.take_updates().unwrap() > 0, "{first}");
        set(&connection, 3, 31, late);
        assert_eq!(dictionary.take_updates().unwrap(), 2, "{first}");
        assert_eq!(shown(&dictionary), [10, 21, 31], "{first}");
    }
}

#[test]
fn numbers_and_times_in_utc_tell_changes() {
    for (data_type, first, second, lag) in [
        ("INTEGER", "1700000000", "1700000001", ""),
        ("REAL", "2460000.12345678912", "2460000.12345778912", "UPDATE_LAG 0"),
        ("BLOB", "1700000000.25", "1700000000.5", "UPDATE_LAG 0"),
        ("TEXT", "'1700000000'", "'1700000001'", "UPDATE_LAG 0"),
        ("TEXT", "'2026-11-27T10:00:30+00:00'", "'2026-11-27T10:00:31+00:00'", ""),
        ("TEXT", "'2026-11-27T10:00:30.125Z'", "'2026-11-27T10:00:31Z'", ""),
        ("TEXT", "'v1'", "'v2'", "UPDATE_LAG 0"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let connection = table(folder.path(), data_type, [first; 3]);
        let (dictionary, _) = open(folder.path(), lag, CACHE);
        dictionary.take_updates().unwrap();
        assert_eq!(shown(&dictionary), [10, 20, 30]);
        set(&connection, 2, 21, second);
        assert!(dictionary.take_updates().unwrap() > 0, "{first}");
        assert_eq!(shown(&dictionary), [10, 21, 30], "{first}");
        assert!(dictionary.take_updates().unwrap() > 0, "{first}: it is known from where on");
    }
}

#[test]
fn an_entry_that_had_expired_when_its_change_was_seen_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let connection = table(folder.path(), "TEXT", ["'2026-01-01 00:00:07'"; 3]);
    let (dictionary, clock) = open(folder.path(), "", CACHE);
    dictionary.take_updates().unwrap();
    assert_eq!(shown(&dictionary), [10, 20, 30]);
    clock.fetch_add(110, Ordering::SeqCst);
    set(&connection, 2, 21, "'2026-01-01 00:10:07'");
    dictionary.take_updates().unwrap();
    clock.fetch_sub(110, Ordering::SeqCst);
    assert_eq!(shown(&dictionary), [10, 21, 30]);
}
