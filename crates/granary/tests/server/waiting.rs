//! A source that accepts requests and answers none.

use crate::dictionary::with_cached_users;
use crate::served::until;
use granary_server::limits::{TURNS_MAX, TURNS_MIN, TURNS_PER_CORE};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// More than may wait at once for one dictionary.
const REQUESTS: usize = 160;
const MAY_WAIT: usize = 100;
/// MAX_THREADS_FOR_UPDATES, as it is where nobody says it.
const SOURCE_THREADS: usize = 4;
/// Longer than the test takes.
const WAIT: Duration = Duration::from_secs(600);

#[test]
fn who_waits_for_a_source_keeps_nobody_else_from_being_answered() {
    let (_folder, served) = with_cached_users(&[]);
    // The kernel accepts connections and requests, and no answer comes.
    let silence = TcpListener::bind("127.0.0.1:0").unwrap();
    served.sql(&format!(
        "CREATE DICTIONARY silent (id UInt64, name String) PRIMARY KEY id \
         SOURCE(HTTP(URL 'http://127.0.0.1:{}/' FORMAT 'RowBinary')) LIFETIME(1000) \
         LAYOUT(CACHE(SIZE_IN_CELLS 1000 QUERY_WAIT_TIMEOUT_MILLISECONDS {}))",
        silence.local_addr().unwrap().port(),
        WAIT.as_millis()
    ));
    let cached = "SELECT dictGet('users', 'name', toUInt64(7))";
    assert_eq!(served.sql(cached), "n7\n");

    let served = &served;
    let refused = std::thread::scope(|scope| {
        // Dropped at the end, also if a check fails.
        let silence = silence;
        let asking: Vec<_> = (0..REQUESTS as u64)
            .map(|key| {
                scope.spawn(move || match key % 2 {
                    0 => served.post("/dictionary/silent", &key.to_le_bytes()),
                    _ => served
                        .post("/", format!("SELECT dictGet('silent', 'name', toUInt64({key}))").as_bytes()),
                })
            })
            .collect();
        let answered = || asking.iter().filter(|asking| asking.is_finished()).count();
        let deadline = Instant::now() + WAIT / 4;
        while answered() < REQUESTS - MAY_WAIT {
            assert!(Instant::now() < deadline, "{} are refused", answered());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(served.get("/ping").text(), "Ok.\n");
        for _ in 0..10 {
            assert_eq!(served.sql(cached), "n7\n");
            assert!(served.post("/dictionary/users", &7u64.to_le_bytes()).body.ends_with(b"\x02n7"));
        }
        // Nor does it keep others from their own sources.
        for key in 20..30u64 {
            assert_eq!(
                served.sql(&format!("SELECT dictGet('users', 'name', toUInt64({key}))")),
                format!("n{key}\n")
            );
        }
        assert_eq!(answered(), REQUESTS - MAY_WAIT, "the others wait still");
        let queue = "SELECT value FROM system.metrics WHERE metric = 'CacheDictionaryUpdateQueueKeys'";
        // A lookup has its place before its keys are in the queue.
        let waiting = format!("{}\n", MAY_WAIT - SOURCE_THREADS);
        while served.sql(queue) != waiting {
            assert!(Instant::now() < deadline, "{} of {waiting} keys wait", served.sql(queue));
            std::thread::sleep(Duration::from_millis(10));
        }
        // Then the port is closed.
        drop(silence);
        let answers = asking.into_iter().map(|asking| asking.join().unwrap().text());
        answers.filter(|text| text.contains("lookups are waiting for sources already")).count()
    });
    assert_eq!(refused, REQUESTS - MAY_WAIT);
}

#[test]
fn queries_whose_clients_have_gone_away_end() {
    let (_folder, served) = with_cached_users(&[]);
    let query = "SELECT count() FROM numbers(1000000000000)";
    let request =
        format!("POST / HTTP/1.1\r\nHost: granary\r\nContent-Length: {}\r\n\r\n{query}", query.len());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = (cores * TURNS_PER_CORE).clamp(TURNS_MIN, TURNS_MAX);
    let threads = served.threads();
    let asked: Vec<TcpStream> = (0..at_once + 8)
        .map(|_| {
            let mut client = TcpStream::connect(served.host()).unwrap();
            client.write_all(request.as_bytes()).unwrap();
            client
        })
        .collect();
    // Each query that has begun has a thread, some of which may have been there. Lookups do not wait for queries, nor
    // for their waiters.
    until("they have begun", || served.threads() > threads + at_once as u64 / 2);
    assert!(served.post("/dictionary/users", &7u64.to_le_bytes()).body.ends_with(b"\x02n7"));
    drop(asked);
    assert_eq!(served.sql("SELECT 1"), "1\n");
}

/// Each of its steps takes seconds, without a pause.
const LONG_STEPS: &str = "SELECT count() FROM numbers(100000) AS a CROSS JOIN numbers(100000) AS b \
                          WHERE cityHash64(a.number, b.number) % 100000 = 0";

#[test]
fn queries_without_a_pause_keep_nobody_else_from_being_answered() {
    let (_folder, served) = with_cached_users(&[]);
    let request = format!(
        "POST / HTTP/1.1\r\nHost: granary\r\nContent-Length: {}\r\n\r\n{LONG_STEPS}",
        LONG_STEPS.len()
    );
    let mut asked: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut client = TcpStream::connect(served.host()).unwrap();
            client.write_all(request.as_bytes()).unwrap();
            client
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    for _ in 0..10 {
        assert_eq!(served.sql("SELECT 1"), "1\n");
        assert!(served.post("/dictionary/users", &7u64.to_le_bytes()).body.ends_with(b"\x02n7"));
    }
    for client in &mut asked {
        client.set_nonblocking(true).unwrap();
        let nothing = client.read(&mut [0; 1]).unwrap_err();
        assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock, "they are at it still");
    }
}

/// More clients than may wait read nothing of their answers: those that are broken off see that their answer is
/// incomplete.
#[test]
fn an_answer_that_is_broken_off_does_not_look_whole() {
    const CLIENTS: usize = 272;
    const ROWS: usize = 1_000_000;
    let (_folder, served) = with_cached_users(&[]);
    let sql = format!("SELECT number FROM numbers({ROWS}) FORMAT RowBinary");
    let request = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{sql}", sql.len());
    let clients: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut client = TcpStream::connect(served.host()).unwrap();
            client.write_all(request.as_bytes()).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            client
        })
        .collect();
    served.wait_for("an answer is broken off");
    assert_eq!(served.get("/ping").text(), "Ok.\n");
    let (mut whole, mut broken_off) = (0, 0);
    for mut client in clients {
        let (mut bytes, mut taken, mut end) = (vec![0; 1 << 20], 0, Vec::new());
        while let Ok(read @ 1..) = client.read(&mut bytes) {
            taken += read;
            end.extend_from_slice(&bytes[read.saturating_sub(7)..read]);
            end.drain(..end.len().saturating_sub(7));
            if end == b"\r\n0\r\n\r\n" {
                break;
            }
        }
        if end == b"\r\n0\r\n\r\n" {
            assert!(taken >= ROWS * 8, "{taken} bytes look like all");
            whole += 1;
        } else {
            broken_off += 1;
        }
    }
    assert!(whole >= 200 && broken_off > 0, "{whole} are whole, {broken_off} broken off");
}
