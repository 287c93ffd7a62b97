//! Sessions that outlive a request.

use crate::served::{Answer, Served};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

fn served() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    (folder, served)
}

fn code(answer: &Answer) -> String {
    answer.header("x-clickhouse-exception-code").to_owned()
}

/// More sessions than are kept, each begun by a request on one connection.
const MANY: usize = 10_010;

#[test]
fn a_session_has_one_query_at_a_time() {
    let (_folder, served) = served();
    let served = &served;
    let is_refused = &AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || {
            loop {
                let answer = served.post("/?session_id=a", b"SELECT sleep(1)");
                let is_over = is_refused.load(SeqCst) || Instant::now() > deadline;
                if code(&answer) != "373" && is_over {
                    break answer;
                }
            }
        });
        let refused = loop {
            let answer = served.post("/?session_id=a", b"SELECT 1");
            if answer.status != 200 || Instant::now() > deadline {
                break answer;
            }
        };
        is_refused.store(true, SeqCst);
        assert_eq!(code(&refused), "373");
        assert!(refused.text().contains("Session a is locked by a concurrent client"), "{}", refused.text());
        assert_eq!(served.post("/?session_id=b", b"SELECT 1").text(), "1\n");
        assert_eq!(slow.join().unwrap().text(), "0\n");
    });
    // A client that has read an answer to its end may continue.
    for _ in 0..100 {
        for sql in ["SELECT number FROM numbers(30000)", "SELECT nothing", "SET max_threads = 1"] {
            assert_ne!(code(&served.post("/?session_id=a", sql.as_bytes())), "373", "{sql}");
        }
    }
    assert_eq!(served.post("/?session_id=a&session_check=1&close_session=1", b"SELECT 1").text(), "1\n");
    assert_eq!(code(&served.post("/?session_id=a&session_check=1", b"SELECT 1")), "372");
}

#[test]
fn what_the_url_says_is_of_its_own_query() {
    let (_folder, served) = served();
    served.sql("CREATE DATABASE other");
    let ask = |parameters: &str, sql: &str| {
        let answer = served.post(&format!("/?session_id=a{parameters}"), sql.as_bytes());
        if answer.status == 200 { answer.text() } else { code(&answer) }
    };
    assert_eq!(ask("&database=other", "SELECT currentDatabase()"), "other\n");
    assert_eq!(ask("", "SELECT currentDatabase()"), "default\n");
    assert_eq!(ask("&param_x=7", "SELECT {x:UInt8}"), "7\n");
    assert_eq!(ask("", "SELECT {x:UInt8}"), "456");
    assert_eq!(ask("&max_result_rows=2", "SELECT number FROM numbers(3)"), "396");
    assert_eq!(ask("", "SELECT number FROM numbers(3)"), "0\n1\n2\n");
    // Settings of statements last; those of the URL override them.
    assert_eq!(ask("&max_result_rows=5", "SET max_result_rows = 2, param_x = 8"), "");
    assert_eq!(ask("&database=default", "USE other"), "");
    assert_eq!(ask("", "SELECT currentDatabase(), {x:UInt8}"), "other\t8\n");
    assert_eq!(ask("", "SELECT number FROM numbers(3)"), "396");
    assert_eq!(ask("&max_result_rows=3", "SELECT number FROM numbers(3)"), "0\n1\n2\n");
    assert_eq!(ask("&database=default&param_x=9", "SELECT currentDatabase(), {x:UInt8}"), "default\t9\n");
}

#[test]
fn get_changes_nothing_and_post_may_whoever_began_the_session() {
    let (_folder, served) = served();
    let get = |session: &str, sql: &str| {
        code(&served.get(&format!("/?session_id={session}&query={}", sql.replace(' ', "+"))))
    };
    let post =
        |session: &str, sql: &str| code(&served.post(&format!("/?session_id={session}"), sql.as_bytes()));
    assert_eq!((get("a", "SELECT 1"), post("a", "CREATE DATABASE one")), (String::new(), String::new()));
    assert_eq!((post("b", "SELECT 1"), get("b", "CREATE DATABASE two")), (String::new(), "164".to_owned()));
    assert_eq!(get("b", "DROP DATABASE one"), "164");
    assert_eq!(served.sql("SHOW DATABASES LIKE '%o%e%'"), "one\n");
}

#[test]
fn further_sessions_take_the_place_of_idle_ones() {
    let (_folder, served) = served();
    assert_eq!(served.post("/?session_timeout=3600&session_id=mine", b"SET param_x = 7").status, 200);
    let connection = TcpStream::connect(served.host()).unwrap();
    let mut sending = connection.try_clone().unwrap();
    let sent = std::thread::spawn(move || {
        for i in 0..MANY {
            let close = if i + 1 == MANY { "Connection: close\r\n" } else { "" };
            let path = format!("/?query=SELECT+1&session_timeout=3600&session_id=s{i}");
            write!(sending, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{close}\r\n").unwrap();
        }
    });
    let mut answers = Vec::new();
    { &connection }.read_to_end(&mut answers).unwrap();
    sent.join().unwrap();
    let answers = String::from_utf8(answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), MANY);
    // Sessions without any settings are dropped first.
    assert_eq!(served.post("/?session_id=mine&session_check=1", b"SELECT {x:UInt8}").text(), "7\n");
    assert_eq!(code(&served.post("/?session_id=s0&session_check=1", b"SELECT 1")), "372");
}
