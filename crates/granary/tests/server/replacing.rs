//! Dictionaries that are replaced, or should have been.

use crate::dictionary::{users, with_cached_users};
use crate::served::{Served, until};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
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
        // Whether the new file is the old one's or another.
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
    // A successful replacement begins without entries, here and elsewhere, and leaves no files behind.
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
    let (folder, served) = with_cached_users(&["--allow-executable"]);
    let cached = "SELECT dictGet('users', 'name', toUInt64(7))";
    assert_eq!(served.sql(cached), "n7\n");
    let may_answer = folder.path().join("may_answer");
    // It waits for the file, a minute at most.
    let hangs = format!(
        "DICTIONARY h (id UInt64, v String) PRIMARY KEY id \
         SOURCE(EXECUTABLE(COMMAND 'for i in $(seq 600); do test -e {} && break; sleep 0.1; done' \
         FORMAT 'TabSeparated')) LIFETIME(1000) LAYOUT(CACHE(SIZE_IN_CELLS 1000))",
        may_answer.display()
    );
    let served = &served;
    let requests = || served.sql("SELECT source_requests FROM system.dictionaries WHERE name = 'h'");
    // Whether the wait for the dictionary's end was longer than everything else.
    let is_last = |ends: &str| {
        served.sql(&format!("CREATE DICTIONARY IF NOT EXISTS {}", hangs.trim_start_matches("DICTIONARY ")));
        let is_last = std::thread::scope(|scope| {
            scope.spawn(|| served.post("/", b"SELECT dictGet('h', 'v', toUInt64(1))"));
            until("the source is asked", || requests() == "1\n");
            let ended = scope.spawn(|| served.sql(ends));
            until("the dictionary has lost its name", || requests() != "1\n");
            assert_eq!(served.sql("SELECT 1"), "1\n");
            assert_eq!(served.sql(cached), "n7\n");
            assert_eq!(served.get("/metrics").status, 200);
            served.sql("CREATE DATABASE IF NOT EXISTS other");
            let is_last = !ended.is_finished();
            std::fs::write(&may_answer, "").unwrap();
            assert_eq!(ended.join().unwrap(), "");
            is_last
        });
        std::fs::remove_file(&may_answer).unwrap();
        is_last
    };
    for ends in ["DROP DICTIONARY h".to_owned(), format!("CREATE OR REPLACE {hangs}")] {
        // A source is awaited for a few seconds at most, which may be too short on a slow machine.
        assert!((0..10).any(|_| is_last(&ends)), "{ends}");
    }
}

/// A dictionary whose cached rows need no call of its program.
fn with_program(folder: &Path) -> String {
    let version = folder.join("version");
    let program = r#"{print $1 "\t" v}"#.replace('\\', r"\\");
    format!(
        "DICTIONARY p (id UInt64, v String) PRIMARY KEY id \
         SOURCE(EXECUTABLE(COMMAND 'awk -v v=$(cat {}) \\'{program}\\'' FORMAT 'TabSeparated')) LIFETIME(0) \
         LAYOUT(SSD_CACHE(BLOCK_SIZE 4096 FILE_SIZE 1048576 WRITE_BUFFER_SIZE 65536 PATH 'p'))",
        version.display()
    )
}

#[test]
fn a_dictionary_that_cannot_be_opened_leaves_no_files_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("version"), "old").unwrap();
    let cached = "SELECT dictGet('p', 'v', toUInt64(7))";
    let create = with_program(folder.path());
    for ends in ["DROP DICTIONARY p".to_owned(), format!("CREATE OR REPLACE {create}")] {
        let served = Served::start(folder.path(), &["--allow-executable"]);
        served.sql(&format!("CREATE {create}"));
        let old = served.sql(cached);
        served.stop();
        // Programs are not allowed.
        let served = Served::start(folder.path(), &[]);
        assert_eq!(served.sql("SELECT status FROM system.dictionaries"), "FAILED\n");
        served.sql(&ends);
        if ends.starts_with("DROP") {
            assert_eq!(files(folder.path()), [""; 0]);
        }
        served.stop();
        let served = Served::start(folder.path(), &["--allow-executable"]);
        if ends.starts_with("DROP") {
            served.sql(&format!("CREATE {create}"));
        }
        std::fs::write(folder.path().join("version"), format!("newer_than_{}", old.trim())).unwrap();
        assert_eq!(served.sql(cached), format!("newer_than_{old}"), "{ends}");
        served.sql("DROP DICTIONARY p");
        assert_eq!(files(folder.path()), [""; 0]);
    }
}

#[test]
fn a_dictionary_that_is_detached_keeps_its_path() {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let mut served = Served::start(folder.path(), &[]);
    let cached = "SELECT dictGet('d', 'name', toUInt64(7))";
    let other = format!("CREATE {}", ON_SSD.replace("DICTIONARY d", "DICTIONARY e"));
    for permanently in ["", " PERMANENTLY"] {
        served.sql(&format!("CREATE {ON_SSD}"));
        assert_eq!(served.sql(cached), "n7\n");
        served.sql(&format!("DETACH DICTIONARY d{permanently}"));
        if !permanently.is_empty() {
            served.stop();
            served = Served::start(folder.path(), &[]);
        }
        let answer = served.post("/", other.as_bytes());
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains("is in use by dictionary default.d (detached)"), "{}", answer.text());
        rename_user(folder.path(), "renamed");
        served.sql("ATTACH DICTIONARY d");
        assert_eq!(served.sql(cached), "n7\n", "it is as warm as it was");
        served.sql("DROP DICTIONARY d");
        rename_user(folder.path(), "n7");
        served.sql(&other);
        served.sql("DROP DICTIONARY e");
    }
}

#[test]
fn a_dictionary_is_there_while_it_is_unloaded() {
    let (_folder, served) = crate::dictionary::with_users();
    let cached = "SELECT dictGet('users', 'name', toUInt64(7))";
    let unloaded = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let ask = || {
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut asked = 0;
            while asked < 300 || unloaded.load(SeqCst) < 4 && Instant::now() < deadline {
                assert_eq!(served.sql(cached), "n7\n");
                asked += 1;
            }
        };
        let asks = [scope.spawn(ask), scope.spawn(ask)];
        while asks.iter().any(|asks| !asks.is_finished()) {
            served.sql("SYSTEM UNLOAD DICTIONARY users");
            unloaded.fetch_add(1, SeqCst);
        }
    });
    assert!(unloaded.load(SeqCst) > 3, "{unloaded:?}");
}

/// An SSD_CACHE is opened by its first use; queries of other dictionaries do not wait for that.
#[test]
fn others_are_asked_while_a_dictionary_is_opened() {
    until("this machine is too busy", others_are_asked);
}

/// `false`: it took so long that the opening was given up.
fn others_are_asked() -> bool {
    let (folder, served) = crate::dictionary::with_users();
    let [users, other] =
        ["users", "other"].map(|name| format!("SELECT dictGet('{name}', 'name', toUInt64(7))"));
    served.sql(
        "CREATE DICTIONARY other (id UInt64, name String) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(1000) LAYOUT(CACHE(SIZE_IN_CELLS 1000))",
    );
    assert_eq!((served.sql(&users).as_str(), served.sql(&other).as_str()), ("n7\n", "n7\n"));
    served.sql("SYSTEM UNLOAD DICTIONARY users");
    let lock = FileLock::take(folder.path());
    let answers = std::thread::scope(|scope| {
        let asks = || served.post("/", users.as_bytes()).text();
        let asking = [
            scope.spawn(asks),
            scope.spawn(asks),
            scope.spawn(|| served.post("/dictionary/users?format=CSV", b"7\n").text()),
        ];
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(served.sql(&other), "n7\n");
        assert_eq!(served.post("/dictionary/other?format=CSV", b"7\n").text(), "7,\"n7\"\n");
        let is_any_answered = asking.iter().any(|asking| asking.is_finished());
        let in_time = lock.release();
        assert!(!in_time || !is_any_answered, "it is not open yet");
        let answers = asking.map(|asking| asking.join().unwrap());
        in_time.then_some(answers)
    });
    let Some(answers) = answers else { return false };
    assert_eq!(answers, ["n7\n", "n7\n", "7,\"n7\",\"Riga\"\n"]);
    let status = "SELECT status, source_requests FROM system.dictionaries WHERE name = 'users'";
    assert_eq!(served.sql(status), "LOADED\t0\n", "it is as warm as it was");
    true
}

/// The lock of the file of `users`: the server waits up to a second for it before it gives up opening.
struct FileLock {
    _file: std::fs::File,
    since: Instant,
}

impl FileLock {
    fn take(folder: &Path) -> Self {
        let file = std::fs::File::open(folder.join("user_files/users.state")).unwrap();
        file.lock().unwrap();
        Self { _file: file, since: Instant::now() }
    }

    /// Returns whether it was held too briefly for the server to give up.
    fn release(self) -> bool {
        self.since.elapsed() < Duration::from_millis(800)
    }
}

/// A change of a dictionary's name waits until it has been opened.
#[test]
fn a_dictionary_that_is_being_opened_changes_its_name_behind_that() {
    until("this machine is too busy", names_are_changed);
}

/// `false`: it took so long that the opening was given up.
fn names_are_changed() -> bool {
    let (folder, served) = crate::dictionary::with_users();
    let asked = "SELECT dictGet('users', 'name', toUInt64(7))";
    assert_eq!(served.sql(asked), "n7\n");
    for (change, back) in [
        ("RENAME DICTIONARY users TO renamed", "RENAME DICTIONARY renamed TO users"),
        ("DETACH DICTIONARY users", "ATTACH DICTIONARY users"),
        ("SYSTEM UNLOAD DICTIONARY users", "SELECT 1"),
        ("DROP DICTIONARY users", "SHOW DICTIONARIES"),
    ] {
        served.sql("SYSTEM UNLOAD DICTIONARY users");
        let lock = FileLock::take(folder.path());
        let in_time = std::thread::scope(|scope| {
            let asks = scope.spawn(|| served.post("/", asked.as_bytes()));
            std::thread::sleep(Duration::from_millis(100));
            let changes = scope.spawn(|| served.post("/", change.as_bytes()));
            std::thread::sleep(Duration::from_millis(100));
            let waits = !asks.is_finished() && !changes.is_finished();
            let in_time = lock.release();
            assert!(!in_time || waits, "{change}");
            let changed = changes.join().unwrap();
            assert!(!in_time || changed.status == 200, "{change}: {}", changed.text());
            // It looks the name up more than once, and may come too late for the last time.
            asks.join().unwrap();
            in_time
        });
        if !in_time {
            return false;
        }
        served.sql(back);
    }
    assert_eq!(files(folder.path()), ["users.db"]);
    true
}

#[test]
fn a_database_leaves_no_files_of_what_was_in_it() {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let served = Served::start(folder.path(), &[]);
    served.sql("CREATE DATABASE other");
    for name in ["a", "b", "c"] {
        let create = ON_SSD.replace("DICTIONARY d", &format!("DICTIONARY other.{name}"));
        served.sql(&format!("CREATE {}", create.replace("d.bin", &format!("{name}.bin"))));
    }
    served.sql("DETACH DICTIONARY other.b PERMANENTLY");
    served.sql("DETACH DICTIONARY other.c");
    let metadata = folder.path().join("metadata/other");
    std::fs::write(metadata.join("notes.txt"), "somebody else's").unwrap();
    assert_ne!(served.post("/", b"DROP DATABASE other").status, 200);
    assert_eq!(served.sql("SELECT name FROM system.dictionaries"), "a\n", "it is whole");
    std::fs::remove_file(metadata.join("notes.txt")).unwrap();
    served.sql("DROP DATABASE other");
    assert_eq!(files(folder.path()), ["users.db"]);
    served.stop();
    assert_eq!(std::fs::read_dir(folder.path().join("metadata")).unwrap().count(), 0);
    let served = Served::start(folder.path(), &[]);
    assert_eq!(served.sql("SHOW DATABASES"), "default\n");
}

/// Simulates a kill between the steps of a statement.
#[test]
fn what_a_kill_leaves_undone_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let metadata = folder.path().join("metadata");
    let statement = |name: &str| metadata.join("default").join(name);
    let served = Served::start(folder.path(), &[]);
    let at =
        |name: &str| ON_SSD.replace("DICTIONARY d", &format!("DICTIONARY {name}")).replace("d.bin", name);
    let (cached, all) = ("SELECT dictGet('a', 'name', toUInt64(7))", "SELECT name FROM system.dictionaries");
    for name in ["a", "b", "c"] {
        served.sql(&format!("CREATE {}", at(name)));
    }
    served.sql("CREATE DATABASE other");
    served.sql(&format!("CREATE {}", at("other.d")));
    assert_eq!(served.sql(cached), "n7\n");
    served.stop();
    rename_user(folder.path(), "renamed");
    // `a` was replaced in its place, and is not the less warm for it; `b` was made, `c` dropped, and so was all of
    // `other`.
    std::fs::copy(statement("a.sql"), statement("a.sql.making")).unwrap();
    std::fs::copy(statement("a.sql"), statement("a.sql.dropped")).unwrap();
    std::fs::rename(statement("b.sql"), statement("b.sql.making")).unwrap();
    std::fs::rename(statement("c.sql"), statement("c.sql.dropped")).unwrap();
    std::fs::write(statement("e.sql.tmp"), "CREATE DICT").unwrap();
    std::fs::rename(metadata.join("other"), metadata.join("other.dropped")).unwrap();
    let served = Served::start(folder.path(), &[]);
    assert_eq!((served.sql(all).as_str(), served.sql(cached).as_str()), ("a\n", "n7\n"));
    assert_eq!(served.sql("SHOW DATABASES"), "default\n");
    let owned = |name: &String| name == "users.db" || name.starts_with("a.");
    assert!(files(folder.path()).iter().all(owned), "{:?}", files(folder.path()));
    assert_eq!(std::fs::read_dir(metadata.join("default")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&metadata).unwrap().count(), 1);
    // Nor do their places have anything of them.
    served.sql(&format!("CREATE {}", at("b")));
    assert_eq!(served.sql(&cached.replace("'a'", "'b'")), "renamed\n");
}

#[test]
fn a_dictionary_that_waits_for_its_source_is_not_unloaded() {
    until("this machine is too busy", it_is_not_unloaded);
}

/// `false`: it took so long that the source was given up.
fn it_is_not_unloaded() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let answers = folder.path().join("answers");
    let served = Served::start(folder.path(), &["--allow-executable"]);
    served.sql(&format!(
        "CREATE DICTIONARY h (id UInt64, v String) PRIMARY KEY id \
         SOURCE(EXECUTABLE(COMMAND 'until test -e {}; do sleep 0.05; done; echo 1,one' FORMAT 'CSV')) LIFETIME(0) \
         LAYOUT(SSD_CACHE(BLOCK_SIZE 4096 FILE_SIZE 1048576 WRITE_BUFFER_SIZE 65536 PATH 'h' \
         QUERY_WAIT_TIMEOUT_MILLISECONDS 8000))",
        answers.display()
    ));
    // Behind it by name: those in use do not keep others from being unloaded.
    served.sql(
        "CREATE DICTIONARY i (id UInt64, v String) PRIMARY KEY id SOURCE(NULL()) LAYOUT(FLAT()) LIFETIME(0)",
    );
    served.sql("SELECT dictHas('i', toUInt64(1))");
    // No client waits for the answer any more, but the cache does.
    let (asked, unload) = ("SELECT dictGet('h', 'v', toUInt64(1))", "SYSTEM UNLOAD DICTIONARIES");
    let since = Instant::now();
    for (sql, words) in [(asked, "159"), (unload, "waits for its source")] {
        let answer = served.post("/", sql.as_bytes());
        // The source is given up after 16 seconds.
        if since.elapsed() > Duration::from_millis(15_500) {
            return false;
        }
        assert_eq!(answer.header("x-clickhouse-exception-code"), "159", "{sql}: {}", answer.text());
        assert!(answer.text().contains(words), "{}", answer.text());
    }
    let statuses = "SELECT name, status FROM system.dictionaries ORDER BY name";
    assert_eq!(served.sql(statuses), "h\tLOADED\ni\tNOT_LOADED\n");
    std::fs::write(&answers, "").unwrap();
    served.sql("SYSTEM UNLOAD DICTIONARY h");
    assert_eq!(served.sql(statuses), "h\tNOT_LOADED\ni\tNOT_LOADED\n");
    assert_eq!(served.sql(asked), "one\n");
    true
}
