//! SQLite on ext4 on a volume whose server is killed: committed rows are there, and the database is intact.

mod common;

use common::fuse::{Fuse, Running, wait_for};
use common::programs::{attempt, run};
use common::serving::serve;
use common::skip;
use granary_volume::{Config, Volume};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of times that the server is killed; GRANARY_SQLITE_KILLS sets another.
fn kills() -> u64 {
    std::env::var("GRANARY_SQLITE_KILLS").map_or(2, |n| n.parse().unwrap())
}

/// The server of a folder's volume.
fn start(folder: &Path) -> Running {
    let socket = folder.join("nbd.sock");
    let _ = std::fs::remove_file(&socket);
    let mut server = Command::new(serve());
    server.arg(format!("unix:{}", socket.display())).arg(format!("volume:{}", folder.display()));
    let server = server.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the server listens", || socket.exists());
    Running(server)
}

/// Inserts rows, each in its own transaction, until the disk is gone. Kills the server after a while, and returns the
/// last row that SQLite reported as committed.
fn insert_until_killed(folder: &Path, server: Running, first: u64, time: Duration) -> u64 {
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-batch").arg("mount/db").current_dir(folder);
    let mut sqlite =
        sqlite.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut input, output) = (sqlite.stdin.take().unwrap(), sqlite.stdout.take().unwrap());
    let feeding = std::thread::spawn(move || {
        for row in first.. {
            let insert = format!(
                "INSERT INTO t VALUES ({row}, hex(randomblob({})));\nUPDATE t SET v = v || 'x' WHERE id = {};\nSELECT {row};\n",
                100 + row % 2000,
                row / 2
            );
            if input.write_all(insert.as_bytes()).is_err() {
                return;
            }
        }
    });
    let _sqlite = Running(sqlite);
    let end = Instant::now() + time;
    let mut server = Some(server);
    let mut last = 0;
    for line in BufReader::new(output).lines() {
        let Some(row) = line.ok().and_then(|line| line.parse::<u64>().ok()) else { break };
        // After the kill its reports may come from its caches, for failed insertions print nothing in between.
        if server.is_some() {
            last = row;
        }
        if Instant::now() > end {
            // SIGKILL.
            drop(server.take());
            break;
        }
    }
    assert!(server.is_none(), "SQLite writes until the disk is gone");
    drop(_sqlite);
    feeding.join().unwrap();
    last
}

#[test]
fn a_database_is_whole_after_kills_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    if Command::new("sqlite3").arg("-version").output().is_err() {
        return skip::skipped("no sqlite3: a database on a volume");
    }
    // Small, so that segments are cleaned.
    Volume::create(folder, "disk", &Config::new(48 << 20)).unwrap();
    std::fs::create_dir(folder.join("mount")).unwrap();
    let uri = format!("nbd+unix:///?socket={}", folder.join("nbd.sock").display());
    let mut first = 1;
    for kill in 0..kills() {
        let server = start(folder);
        let Some(fuse) = Fuse::mount(folder, "nbd", &uri) else {
            return skip::skipped("no nbdfuse or no FUSE: a database on a volume");
        };
        if kill == 0 {
            run(folder, "mkfs.ext4", &["-q", "-F", "nbd"]);
        }
        if !attempt(folder, "mount", &["-o", "loop", "nbd", "mount"]).0 {
            return skip::skipped("no loop device: a database on a volume");
        }
        let mode = ["DELETE", "WAL"][kill as usize % 2];
        run(
            folder,
            "sqlite3",
            &[
                "mount/db",
                &format!(
                    "PRAGMA journal_mode = {mode}; CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v TEXT);"
                ),
            ],
        );
        run(folder, "sync", &["-f", "mount"]);
        let last = insert_until_killed(folder, server, first, Duration::from_secs(3));
        assert!(last >= first, "rows were committed");
        // The file system has lost its disk.
        let _ = attempt(folder, "umount", &["-l", "mount"]);
        drop(fuse);

        let server = start(folder);
        let fuse = Fuse::mount(folder, "nbd", &uri).expect("it could be had before");
        run(folder, "mount", &["-o", "loop", "nbd", "mount"]);
        let said =
            run(folder, "sqlite3", &["mount/db", "PRAGMA integrity_check; SELECT max(id), count(*) FROM t;"]);
        let (whole, rows) = said.trim().split_once('\n').unwrap();
        assert_eq!(whole, "ok");
        let (newest, count) = rows.split_once('|').unwrap();
        assert_eq!(newest, count, "no row is missing in between");
        let newest: u64 = newest.parse().unwrap();
        assert!(newest >= last, "row {last} was committed, {newest} is the newest");
        println!("killed after row {last}, found {newest}");
        first = newest + 1;
        run(folder, "umount", &["mount"]);
        run(folder, "e2fsck", &["-f", "-n", "nbd"]);
        drop(fuse);
        // Ends with its input, and closes the volume.
        let mut server = server;
        drop(server.0.stdin.take());
        assert!(server.0.wait().unwrap().success());
        let volume = Volume::open(folder, "disk", &mut |_, _| {}).unwrap();
        assert_eq!(volume.check_map(&mut |_| {}), 0);
        volume.close().unwrap();
    }
}
