//! A query's progress can be read while it runs.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::poll;
use granary_sql::{Options, Session};
use tokio::runtime::Runtime;

fn session() -> Session {
    Session::open(Options { allow_executable: true, ..Options::default() }).unwrap()
}

#[test]
fn rows_are_counted_as_they_are_read() {
    let (runtime, session) = (Runtime::new().unwrap(), session());
    runtime.block_on(async {
        let statements =
            granary_sql::split("SELECT number FROM numbers(1000000000) WHERE number > 100").unwrap();
        let mut output = session.execute(&statements[0]).await.unwrap();
        let progress = output.progress();
        output.next().await.unwrap().unwrap();
        let rows = progress.rows_read();
        assert!((65_536..1_000_000_000).contains(&rows), "{rows} rows");
    });
}

#[test]
fn rows_are_counted_while_a_dictionary_waits_for_its_source() {
    let (runtime, session) = (Runtime::new().unwrap(), session());
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let may_answer = folder.path().join("may_answer");
        // It waits for the file, a minute at most.
        let waits =
            format!("for i in $(seq 600); do test -e {} && break; sleep 0.1; done", may_answer.display());
        let slow = format!(
            "CREATE DICTIONARY slow (id UInt64, v UInt64) PRIMARY KEY id LAYOUT(CACHE(SIZE_IN_CELLS 1000)) \
             SOURCE(EXECUTABLE(COMMAND '{waits}; awk \\'{{print $1 \"\\t1\"}}\\'' FORMAT 'TabSeparated')) LIFETIME(1000)"
        );
        for statement in granary_sql::split(&slow).unwrap() {
            session.execute(&statement).await.unwrap();
        }
        let statements = granary_sql::split("SELECT sum(dictGet('slow', 'v', number)) FROM numbers(500)").unwrap();
        let mut output = session.execute(&statements[0]).await.unwrap();
        let (progress, started) = (output.progress(), Instant::now());
        let mut first = pin!(output.next());
        // The table is read ahead of the answer's reader.
        while progress.rows_read() == 0 && started.elapsed() < Duration::from_secs(60) {
            assert!(poll!(first.as_mut()).is_pending(), "the source has not answered yet");
            tokio::task::yield_now().await;
        }
        assert_eq!(progress.rows_read(), 500);
        std::fs::write(&may_answer, "").unwrap();
        first.await.unwrap().unwrap();
    });
}
