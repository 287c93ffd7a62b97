//! Bodies that are large, compressed or late.

use crate::dictionary::with_cached_users;
use crate::served::Served;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

/// An LZ4 frame with `blocks` blocks of 4 MiB, of one repeated byte.
fn packed(blocks: usize) -> Vec<u8> {
    // Independent blocks of at most 4 MiB, without sums; one literal and its repetition; five literals.
    let mut frame = b"\x04\x22\x4d\x18\x60\x70\x73".to_vec();
    let mut block = b"\x1f \x01\x00".to_vec();
    let repeated = 4 * MIB - 1 - 5 - 19;
    block.extend(std::iter::repeat_n(255, repeated / 255));
    block.push((repeated % 255) as u8);
    block.extend(b"\x50     ");
    for _ in 0..blocks {
        frame.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
        frame.extend(&block);
    }
    frame.extend([0; 4]);
    frame
}

#[test]
fn what_is_packed_stays_so_until_it_is_known_from_whom_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("granary.toml");
    std::fs::write(&config, "[users.ann]\npassword = 'secret'").unwrap();
    let served = Served::start(folder.path(), &["--config", config.to_str().unwrap()]);
    let lz4 = ("content-encoding", "lz4");
    // The unpacked body is a query that is too long.
    let unpacked = served.post_as("/?user=ann&password=secret", &packed(1), &[lz4]);
    assert_eq!(unpacked.header("x-clickhouse-exception-code"), "62", "{}", unpacked.text());
    let before = served.memory_peak();
    let bomb = packed(60);
    let (served, bomb) = (&served, bomb.as_slice());
    std::thread::scope(|scope| {
        for path in ["/", "/?user=ann", "/dictionary/d", "/dictionary/d/refresh"] {
            scope.spawn(move || {
                let answer = served.post_as(path, bomb, &[lz4]);
                assert_eq!(answer.header("x-clickhouse-exception-code"), "516", "{}", answer.text());
            });
        }
    });
    let grown = (served.memory_peak() - before) as usize;
    assert!(grown < 300 * MIB, "{} MiB", grown / MIB);
}

#[test]
fn bodies_are_of_the_memory_of_queries() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--query-memory", "96MiB"]);
    let before = served.memory_peak();
    let plain = vec![b' '; 110 * MIB];
    for (path, body, headers) in [("/", packed(60), &[("content-encoding", "lz4")][..]), ("/", plain, &[])] {
        let answer = served.post_as(path, &body, headers);
        assert_eq!(answer.header("x-clickhouse-exception-code"), "241", "{}", answer.text());
    }
    let grown = (served.memory_peak() - before) as usize;
    assert!(grown < 200 * MIB, "{} MiB", grown / MIB);
    assert_eq!(served.sql("SELECT 1"), "1\n");
}

/// A row that says nothing takes the width of all columns.
#[test]
fn rows_of_a_body_are_of_the_memory_of_queries() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--query-memory", "96MiB"]);
    let columns: Vec<String> = (0..100).map(|i| format!("a{i} Decimal(76, 0)")).collect();
    served.sql(&format!("CREATE TABLE wide ({}) ENGINE = Memory", columns.join(", ")));
    let before = served.memory_peak();
    let path = "/?query=INSERT+INTO+wide+FORMAT+JSONEachRow";
    let answer = served.post_as(path, "{}\n".repeat(500_000).as_bytes(), &[]);
    assert_eq!(answer.header("x-clickhouse-exception-code"), "241", "{}", answer.text());
    let grown = (served.memory_peak() - before) as usize;
    assert!(grown < 300 * MIB, "{} MiB", grown / MIB);
    assert_eq!(served.sql("SELECT count() FROM wide"), "0\n");
    assert_eq!(served.post(path, b"{}\n{}\n").text(), "");
    assert_eq!(served.sql("SELECT count() FROM wide"), "2\n");
}

#[test]
fn a_body_that_does_not_come_holds_no_thread() {
    let (_folder, served) = with_cached_users(&[]);
    let path = "/dictionary/users?format=TabSeparated";
    let before = served.threads();
    let stalled: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut connection = TcpStream::connect(served.host()).unwrap();
            write!(connection, "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n1\n")
                .unwrap();
            connection
        })
        .collect();
    // Later requests are answered meanwhile, and all earlier ones have begun.
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(500) {
        assert!(served.post(path, b"7\n").text().starts_with("7\tn7"));
    }
    let threads = served.threads().saturating_sub(before);
    assert!(threads < 50, "{threads} threads more");
    drop(stalled);
    // A long body is looked up while it arrives, as before.
    let keys: String = (0..300_000).map(|i| format!("{}\n", i % 200)).collect();
    let rows = served.post(path, keys.as_bytes()).text().lines().count();
    assert_eq!(rows, 150_000);
}

/// A text compressed by gzip, by way of a file.
fn gzipped(folder: &Path, text: &str) -> Vec<u8> {
    let file = folder.join("plain");
    std::fs::write(&file, text).unwrap();
    Command::new("gzip").arg("-c").arg(file).output().unwrap().stdout
}

/// An LZ4 frame with one uncompressed block, or with none.
fn stored(text: &str) -> Vec<u8> {
    if text.is_empty() {
        return b"\x04\x22\x4d\x18\x60\x70\x73\0\0\0\0".to_vec();
    }
    let len = u32::try_from(text.len()).unwrap() | 1 << 31;
    [&b"\x04\x22\x4d\x18\x60\x70\x73"[..], &len.to_le_bytes(), text.as_bytes(), &[0; 4]].concat()
}

#[test]
fn members_and_frames_in_a_row_are_one_body() {
    let (folder, served) = with_cached_users(&[]);
    served.sql("CREATE TABLE t (x UInt64) ENGINE = Memory");
    let gzip = |text: &str| gzipped(folder.path(), text);
    let empty = gzip("");
    for (encoding, packed) in [
        ("gzip", [gzip("1\n2"), gzip("\n3\n"), empty.clone(), gzip("4\n")].concat()),
        ("lz4", [stored("1\n2"), stored("\n3\n"), stored(""), stored("4\n")].concat()),
    ] {
        let headers = [("content-encoding", encoding)];
        served.sql("TRUNCATE TABLE t");
        let answer = served.post_as("/?query=INSERT+INTO+t+FORMAT+CSV", &packed, &headers);
        let summary: serde_json::Value = serde_json::from_str(answer.header("x-clickhouse-summary")).unwrap();
        assert_eq!(summary["written_rows"], "4", "{encoding}: {}", answer.text());
        assert_eq!(served.sql("SELECT sum(x) FROM t"), "10\n", "{encoding}");
        let rows = served.post_as("/dictionary/users?format=TabSeparated", &packed, &headers).text();
        assert_eq!(rows, "1\tn1\n2\tn2\n3\tn3\n4\tn4\n", "{encoding}");
        // A body that is truncated, or followed by something else, is refused.
        for wrong in [&packed[..packed.len() - 4], &[&packed[..], b"1\n"].concat()] {
            for path in ["/?query=INSERT+INTO+t+FORMAT+CSV", "/dictionary/users?format=TabSeparated"] {
                let answer = served.post_as(path, wrong, &headers);
                assert_eq!(
                    answer.header("x-clickhouse-exception-code"),
                    "271",
                    "{encoding}: {}",
                    answer.text()
                );
            }
        }
        assert_eq!(served.sql("SELECT sum(x) FROM t"), "10\n", "{encoding}");
    }
}

/// The tokens of a text take far more memory than the text.
#[test]
fn long_texts_are_cut_where_there_is_memory_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--query-memory", "1GiB"]);
    served.sql("CREATE TABLE t (x UInt8) ENGINE = Memory");
    let before = served.memory_peak();
    let rows = format!("INSERT INTO t VALUES (1){}", ",(1)".repeat(4 << 20).split_at(16 * MIB - 64).0);
    for (text, code) in [("1;".repeat(8 << 20), "62"), (rows, "241")] {
        let answer = served.post("/", text.as_bytes());
        assert_eq!(answer.header("x-clickhouse-exception-code"), code, "{}", answer.text());
    }
    // Rows of a format are not tokenized. They stay in the body that they came in, after the URL's part.
    let answer = served.post("/?query=INSERT+INTO+none+FORMAT+CSV", &vec![b'1'; 100 * MIB]);
    assert_eq!(answer.header("x-clickhouse-exception-code"), "60", "{}", answer.text());
    let grown = (served.memory_peak() - before) as usize;
    assert!(grown < 270 * MIB, "{} MiB", grown / MIB);
}
