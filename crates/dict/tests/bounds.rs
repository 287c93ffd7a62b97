//! Bounds on what a source sees: requests at once, requests a second, keys in one of them, and none that no lookup
//! waits for any longer.

mod common;

use arrow::array::ArrayRef;
use common::*;
use granary_dict::{Dictionary, Environment, parse_create};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

fn open(fake: &Arc<Fake>, layout: &str, environment: &Environment) -> Dictionary {
    let lifetime = if layout.starts_with("DIRECT") { "" } else { "LIFETIME(1000)" };
    let sql = format!(
        "CREATE DICTIONARY d (id UInt64, v UInt64) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT({layout}) {lifetime}"
    );
    fake.open(&sql, environment)
}

fn get(dictionary: &Dictionary, keys: impl IntoIterator<Item = u64>) -> Result<Vec<u64>, i32> {
    let answer = dictionary.get(&[0], &u64s(keys)).map_err(|error| error.code())?;
    Ok(values(&answer.columns[0]))
}

/// An answer that is to come within two seconds; `None`: this machine stood still, and the test is to begin anew.
fn in_time<T>(answer: Result<T, i32>) -> Option<T> {
    match answer {
        Err(159) => None,
        answer => Some(answer.unwrap_or_else(|code| panic!("{code}"))),
    }
}

#[test]
fn no_more_requests_a_second_than_allowed_and_who_waits_for_one_gives_up_in_time() {
    for layout in ["CACHE(SIZE_IN_CELLS 1000 ", "DIRECT("] {
        until("what may be asked is answered", || two_requests_a_second(layout).is_some());
    }
}

fn two_requests_a_second(layout: &str) -> Option<()> {
    let folder = tempfile::tempdir().unwrap();
    // The clock stands still: its second lasts as long as the test wants.
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let settings = "MAX_REQUESTS_PER_SECOND 2 QUERY_WAIT_TIMEOUT_MILLISECONDS 2000)";
    let dictionary = open(&fake, &format!("{layout}{settings}"), &environment);
    assert_eq!(in_time(get(&dictionary, [1]))?, [10], "{layout}");
    assert_eq!(in_time(get(&dictionary, [2]))?, [20], "{layout}");
    assert_eq!(get(&dictionary, [3]), Err(159), "{layout}");
    assert_eq!(dictionary.refresh(&u64s([1])).unwrap_err().code(), 159, "{layout}");
    assert_eq!(fake.requests(), 2, "{layout}");
    clock.fetch_add(1, SeqCst);
    assert_eq!(in_time(get(&dictionary, [4]))?, [40], "{layout}");
    assert_eq!(in_time(get(&dictionary, [3]))?, [30], "{layout}");
    assert_eq!(get(&dictionary, [5]), Err(159), "{layout}");
    assert_eq!((fake.requests(), fake.keys()), (4, 4), "{layout}");
    Some(())
}

#[test]
fn reading_a_source_whole_is_a_request_too() {
    until("what may be asked is answered", || reading_whole_once().is_some());
}

fn reading_whole_once() -> Option<()> {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let settings = "DIRECT(MAX_REQUESTS_PER_SECOND 1 QUERY_WAIT_TIMEOUT_MILLISECONDS 2000)";
    let dictionary = open(&fake, settings, &environment);
    let read_whole = || all_rows(&dictionary).map(drop).map_err(|error| error.code());
    assert_eq!(in_time(get(&dictionary, [1]))?, [10]);
    assert_eq!(read_whole(), Err(159));
    clock.fetch_add(1, SeqCst);
    in_time(read_whole())?;
    assert_eq!((get(&dictionary, [1]), fake.requests()), (Err(159), 2));
    Some(())
}

/// The answer of a lookup that waits for its turn when `then` is called, and the number of requests at the end.
fn lookup_that_waits(then: impl FnOnce(&Dictionary, &AtomicU64)) -> (Result<Vec<u64>, i32>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = open(&fake, "CACHE(SIZE_IN_CELLS 1000 MAX_REQUESTS_PER_SECOND 1)", &environment);
    assert_eq!(get(&dictionary, [1]), Ok(vec![10]));
    let answer = std::thread::scope(|scope| {
        let waits = scope.spawn(|| get(&dictionary, [2]));
        until("it waits", || dictionary.status().keys_missed == 2);
        then(&dictionary, &clock);
        waits.join().unwrap()
    });
    (answer, fake.requests() as usize)
}

#[test]
fn a_lookup_that_waits_for_its_turn_gets_it() {
    let next_second = |_: &Dictionary, clock: &AtomicU64| {
        clock.fetch_add(1, SeqCst);
    };
    assert_eq!(lookup_that_waits(next_second), (Ok(vec![20]), 2));
}

#[test]
fn a_dictionary_that_waits_for_its_turn_can_be_dropped() {
    assert_eq!(lookup_that_waits(|dictionary, _| dictionary.remove()), (Err(510), 1));
}

#[test]
fn a_request_has_no_more_keys_than_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    for layout in ["CACHE(SIZE_IN_CELLS 1000", "DIRECT("] {
        let fake = Arc::new(Fake::default());
        let dictionary = open(&fake, &format!("{layout} MAX_KEYS_PER_REQUEST 7)"), &environment);
        assert_eq!(get(&dictionary, 1..=9).unwrap(), (1..=9).map(|key| key * 10).collect::<Vec<u64>>());
        assert_eq!((fake.requests(), fake.largest.load(SeqCst)), (2, 7), "{layout}");
    }
}

#[test]
fn no_more_requests_at_once_than_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    for layout in ["CACHE(SIZE_IN_CELLS 1000", "DIRECT("] {
        let fake = Arc::new(Fake::default());
        let settings = "MAX_THREADS_FOR_UPDATES 3 MAX_KEYS_PER_REQUEST 1)";
        let dictionary = open(&fake, &format!("{layout} {settings}"), &environment);
        fake.close_gate();
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| get(&dictionary, 1..=9));
            fake.await_waiting(3);
            fake.open_gate();
            assert!(asks.join().unwrap().is_ok());
        });
        assert_eq!((fake.requests(), fake.most_at_once()), (9, 3), "{layout}");
        assert_eq!(fake.connections.load(SeqCst), 3, "{layout}");
    }
}

#[test]
fn a_request_that_nobody_waits_for_any_longer_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let settings = "MAX_THREADS_FOR_UPDATES 1 QUERY_WAIT_TIMEOUT_MILLISECONDS 2000)";
    let dictionary = open(&fake, &format!("CACHE(SIZE_IN_CELLS 1000 {settings}"), &environment);
    fake.close_gate();
    // The first has begun, and is answered late; the second and third are in the queue.
    until("it begins", || {
        assert_eq!(get(&dictionary, [1]), Err(159));
        fake.requests() == 1
    });
    for key in 2..=3 {
        assert_eq!(get(&dictionary, [key]), Err(159));
    }
    assert_eq!((fake.requests(), dictionary.status().source_queue), (1, 2));
    fake.open_gate();
    let get_at_last = |keys: &[ArrayRef]| {
        let answer = answers_at_last(|| dictionary.get(&[0], keys));
        values(&answer.columns[0])
    };
    assert_eq!(get_at_last(&u64s([4])), [40]);
    assert_eq!((fake.requests(), dictionary.status().source_queue), (2, 0));
    assert_eq!(get_at_last(&u64s(1..=4)), [10, 20, 30, 40], "they are asked for by who wants them next");
    assert_eq!((fake.requests(), fake.keys()), (3, 4));
}

#[test]
fn a_lookup_of_many_requests_waits_for_room_once() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let settings = "MAX_THREADS_FOR_UPDATES 1 MAX_KEYS_PER_REQUEST 1 MAX_UPDATE_QUEUE_SIZE 1 \
        UPDATE_QUEUE_PUSH_TIMEOUT_MILLISECONDS 1000)";
    let dictionary = open(&fake, &format!("CACHE(SIZE_IN_CELLS 1000 {settings}"), &environment);
    fake.close_gate();
    let started = Instant::now();
    assert_eq!(get(&dictionary, 1..=100), Err(510));
    assert!(started.elapsed() < Duration::from_secs(60), "and not a second for each of 98 requests");
    fake.open_gate();
}

/// A refused lookup leaves no request behind, and takes no place from lookups of another source.
#[test]
fn lookups_that_may_not_wait_ask_for_nothing() {
    const WAIT: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    for layout in ["CACHE(SIZE_IN_CELLS 1000", "DIRECT("] {
        let (silent, fake) = (Arc::new(Fake::default()), Arc::new(Fake::default()));
        let layout = format!("{layout} MAX_THREADS_FOR_UPDATES 1)");
        let dictionary = open(&silent, &layout, &environment);
        let other = open(&fake, &layout, &environment);
        silent.close_gate();
        std::thread::scope(|scope| {
            let dictionary = &dictionary;
            let waiting: Vec<_> =
                (0..WAIT as u64).map(|key| scope.spawn(move || get(dictionary, [key * 10 + 1]))).collect();
            silent.await_waiting(1);
            until("all wait", || dictionary.status().source_queue_keys == WAIT as u64 - 1);
            for key in 5001..5010 {
                assert_eq!(get(dictionary, [key]), Err(510));
                assert_eq!(dictionary.refresh(&u64s([key])).unwrap_err().code(), 510);
            }
            assert_eq!(dictionary.status().source_queue_keys, WAIT as u64 - 1, "{layout}");
            assert_eq!(get(&other, [7]), Ok(vec![70]), "another source is there for who asks it");
            silent.open_gate();
            assert!(waiting.into_iter().all(|waits| waits.join().unwrap().is_ok()));
        });
        assert_eq!(get(&dictionary, [5001]), Ok(vec![50010]), "places are given back");
        assert_eq!(silent.keys(), WAIT as u64 + 1, "{layout}");
    }
}

#[test]
fn bounds_are_written_and_read_back() {
    for layout in ["DIRECT()", "CACHE(SIZE_IN_CELLS 8)", "SSD_CACHE(PATH 'p')"] {
        let settings = "MAX_KEYS_PER_REQUEST 100 MAX_REQUESTS_PER_SECOND 20)";
        let lifetime = if layout.starts_with("DIRECT") { "" } else { "LIFETIME(10)" };
        let with = |layout: &str| {
            format!(
                "CREATE DICTIONARY d (id UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
                 LAYOUT({layout}) {lifetime}"
            )
        };
        let bounded = definition(&with(&layout.replace(')', &format!(" {settings}"))));
        assert_eq!(bounded.layout.update.max_keys_per_request, 100);
        assert_eq!(bounded.layout.update.max_requests_per_second, Some(20));
        assert_eq!(definition(&bounded.to_sql()), bounded, "{}", bounded.to_sql());
        let free = definition(&with(layout));
        assert_eq!(free.layout.update.max_requests_per_second, None);
        assert!(!free.to_sql().contains("MAX_"), "{}", free.to_sql());
        for wrong in ["MAX_REQUESTS_PER_SECOND 0", "MAX_KEYS_PER_REQUEST 65537", "MAX_KEYS_PER_REQUEST 0"] {
            let sql = with(&layout.replace(')', &format!(" {wrong})")));
            assert_eq!(parse_create(&sql).err().map(|error| error.code()), Some(36), "{sql}");
        }
    }
    let expiry = "CREATE DICTIONARY d (id UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
        LAYOUT(DIRECT(ALLOW_READ_EXPIRED_KEYS 1))";
    assert_eq!(parse_create(expiry).unwrap_err().code(), 115, "nothing expires there");
}
