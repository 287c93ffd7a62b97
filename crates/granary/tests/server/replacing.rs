//! Dictionaries that make way for others, or should have.

use crate::dictionary::{users, with_cached_users};
use crate::served::Served;
use std::path::Path;
use std::time::{Duration, Instant};

const ON_SSD: &str = "DICTIONARY d (id UInt64, name String) PRIMARY KEY id \
    SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(0) \
    LAYOUT(SSD_CACHE(BLOCK_SIZE 4096 FILE_SIZE 1048576 WRITE_BUFFER_SIZE 65536 PATH 'd.bin'))";

fn rename_user(folder: &Path, name: &str) {
    let database = rusqlite::Connection::open(folder.join("user_files/users.db")).unwrap();
    database.execute("UPDATE users SET name = ?1 WHERE id = 7", [name]).unwrap();
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("user_files")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_replacement_that_fails_leaves_the_old_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let served = Served::start(folder.path(), &[]);
    served.sql(&format!("CREATE {ON_SSD}"));
    let (cached, shown) = ("SELECT dictGet('d', 'name', toUInt64(7))", "SHOW CREATE DICTIONARY d");
    let statement = served.sql(shown);
    assert_eq!(served.sql(cached), "n7\n");
    rename_user(folder.path(), "renamed");
    for (from, to) in [
        ("'users.db'", "'../../etc/users.db'"),
        ("'d.bin'", "'/etc/d.bin'"),
        ("'d.bin'", "'users.db/d.bin'"),
        ("1048576", "1048577"),
        // Whether it is the old one's file or another.
        ("1048576", "17592186044416"),
        (
            "1048576 WRITE_BUFFER_SIZE 65536 PATH 'd.bin'",
            "17592186044416 WRITE_BUFFER_SIZE 65536 PATH 'e.bin'",
        ),
    ] {
        assert!(ON_SSD.contains(from), "{from}");
        let answer = served.post("/", format!("CREATE OR REPLACE {}", ON_SSD.replace(from, to)).as_bytes());
        assert_ne!(answer.status, 200, "{to}");
        // It is as warm as it was.
        assert_eq!((served.sql(cached).as_str(), served.sql(shown)), ("n7\n", statement.clone()), "{to}");
    }
    assert!(!files(folder.path()).iter().any(|name| name.starts_with("e.bin")), "{:?}", files(folder.path()));
    served.stop();
    let served = Served::start(folder.path(), &[]);
    assert_eq!(served.sql(shown), statement);
    let name = served.sql(cached);
    assert!(["n7\n", "renamed\n"].contains(&name.as_str()), "{name}");
    // One that does not fail begins without entries, here and elsewhere, and leaves no files behind.
    assert_eq!(served.sql(&format!("CREATE OR REPLACE {ON_SSD}")), "");
    assert_eq!(served.sql(cached), "renamed\n");
    rename_user(folder.path(), "again");
    assert_eq!(served.sql(&format!("CREATE OR REPLACE {}", ON_SSD.replace("d.bin", "e.bin"))), "");
    assert_eq!(served.sql(cached), "again\n");
    assert!(!files(folder.path()).iter().any(|name| name.starts_with("d.bin")), "{:?}", files(folder.path()));
    served.sql("DROP DICTIONARY d");
    assert_eq!(files(folder.path()), ["users.db"]);
}

#[test]
fn a_source_that_hangs_keeps_its_own_dictionary_from_going_and_nothing_else_waiting() {
    let (_folder, served) = with_cached_users(&["--allow-executable"]);
    let cached = "SELECT dictGet('users', 'name', toUInt64(7))";
    assert_eq!(served.sql(cached), "n7\n");
    let hangs = "DICTIONARY h (id UInt64, v String) PRIMARY KEY id \
        SOURCE(EXECUTABLE(COMMAND 'sleep 3' FORMAT 'TabSeparated')) LIFETIME(1000) \
        LAYOUT(CACHE(SIZE_IN_CELLS 1000))";
    let served = &served;
    for ends in ["DROP DICTIONARY h".to_owned(), format!("CREATE OR REPLACE {hangs}")] {
        served.sql(&format!("CREATE DICTIONARY IF NOT EXISTS {}", hangs.trim_start_matches("DICTIONARY ")));
        std::thread::scope(|scope| {
            scope.spawn(|| served.post("/", b"SELECT dictGet('h', 'v', toUInt64(1))"));
            std::thread::sleep(Duration::from_millis(300));
            let ended = scope.spawn(|| served.sql(&ends));
            std::thread::sleep(Duration::from_millis(300));
            let started = Instant::now();
            assert_eq!(served.sql("SELECT 1"), "1\n");
            assert_eq!(served.sql(cached), "n7\n");
            assert_eq!(served.get("/metrics").status, 200);
            served.sql("CREATE DATABASE IF NOT EXISTS other");
            assert!(started.elapsed() < Duration::from_millis(1500), "{ends}: {:?}", started.elapsed());
            assert_eq!(ended.join().unwrap(), "");
        });
    }
}
