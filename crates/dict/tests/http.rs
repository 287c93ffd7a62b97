//! Dictionaries over a web server.

mod common;
#[path = "common/web.rs"]
mod server;

use arrow::array::{ArrayRef, Int32Array};
use common::*;
use granary_dict::{Dictionary, Environment};
use server::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn sql(server: &Server, path: &str, format: &str, more: &str, layout: &str) -> String {
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(1000)" };
    format!(
        "CREATE DICTIONARY h (id UInt64, v UInt64) PRIMARY KEY id \
         SOURCE(HTTP(URL 'http://127.0.0.1:{}{path}' FORMAT {format} {more})) LAYOUT({layout}) {lifetime}",
        server.port
    )
}

fn open(server: &Server, path: &str, format: &str, more: &str, layout: &str) -> Dictionary {
    let sql = sql(server, path, format, more, layout);
    Dictionary::open(definition(&sql), &Environment::new(std::env::temp_dir())).unwrap()
}

/// Requests are those that ClickHouse 26.9 sends.
#[test]
fn asks_as_clickhouse_does() {
    let server = Server::start();
    let binary: Vec<u8> = [7u64, 10, 1].into_iter().flat_map(u64::to_le_bytes).collect();
    for (format, body) in [
        ("TabSeparated", b"7\n10\n1\n".to_vec()),
        ("CSV", b"7\n10\n1\n".to_vec()),
        ("JSONEachRow", b"{\"id\":7}\n{\"id\":10}\n{\"id\":1}\n".to_vec()),
        ("RowBinary", binary),
    ] {
        let path = format!("/{format}?table=x&y=a%20b");
        let dictionary = open(&server, &path, format, "", "CACHE(SIZE_IN_CELLS 1000)");
        let answer = dictionary.get(&[0], &u64s([7, 10, 1, 7])).unwrap();
        assert_eq!(values(&answer.columns[0]), [70, 0, 10, 70], "{format}");
        assert_eq!(found(&answer.found), [true, false, true, true], "{format}");
        let [seen] = &server.seen()[..] else { panic!("one request") };
        assert_eq!((seen.method.as_str(), seen.uri.as_str()), ("POST", path.as_str()));
        assert_eq!(seen.body, body, "{format}");
        assert_eq!(seen.headers["transfer-encoding"], "chunked");
        assert!(seen.headers["user-agent"].to_str().unwrap().starts_with("Granary/"));
        for absent in ["content-type", "content-length", "expect", "authorization", "accept"] {
            assert!(!seen.headers.contains_key(absent), "{absent}");
        }
        dictionary.get(&[0], &u64s([7, 10])).unwrap();
        assert!(server.seen().is_empty(), "both are cached, the absent one too");
    }
}

#[test]
fn sends_credentials_headers_and_the_endpoint() {
    let server = Server::start();
    let more = "ENDPOINT 'TabSeparated' CREDENTIALS(USER 'u' PASSWORD 'p:w') \
                HEADERS(HEADER(NAME 'X-Key' VALUE 'k') HEADER(NAME 'x-other' VALUE ''))";
    let dictionary = open(&server, "", "TSV", more, "DIRECT()");
    assert_eq!(values(&dictionary.get(&[0], &u64s([5])).unwrap().columns[0]), [50]);
    let [seen] = &server.seen()[..] else { panic!("one request") };
    assert_eq!(seen.uri, "/TabSeparated");
    assert_eq!(seen.headers["authorization"], "Basic dTpwOnc=");
    assert_eq!(
        (&seen.headers["x-key"], &seen.headers["x-other"]),
        (&"k".parse().unwrap(), &"".parse().unwrap())
    );
    let bad = open(&server, "", "TSV", "HEADERS(HEADER(NAME 'a b' VALUE 'secret'))", "DIRECT()");
    let error = bad.get(&[0], &u64s([5])).unwrap_err();
    assert!(error.message().contains("HEADERS: 'a b'") && !error.message().contains("secret"), "{error}");
}

#[test]
fn composite_keys_and_all_rows() {
    let server = Server::start();
    let sql = format!(
        "CREATE DICTIONARY h (a Int32, b Nullable(String), v UInt64) PRIMARY KEY a, b \
         SOURCE(HTTP(URL 'http://127.0.0.1:{}/pairs' FORMAT TSV)) LAYOUT(COMPLEX_KEY_DIRECT())",
        server.port
    );
    let dictionary = Dictionary::open(definition(&sql), &Environment::new("/")).unwrap();
    let b = arrow::array::StringArray::from(vec![Some("x\ty"), None]);
    let keys: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![-1, 2])), Arc::new(b)];
    assert_eq!(values(&dictionary.get(&[0], &keys).unwrap().columns[0]), [7, 4]);
    assert_eq!(server.seen()[0].body, b"-1\tx\\ty\n2\t\\N\n");
    let all = open(&server, "/all", "TSV", "", "DIRECT()");
    assert_eq!(all_rows(&all).unwrap().num_rows(), 3);
    assert_eq!(server.seen()[0].method, "GET");
}

#[test]
fn many_keys_go_in_few_requests() {
    let server = Server::start();
    for format in ["RowBinary", "TabSeparated"] {
        let dictionary = open(&server, &format!("/{format}"), format, "", "DIRECT()");
        let answer = dictionary.get(&[0], &u64s(0..150_000)).unwrap();
        assert_eq!(answer.found.true_count(), 135_000);
        assert_eq!(values(&answer.columns[0])[149_999], 1_499_990);
        assert_eq!(server.seen().len(), 3, "{format}");
    }
    let packed = open(&server, "/gzip", "TSV", "", "DIRECT()");
    assert_eq!(packed.get(&[0], &u64s(0..1000)).unwrap().found.true_count(), 900);
}

#[test]
fn what_is_not_200_is_an_error() {
    let server = Server::start();
    for (path, code, words) in [
        ("/nosuch", 86, "answered 404 Not Found: no such table"),
        ("/redirect", 483, "answered 302 Found"),
        ("/all", 6, "TabSeparated row 1: Column id of the source: Cannot parse"),
    ] {
        let format = if path == "/all" { "CSV" } else { "TSV" };
        let error = open(&server, path, format, "", "DIRECT()").get(&[0], &u64s([1])).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(words) || path == "/all", "{error}");
    }
    for status in [204, 500, 503] {
        server.fail_with(status);
        let error = open(&server, "/TabSeparated", "TSV", "", "DIRECT()").has(&u64s([1])).unwrap_err();
        assert_eq!(error.code(), 86, "{error}");
        assert!(error.message().contains(&format!("answered {status}")), "{error}");
    }
    // This port is closed.
    let sql = sql(&server, "/", "TSV", "", "DIRECT()").replace(&format!(":{}/", server.port), ":1/");
    let nobody = Dictionary::open(definition(&sql), &Environment::new("/")).unwrap();
    assert_eq!(nobody.has(&u64s([1])).unwrap_err().code(), 210);
}

/// Rows of an answer that breaks off are not kept, and none of its keys as absent.
#[test]
fn a_torn_answer_leaves_nothing() {
    let server = Server::start();
    let dictionary = open(&server, "/torn", "TSV", "", "CACHE(SIZE_IN_CELLS 1000)");
    let error = dictionary.get(&[0], &u64s([1, 2, 10])).unwrap_err();
    assert!(error.message().contains("NETWORK_ERROR"), "{error}");
    assert_eq!(dictionary.status().element_count, 0);
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let server = Server::start();
    let layout = "CACHE(SIZE_IN_CELLS 8 QUERY_WAIT_TIMEOUT_MILLISECONDS 1000)";
    let dictionary = open(&server, "/silent", "TSV", "", layout);
    let said = gives_up(&dictionary);
    assert!(said.contains("no whole answer within 2000 ms"), "{said}");
    assert_eq!(dictionary.status().element_count, 0);
}

#[test]
fn comes_back_after_an_outage() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let layout = "CACHE(SIZE_IN_CELLS 100 ALLOW_READ_EXPIRED_KEYS 1 STRICT_MAX_LIFETIME_SECONDS 1000000)";
    let sql = sql(&server, "/TabSeparated", "TSV", "", layout);
    let dictionary = Dictionary::open(definition(&sql), &environment).unwrap();
    assert_eq!(values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), [10]);
    server.fail_with(503);
    clock.fetch_add(2000, Ordering::SeqCst);
    assert_eq!(values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), [10]);
    assert!(matches!(dictionary.get(&[0], &u64s([1, 2])).unwrap_err().code(), 86 | 510));
    server.fail_with(0);
    let answer = comes_back(&clock, || dictionary.get(&[0], &u64s([1, 2])));
    assert_eq!(values(&answer.columns[0]), [10, 20]);
}

#[test]
fn rows_that_nobody_asked_for_are_ignored() {
    let server = Server::start();
    let dictionary = open(&server, "/uninvited", "TSV", "", "CACHE(SIZE_IN_CELLS 100)");
    let answer = dictionary.get(&[0], &u64s([5])).unwrap();
    assert_eq!((values(&answer.columns[0]), dictionary.status().source_rows_uninvited), (vec![50], 2));
    assert_eq!(dictionary.status().element_count, 1);
}

/// A server may close a kept connection just when it is used again.
#[test]
fn a_kept_connection_that_breaks_is_made_anew() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let request = |connection: &mut TcpStream| {
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        while !read.ends_with(b"0\r\n\r\n") {
            let count = connection.read(&mut buffer).unwrap();
            read.extend_from_slice(&buffer[..count]);
        }
    };
    let answer = |row: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{row}").into_bytes();
    let server = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        request(&mut first);
        first.write_all(&answer("1\t10\n")).unwrap();
        request(&mut first);
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        request(&mut second);
        second.write_all(&answer("2\t20\n")).unwrap();
    });
    let sql = format!(
        "CREATE DICTIONARY h (id UInt64, v UInt64) PRIMARY KEY id \
         SOURCE(HTTP(URL 'http://127.0.0.1:{port}/' FORMAT TSV)) LIFETIME(9) \
         LAYOUT(CACHE(SIZE_IN_CELLS 8 MAX_THREADS_FOR_UPDATES 1))"
    );
    let dictionary = Dictionary::open(definition(&sql), &Environment::new("/")).unwrap();
    for key in [1, 2] {
        assert_eq!(values(&dictionary.get(&[0], &u64s([key])).unwrap().columns[0]), [key * 10]);
    }
    server.join().unwrap();
}
