//! What one session, one statement or a stalled disk must not take from the others.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use granary_sql::{MemoryOptions, Options, Session};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::runtime::Runtime;

fn run(session: &Session, statement: &str) -> Result<(), granary_sql::Error> {
    Runtime::new().unwrap().block_on(async {
        let mut output = session.execute_one(statement.as_bytes().to_vec()).await?;
        while let Some(batch) = output.next().await {
            batch?;
        }
        Ok(())
    })
}

fn code(session: &Session, statement: &str) -> i32 {
    run(session, statement).map_or_else(|error| error.code, |()| 0)
}

#[test]
fn a_session_keeps_so_much() {
    let session = Session::open(Options::default()).unwrap();
    let long = "x".repeat(250_000);
    for i in 0..4 {
        run(&session, &format!("SET param_a{i} = '{long}'")).unwrap();
    }
    assert_eq!(code(&session, &format!("SET param_a4 = '{long}'")), 290);
    assert_eq!(code(&session, &format!("SET log_comment = '{long}'")), 290);
    assert_eq!(code(&session, "SELECT {a4:String}"), 456, "what was refused is not there");
    // In place of another value.
    run(&session, &format!("SET param_a3 = '{long}'")).unwrap();
    (0..4).for_each(|i| run(&session, &format!("SET param_a{i} = ''")).unwrap());
    let set = |numbers: std::ops::Range<usize>| {
        let all: Vec<String> = numbers.map(|i| format!("param_b{i} = '{i}'")).collect();
        code(&session, &format!("SET {}", all.join(", ")))
    };
    assert_eq!((set(0..500), set(500..996), set(996..997)), (0, 0, 290));
    assert_eq!(code(&session, "SELECT {b995:UInt64}"), 0);
}

#[test]
fn rows_of_an_insert_are_checked_for_memory_while_they_are_read() {
    let memory =
        MemoryOptions { ram: 0, queries: Some(1_500_000), allocated: || 0, other_caches: Arc::new(|| 0) };
    // This allocator says nothing: what counts are the bytes that come between two checks.
    let session = Session::open(Options { memory: Some(memory), ..Options::default() }).unwrap();
    let columns: Vec<String> = (0..200).map(|i| format!("a{i} Decimal(76, 0)")).collect();
    run(&session, &format!("CREATE TABLE t ({}) ENGINE = Memory", columns.join(", "))).unwrap();
    let insert =
        |rows: usize| code(&session, &format!("INSERT INTO t FORMAT JSONEachRow {}", "{}\n".repeat(rows)));
    assert_eq!(insert(100), 0);
    assert_eq!(insert(10_000), 241);
}

/// A statement of a dictionary that is detached lies on a disk that does not answer: a pipe without a writer.
fn stalled(folder: &Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(format!("metadata/default/{name}.sql.detached"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[test]
fn a_stalled_disk_holds_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { path: Some(folder.path().to_owned()), ..Options::default() };
    let session = Arc::new(Session::open(options).unwrap());
    let ssd = |name: &str| {
        format!(
            "CREATE DICTIONARY {name} (id UInt64, v UInt64) PRIMARY KEY id SOURCE(CLICKHOUSE(TABLE 't')) LIFETIME(1000) \
             LAYOUT(SSD_CACHE(PATH '{name}' FILE_SIZE 1048576 WRITE_BUFFER_SIZE 65536 BLOCK_SIZE 4096))"
        )
    };
    run(&session, "CREATE TABLE t (id UInt64, v UInt64) ENGINE = Memory").unwrap();
    run(&session, &ssd("one")).unwrap();
    for changes in [ssd("other"), "DROP DICTIONARY one".to_owned()] {
        let pipe = stalled(folder.path(), "slow");
        let changing = {
            let session = Arc::clone(&session);
            std::thread::spawn(move || run(&session, &changes))
        };
        let writer = once_read(&pipe);
        let (tell, told) = mpsc::channel();
        let asking = Arc::clone(&session);
        std::thread::spawn(move || {
            let asked = run(&asking, "SELECT name, status FROM system.dictionaries");
            let _ = tell.send(asked.and_then(|()| run(&asking, "SELECT 1")));
        });
        told.recv_timeout(Duration::from_secs(60)).expect("queries wait for the disk").unwrap();
        assert!(!changing.is_finished(), "it reads the statements of detached dictionaries");
        // It is not read again.
        std::fs::remove_file(&pipe).unwrap();
        drop(writer);
        changing.join().unwrap().unwrap();
    }
}

/// The end of a pipe that is written, once another thread waits at the other end.
fn once_read(pipe: &Path) -> File {
    let deadline = Instant::now() + Duration::from_secs(60);
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    loop {
        match File::options().write(true).custom_flags(flags).open(pipe) {
            Ok(writer) => return writer,
            // Nobody reads.
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A chain of keys: at a level far below a key there is one key, and a thousand before it.
#[test]
fn a_level_far_below_is_looked_for_so_far() {
    let session = Session::open(Options::default()).unwrap();
    run(&session, "CREATE TABLE chain (id UInt64, above UInt64) ENGINE = Memory").unwrap();
    run(&session, "INSERT INTO chain SELECT number + 1, number FROM numbers(70000)").unwrap();
    run(
        &session,
        "CREATE DICTIONARY d (id UInt64, above UInt64 HIERARCHICAL) PRIMARY KEY id SOURCE(CLICKHOUSE(TABLE 'chain')) \
         LAYOUT(HASHED()) LIFETIME(0)",
    )
    .unwrap();
    let ask = |level: u64| {
        let query = format!(
            "SELECT sum(length(dictGetDescendants('d', number + 1, {level}))) FROM numbers(65536) SETTINGS max_threads = 1"
        );
        code(&session, &query)
    };
    assert_eq!((ask(3), ask(900)), (0, 290));
    assert_eq!(code(&session, "SELECT dictGetDescendants('d', number + 1, 900) FROM numbers(1000)"), 0);
    // The way up is as long.
    assert_eq!(
        code(&session, "SELECT sum(length(dictGetHierarchy('d', number + 2000))) FROM numbers(1000)"),
        0
    );
}
