//! When an answer begins, and how an error in the middle of it is sent.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::served::{Answer, Served};

const DIVISION_BY_ZERO: &str = "Code: 153. DB::Exception: Division by zero. (ILLEGAL_DIVISION)\n";

/// The end of a complete body.
const WHOLE: &[u8] = b"\r\n0\r\n\r\n";

fn served() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    (folder, served)
}

/// An answer whose rows end with an error after `rows`; a hundred thousand are less than a megabyte.
fn failing(served: &Served, url: &str, rows: u32) -> Answer {
    // A compressed answer is not broken off.
    served.post_as(url, failing_sql(rows).as_bytes(), &[("accept-encoding", "gzip")])
}

fn failing_sql(rows: u32) -> String {
    format!("SELECT number, intDiv(1, toInt64(number) - {rows}) FROM numbers({})", 2 * rows)
}

/// The block that ClickHouse's clients look for after rows.
fn block(tag: &str) -> String {
    let bytes = DIVISION_BY_ZERO.len();
    format!("\r\n__exception__\r\n{tag}\r\n{DIVISION_BY_ZERO}{bytes} {tag}\r\n__exception__\r\n")
}

#[test]
fn an_error_is_the_whole_answer_until_that_has_begun() {
    let (_folder, served) = served();
    for (url, rows) in [
        ("/?max_threads=1", 70_000),
        ("/?max_threads=1&buffer_size=20000000", 400_000),
        ("/?max_threads=1&http_response_buffer_size=20000000", 400_000),
        ("/?max_threads=1&wait_end_of_query=1", 400_000),
        ("/?max_threads=1&http_wait_end_of_query=1", 400_000),
        ("/?max_threads=1&compress=1", 70_000),
    ] {
        let failed = failing(&served, url, rows);
        assert_eq!(failed.header("x-clickhouse-exception-code"), "153", "{url}");
        assert_eq!((failed.status, failed.text().as_str()), (500, DIVISION_BY_ZERO), "{url}");
    }
    for url in [
        "/?max_threads=1",
        "/?max_threads=1&buffer_size=1",
        "/?max_threads=1&wait_end_of_query=0&http_wait_end_of_query=1",
    ] {
        let begun = failing(&served, url, 1_000_000);
        let text = begun.text();
        assert_eq!((begun.status, &text[..8]), (200, "0\t0\n1\t0\n"), "{url}");
        let tag = begun.header("x-clickhouse-exception-tag");
        assert!(tag.len() == 16 && tag.bytes().all(|letter| letter.is_ascii_lowercase()), "{tag}");
        let end = format!("\t0\n{}", block(tag));
        assert!(text.ends_with(&end), "{url}: {}", &text[text.len() - 300..]);
    }
    for wrong in ["buffer_size=many", "buffer_size=1000000000000", "http_response_buffer_size=-1"] {
        let refused = served.post(&format!("/?{wrong}"), b"SELECT 1");
        assert_eq!((refused.status, refused.header("x-clickhouse-exception-code")), (400, "36"), "{wrong}");
    }
}

#[test]
fn an_error_in_the_middle_of_compressed_blocks_is_in_one() {
    let (_folder, served) = served();
    let begun = failing(&served, "/?max_threads=1&compress=1", 1_000_000);
    assert_eq!(begun.status, 200);
    let mut rest = begun.body.as_slice();
    let mut last = rest;
    while !rest.is_empty() {
        let (checksum, method) = (16, 1);
        let size = rest[checksum + method..][..4].try_into().unwrap();
        let size = checksum + u32::from_le_bytes(size) as usize;
        assert!(size <= rest.len(), "{} of {size} bytes", rest.len());
        (last, rest) = rest.split_at(size);
    }
    // Earlier content of the block is not repeated.
    assert!(last.windows(11).any(|part| part == b"Division by"), "the last block has the error");
}

#[test]
fn an_error_in_the_middle_breaks_a_plain_answer_off_behind_its_block() {
    let (_folder, served) = served();
    let sql = failing_sql(1_000_000);
    let heard = |accepted: &str| {
        let mut stream = std::net::TcpStream::connect(served.host()).unwrap();
        let request = format!(
            "POST /?max_threads=1 HTTP/1.1\r\nHost: x\r\n{accepted}Content-Length: {}\r\n\r\n{sql}",
            sql.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        // A connection that is not broken off stays open for the next request.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (mut heard, mut piece) = (Vec::new(), vec![0; 1 << 16]);
        // It may end with a reset.
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            heard.extend_from_slice(&piece[..read]);
            if heard.ends_with(WHOLE) {
                break;
            }
        }
        heard
    };
    for accepted in ["", "Accept-Encoding: gzip;q=0\r\n", "Accept-Encoding: identity, gzip;q=0.5\r\n"] {
        let heard = heard(accepted);
        let text = String::from_utf8(heard).unwrap();
        let (_, rest) = text.split_once("x-clickhouse-exception-tag: ").unwrap();
        let tag = rest.split_once("\r\n").unwrap().0;
        assert!(
            text.starts_with("HTTP/1.1 200") && text.contains(&block(tag)),
            "{}",
            &text[text.len() - 300..]
        );
        assert!(!text.ends_with("0\r\n\r\n"), "whoever reads it must not take it for whole: {accepted}");
    }
    assert!(heard("Accept-Encoding: gzip\r\n").ends_with(WHOLE), "the block is in what is packed");
}

#[test]
fn a_long_answer_is_sent_while_it_is_made() {
    let (_folder, served) = served();
    let sql = "SELECT number FROM numbers(1000000000000)";
    let mut stream = std::net::TcpStream::connect(served.host()).unwrap();
    let request = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{sql}", sql.len());
    stream.write_all(request.as_bytes()).unwrap();
    let mut begun = vec![0; 2 << 20];
    stream.read_exact(&mut begun).unwrap();
    assert!(begun.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

#[test]
fn what_is_held_back_is_of_the_memory_of_queries() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--query-memory", "96MiB"]);
    let long = b"SELECT number, repeat('x', 100) FROM numbers(10000000)";
    for url in ["/?wait_end_of_query=1", "/?buffer_size=200000000"] {
        let refused = served.post(url, long);
        assert_eq!(refused.header("x-clickhouse-exception-code"), "241", "{url}");
        assert!(refused.text().contains("Memory limit (total) exceeded"), "{url}: {}", refused.text());
    }
    // The allocator is not asked at each query.
    let end = Instant::now() + Duration::from_secs(60);
    while served.post("/", b"SELECT 1").text() != "1\n" {
        assert!(Instant::now() < end, "the memory is free again");
        std::thread::sleep(Duration::from_millis(10));
    }
}
