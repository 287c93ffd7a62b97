//! A source that takes requests and answers none.

use crate::dictionary::with_cached_users;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// More than may wait at once.
const REQUESTS: usize = 260;
const MAY_WAIT: usize = 200;
/// Longer than the test takes.
const WAIT: Duration = Duration::from_secs(600);

#[test]
fn who_waits_for_a_source_keeps_nobody_else_from_being_answered() {
    let (_folder, served) = with_cached_users(&[]);
    // The kernel takes connections and requests, and nothing is said.
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
        // It ends with this, also where a check fails.
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
        assert_eq!(answered(), REQUESTS - MAY_WAIT, "the others wait still");
        // Then nobody listens any more.
        drop(silence);
        let answers = asking.into_iter().map(|asking| asking.join().unwrap().text());
        answers.filter(|text| text.contains("lookups are waiting for sources already")).count()
    });
    assert_eq!(refused, REQUESTS - MAY_WAIT);
}
