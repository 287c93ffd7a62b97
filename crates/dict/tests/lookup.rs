//! Lookups against a source that counts, fails and waits.

mod common;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use common::*;
use granary_dict::Dictionary;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

fn sql(layout: &str, lifetime: &str) -> String {
    format!(
        "CREATE DICTIONARY d (id UInt64, v UInt64 DEFAULT 77) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT({layout}) {lifetime}"
    )
}

fn ssd(extra: &str) -> String {
    sql(
        &format!("SSD_CACHE(PATH 'cache' FILE_SIZE 16777216 WRITE_BUFFER_SIZE 65536 {extra})"),
        "LIFETIME(MIN 100 MAX 200)",
    )
}

fn get(dictionary: &Dictionary, keys: impl IntoIterator<Item = u64>) -> (Vec<u64>, Vec<bool>) {
    let answer = dictionary.get(&[0], &u64s(keys)).unwrap();
    (values(&answer.columns[0]), found(&answer.found))
}

#[test]
fn answers_in_row_order_and_asks_once() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    // 10 does not exist; duplicates are asked for once; the foreign row and the stale duplicate do not show.
    assert_eq!(
        get(&dictionary, [3, 10, 1, 3, 2]),
        (vec![30, 77, 10, 30, 20], vec![true, false, true, true, true])
    );
    assert_eq!((fake.requests(), fake.keys()), (1, 4));
    // Everything is in the cache now, that 10 is absent too.
    assert_eq!(get(&dictionary, [10, 1, 2, 3]), (vec![77, 10, 20, 30], vec![false, true, true, true]));
    assert_eq!(fake.requests(), 1);
    assert_eq!(found(&dictionary.has(&u64s([u64::MAX - 4, 1])).unwrap()), [true, true]);
    let status = dictionary.status();
    assert_eq!((status.keys_requested, status.keys_hit, status.keys_negative), (11, 5, 1));
    assert_eq!((status.keys_missed, status.keys_found_at_source), (6, 5));
    assert_eq!((status.source_requests, status.source_keys, status.source_rows), (2, 5, 8));
    assert!((status.hit_rate - 5.0 / 11.0).abs() < 1e-9 && (status.found_rate - 10.0 / 11.0).abs() < 1e-9);
    assert_eq!(status.element_count, 5);
    assert_eq!(status.layout_type, "SSDCache");
}

#[test]
fn nulls_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    for layout in [ssd(""), sql("DIRECT()", ""), sql("HASHED()", "LIFETIME(0)")] {
        let fake = Arc::new(Fake::default());
        let dictionary = fake.open(&layout, &environment);
        let keys: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(vec![Some(1), None, Some(2), None]))];
        for _ in 0..2 {
            let answer = dictionary.get(&[0], &keys).unwrap();
            assert_eq!(values(&answer.columns[0])[1], 77);
            assert_eq!(&found(&answer.found)[1..], [false, found(&answer.found)[2], false]);
        }
        let status = dictionary.status();
        assert_eq!(status.keys_requested, 4, "{layout}");
        assert_eq!(status.keys_hit + status.keys_missed, 4, "{layout}");
    }
}

#[test]
fn the_counters_of_the_specification() {
    // "keys 98..101 of which 2 exist: first query hit 0 / found 0.5, second 0.5 / 0.75"
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("CACHE(SIZE_IN_CELLS 100)", "LIFETIME(100)"), &environment);
    get(&dictionary, [1, 2, 10, 20]);
    assert_eq!((dictionary.status().hit_rate, dictionary.status().found_rate), (0.0, 0.5));
    get(&dictionary, [1, 2, 10, 20]);
    assert_eq!((dictionary.status().hit_rate, dictionary.status().found_rate), (0.5, 0.75));
}

#[test]
fn no_rows_and_no_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    assert_eq!(get(&dictionary, []), (vec![], vec![]));
    assert_eq!(fake.requests(), 0);
    assert_eq!(dictionary.get(&[1], &u64s([1])).unwrap_err().code(), 36);
    assert_eq!(dictionary.get(&[0], &[strings(&["1"])]).unwrap_err().code(), 53);
    let nulls: arrow::array::ArrayRef = Arc::new(arrow::array::UInt64Array::from(vec![None, Some(4), None]));
    let answer = dictionary.get(&[0, 0], &[nulls]).unwrap();
    assert_eq!(values(&answer.columns[1]), [77, 40, 77]);
    assert_eq!(found(&answer.found), [false, true, false]);
    assert_eq!(fake.keys(), 1);
}

#[test]
fn big_batches_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    let keys: Vec<u64> = (0..200_000u64).map(|i| i * 7 % 150_000).collect();
    let expected: Vec<u64> = keys.iter().map(|k| if k % 10 == 0 { 77 } else { k * 10 }).collect();
    assert_eq!(get(&dictionary, keys.clone()).0, expected);
    assert_eq!(fake.keys(), 150_000);
    assert_eq!(fake.largest.load(SeqCst), granary_dict::limits::KEYS_PER_REQUEST_MAX as u64);
    assert_eq!(fake.requests(), 3);
}

#[test]
fn the_same_missing_keys_are_one_request() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    fake.close_gate();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| get(&dictionary, 1..=5));
        fake.await_waiting(1);
        // Every one of them misses 1..=5; one of them adds 6..=8.
        let others: Vec<_> = (0..6).map(|_| scope.spawn(|| get(&dictionary, 1..=8))).collect();
        fake.await_waiting(2);
        until("the others wait for the same", || dictionary.status().keys_joined >= 5 + 5 * 8);
        fake.open_gate();
        assert_eq!(first.join().unwrap().0, [10, 20, 30, 40, 50]);
        for other in others {
            assert_eq!(other.join().unwrap().0, [10, 20, 30, 40, 50, 60, 70, 80]);
        }
    });
    assert_eq!((fake.requests(), fake.keys()), (2, 8));
}

#[test]
fn many_threads_over_few_keys_ask_for_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("CACHE(SIZE_IN_CELLS 1000000)", "LIFETIME(0)"), &environment);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let dictionary = &dictionary;
            scope.spawn(move || {
                for round in 0..50u64 {
                    let keys: Vec<u64> = (0..200).map(|i| (thread + round * 3 + i) % 997).collect();
                    let expected: Vec<u64> =
                        keys.iter().map(|k| if k % 10 == 0 { 77 } else { k * 10 }).collect();
                    assert_eq!(get(dictionary, keys).0, expected);
                }
            });
        }
    });
    let distinct = 7 + 49 * 3 + 200;
    assert!(fake.keys() >= distinct, "{}", fake.keys());
    // A lookup that loses every one of its probes may ask again; that is rare.
    assert!(fake.keys() <= distinct + distinct / 10, "{}", fake.keys());
}

#[test]
fn entries_expire_each_at_its_own_time() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    let start = clock.load(SeqCst);
    get(&dictionary, 1..=1000);
    assert_eq!(fake.keys(), 1000);
    clock.store(start + 100, SeqCst);
    get(&dictionary, 1..=1000);
    assert_eq!(fake.keys(), 1000, "none expires before MIN");
    clock.store(start + 150, SeqCst);
    fake.version.store(1, SeqCst);
    let (seen, _) = get(&dictionary, 1..=1000);
    let refreshed = fake.keys() - 1000;
    assert!((300..700).contains(&refreshed), "about half are past their lifetime, not {refreshed}");
    assert_eq!(dictionary.status().keys_expired, refreshed);
    let renewed = seen.iter().filter(|value| **value % 10 == 1).count() as u64;
    assert!((refreshed * 8 / 10..=refreshed).contains(&renewed), "{renewed} of {refreshed}");
    clock.store(start + 351, SeqCst);
    fake.version.store(2, SeqCst);
    assert_eq!(get(&dictionary, [1, 2]).0, [12, 22], "all are past MAX");
}

#[test]
fn lifetime_zero_never_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("CACHE(SIZE_IN_CELLS 100)", "LIFETIME(0)"), &environment);
    get(&dictionary, [1, 10]);
    clock.fetch_add(1_000_000_000, SeqCst);
    get(&dictionary, [1, 10]);
    assert_eq!(fake.requests(), 1);
}

/// An entry that was cached while the clock was a year ahead is asked for again once the clock is right.
#[test]
fn what_was_got_while_the_clock_was_ahead_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("CACHE(SIZE_IN_CELLS 100)", "LIFETIME(100)"), &environment);
    let start = clock.load(SeqCst);
    clock.store(start + 365 * 86_400, SeqCst);
    get(&dictionary, [1, 10]);
    assert_eq!(all_rows(&dictionary).unwrap().num_rows(), 1);
    clock.store(start, SeqCst);
    fake.version.store(1, SeqCst);
    assert_eq!(all_rows(&dictionary).unwrap().num_rows(), 0, "no table shows it meanwhile");
    for _ in 0..2 {
        assert_eq!(values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), [11]);
        assert!(!found(&dictionary.has(&u64s([10])).unwrap())[0]);
    }
    assert_eq!((fake.requests(), fake.keys()), (3, 4), "each once more");
    assert_eq!(values(all_rows(&dictionary).unwrap().column(1)), [11]);
    // A clock that is set back a little changes nothing.
    clock.store(start - 60, SeqCst);
    get(&dictionary, [1, 10]);
    assert_eq!(fake.requests(), 3);
}

/// Entries that never end tell nothing of their age.
#[test]
fn what_never_ended_is_asked_for_again_under_another_lifetime() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let [forever, finite] =
        ["LIFETIME(0)", "LIFETIME(100)"].map(|text| ssd("").replace("LIFETIME(MIN 100 MAX 200)", text));
    let dictionary = fake.open(&forever, &environment);
    get(&dictionary, [1, 10]);
    drop(dictionary);
    fake.version.store(1, SeqCst);
    let dictionary = fake.open(&finite, &environment);
    assert_eq!(all_rows(&dictionary).unwrap().num_rows(), 0);
    assert_eq!(get(&dictionary, [1, 10]), (vec![11, 77], vec![true, false]));
    assert_eq!((fake.requests(), fake.keys()), (2, 4));
    drop(dictionary);
    // A lifetime that has an end keeps it.
    let dictionary = fake.open(&forever, &environment);
    get(&dictionary, [1, 10]);
    assert_eq!((fake.requests(), all_rows(&dictionary).unwrap().num_rows()), (2, 1));
}

#[test]
fn a_lifetime_begins_with_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("CACHE(SIZE_IN_CELLS 100)", "LIFETIME(MIN 100 MAX 100)"), &environment);
    fake.close_gate();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| get(&dictionary, [1]));
        fake.await_waiting(1);
        clock.fetch_add(60, SeqCst);
        fake.open_gate();
        assert_eq!(asking.join().unwrap().0, [10]);
    });
    fake.version.store(1, SeqCst);
    clock.fetch_add(40, SeqCst);
    assert_eq!(get(&dictionary, [1]).0, [10]);
    clock.fetch_add(1, SeqCst);
    assert_eq!(get(&dictionary, [1]).0, [11]);
}

#[test]
fn a_failing_source_fails_what_cannot_be_answered_and_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd("MAX_THREADS_FOR_UPDATES 1"), &environment);
    get(&dictionary, [1, 2]);
    fake.failing.store(1, SeqCst);
    let error = dictionary.get(&[0], &u64s([1, 3])).unwrap_err();
    assert_eq!(error.code(), 510);
    assert!(error.message().starts_with("Update failed for dictionary 'd': Code: 626."), "{error}");
    assert!(error.message().contains("the source is down"), "{error}");
    assert_eq!(fake.requests(), 2);
    // Fresh entries are still answered; others are not asked for before the back-off ends.
    assert_eq!(get(&dictionary, [1, 2]).0, [10, 20]);
    fake.failing.store(0, SeqCst);
    let error = dictionary.get(&[0], &u64s([3])).unwrap_err();
    assert_eq!(error.code(), 510);
    assert!(error.message().contains("nearest update is scheduled at 2023-11-14 22:13:"), "{error}");
    assert_eq!(fake.requests(), 2);
    let status = dictionary.status();
    assert_eq!((status.error_count, status.source_errors), (1, 1));
    assert!(status.last_exception.contains("the source is down"));
    clock.fetch_add(7, SeqCst);
    assert_eq!(get(&dictionary, [1, 3]).0, [10, 30]);
    assert_eq!((dictionary.status().error_count, dictionary.status().last_exception.as_str()), (0, ""));
    // After a failure the connection is made anew.
    assert_eq!(fake.connections.load(SeqCst), 2);
}

#[test]
fn errors_name_a_dictionary_as_it_is_called_now() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let sql = "CREATE DICTIONARY old (id UInt64, v UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
         LAYOUT(CACHE(SIZE_IN_CELLS 100)) LIFETIME(9)";
    let fake = Arc::new(Fake::default());
    fake.failing.store(1, SeqCst);
    let dictionary = fake.open(sql, &environment).renamed(Some("shop".into()), "new".into());
    let failed = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(failed.message().contains("'shop.new'"), "{failed}");
    let left_alone = dictionary.get(&[0], &u64s([2])).unwrap_err();
    assert!(left_alone.message().contains("dictionary shop.new now"), "{left_alone}");
}

#[test]
fn requests_that_fail_together_are_one_failure_and_those_behind_them_do_not_ask() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd("MAX_THREADS_FOR_UPDATES 2"), &environment);
    fake.failing.store(1, SeqCst);
    fake.close_gate();
    std::thread::scope(|scope| {
        let dictionary = &dictionary;
        let ask = move |key| dictionary.get(&[0], &u64s([key])).unwrap_err();
        let mut asking: Vec<_> = [1, 2].map(|key| scope.spawn(move || ask(key))).into();
        fake.await_waiting(2);
        asking.extend([3, 4, 5].map(|key| scope.spawn(move || ask(key))));
        until("the others are in the queue", || dictionary.status().source_queue == 3);
        fake.open_gate();
        let errors: Vec<String> =
            asking.into_iter().map(|asking| asking.join().unwrap().to_string()).collect();
        assert_eq!(
            errors.iter().filter(|error| error.contains("nearest update is scheduled")).count(),
            3,
            "{errors:?}"
        );
    });
    assert_eq!((fake.requests(), dictionary.status().error_count), (2, 1));
    fake.failing.store(0, SeqCst);
    clock.fetch_add(7, SeqCst);
    assert_eq!(get(&dictionary, [1, 3]).0, [10, 30]);
}

#[test]
fn a_client_that_panics_is_an_error_and_nobody_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    fake.failing.store(2, SeqCst);
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.code() == 510 && error.message().contains("a bug in the client"), "{error}");
    fake.failing.store(0, SeqCst);
    clock.fetch_add(7, SeqCst);
    assert_eq!(get(&dictionary, [1]).0, [10]);
}

#[test]
fn strict_lookups_do_not_show_expired_values_when_the_source_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    get(&dictionary, [1]);
    clock.fetch_add(201, SeqCst);
    fake.failing.store(1, SeqCst);
    assert_eq!(dictionary.get(&[0], &u64s([1])).unwrap_err().code(), 510);
}

#[test]
fn stale_answers_come_at_once_and_are_refreshed_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary =
        fake.open(&ssd("ALLOW_READ_EXPIRED_KEYS 1 STRICT_MAX_LIFETIME_SECONDS 1000"), &environment);
    get(&dictionary, [1, 2, 10]);
    clock.fetch_add(201, SeqCst);
    fake.version.store(1, SeqCst);
    fake.close_gate();
    assert_eq!(get(&dictionary, [1, 2, 10]), (vec![10, 20, 77], vec![true, true, false]));
    fake.await_waiting(1);
    // The refresh is under way: no other request begins.
    assert_eq!(get(&dictionary, [1, 2, 10]).0, [10, 20, 77]);
    assert_eq!((fake.requests(), fake.keys(), dictionary.status().source_queue), (2, 6, 0));
    fake.open_gate();
    until("the refresh lands", || get(&dictionary, [1, 2, 10]).0 == [11, 21, 77]);
    // A lookup that found stale rows just before may have begun another one.
    until("no refresh is under way", || {
        let status = dictionary.status();
        (status.source_queue, status.source_threads_active) == (0, 0)
    });
    // One missing key makes the lookup wait for the whole update.
    clock.fetch_add(201, SeqCst);
    fake.version.store(2, SeqCst);
    assert_eq!(get(&dictionary, [1, 2, 3]).0, [12, 22, 32]);
}

/// Without a strict limit of its own a dictionary shows them for another MAX of LIFETIME.
#[test]
fn stale_answers_last_through_an_outage_up_to_the_strict_limit() {
    for (strict, limit) in [("STRICT_MAX_LIFETIME_SECONDS 1000", 1000), ("", 200)] {
        let folder = tempfile::tempdir().unwrap();
        let (environment, clock) = manual_environment(folder.path());
        let fake = Arc::new(Fake::default());
        let dictionary = fake.open(&ssd(&format!("ALLOW_READ_EXPIRED_KEYS 1 {strict}")), &environment);
        get(&dictionary, [1, 2]);
        fake.failing.store(1, SeqCst);
        clock.fetch_add(201, SeqCst);
        assert_eq!(get(&dictionary, [1, 2]).0, [10, 20]);
        until("the refresh fails", || dictionary.status().error_count == 1);
        assert_eq!(get(&dictionary, [1, 2]).0, [10, 20]);
        assert_eq!(fake.requests(), 2, "the back-off holds for refreshes too");
        assert_eq!(dictionary.get(&[0], &u64s([1, 3])).unwrap_err().code(), 510);
        clock.fetch_add(limit, SeqCst);
        assert_eq!(dictionary.get(&[0], &u64s([1, 2])).unwrap_err().code(), 510, "too old to be shown");
        fake.failing.store(0, SeqCst);
        clock.fetch_add(2000, SeqCst);
        assert_eq!(get(&dictionary, [1, 2]).0, [10, 20]);
    }
}

#[test]
fn waiting_ends_and_the_late_answer_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd("QUERY_WAIT_TIMEOUT_MILLISECONDS 50"), &environment);
    fake.close_gate();
    // A request that does not begin in time is not made at all.
    until("the request begins", || {
        let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
        assert_eq!(error.code(), 159);
        assert_eq!(error.message(), "Dictionary d source seems unavailable, because 50 ms timeout exceeded");
        fake.requests() == 1
    });
    fake.open_gate();
    until("the late answer is kept", || dictionary.status().element_count == 1);
    assert_eq!(get(&dictionary, [1]).0, [10]);
    assert_eq!(fake.requests(), 1);
}

#[test]
fn the_queue_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd("MAX_UPDATE_QUEUE_SIZE 1 MAX_THREADS_FOR_UPDATES 1"), &environment);
    fake.close_gate();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| get(&dictionary, [1]));
        fake.await_waiting(1);
        let second = scope.spawn(|| get(&dictionary, [2]));
        until("the queue is full", || dictionary.status().source_queue == 1);
        let error = dictionary.get(&[0], &u64s([3])).unwrap_err();
        assert_eq!(error.code(), 510);
        assert!(error.message().contains("Cannot push to internal update queue in dictionary d"), "{error}");
        fake.open_gate();
        assert_eq!(first.join().unwrap().0, [10]);
        assert_eq!(second.join().unwrap().0, [20]);
    });
    assert_eq!(get(&dictionary, [3]).0, [30], "a refused request leaves nothing behind");
}

#[test]
fn reload_forgets_and_does_not_keep_older_answers() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    get(&dictionary, [1]);
    fake.version.store(1, SeqCst);
    dictionary.reload().unwrap();
    assert_eq!(dictionary.status().element_count, 0);
    assert_eq!(get(&dictionary, [1]).0, [11]);
    fake.close_gate();
    std::thread::scope(|scope| {
        let under_way = scope.spawn(|| get(&dictionary, [2]));
        fake.await_waiting(1);
        dictionary.reload().unwrap();
        // Not the old request's: this one was made after the reload.
        let after = scope.spawn(|| get(&dictionary, [2, 3]));
        fake.await_waiting(2);
        fake.open_gate();
        assert_eq!(under_way.join().unwrap().0, [21]);
        assert_eq!(after.join().unwrap().0, [21, 31]);
    });
    assert_eq!(dictionary.status().element_count, 2);
}

/// Before a reload the user may have changed what a kept connection is to: another database, the settings of the user.
#[test]
fn reload_drops_connections() {
    let fake = Arc::new(Fake::default());
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let direct = fake.open(&sql("DIRECT(MAX_THREADS_FOR_UPDATES 1)", ""), &environment);
    let connections = || {
        direct.has(&u64s([1])).unwrap();
        fake.connections.load(SeqCst)
    };
    assert_eq!((connections(), connections()), (1, 1));
    direct.reload().unwrap();
    assert_eq!((connections(), connections()), (2, 2));
}

/// The source is not down: other lookups are answered, and only those of the bad row get an error.
#[test]
fn one_bad_row_fails_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    fake.bad.store(3333, SeqCst);
    let error = dictionary.get(&[0], &u64s(1..10_000)).unwrap_err();
    assert!(error.code() == 510 && error.message().contains("the row of 3333 is bad"), "{error}");
    let requests = fake.requests();
    assert!(requests < 64, "{requests} requests");
    // All others are known.
    assert_eq!(get(&dictionary, (1..10_000).filter(|key| *key != 3333)).1.len(), 9998);
    assert_eq!(get(&dictionary, [20_001]).0, [200_010]);
    // The index tells keys apart by some bits of a hash: it may lose an entry.
    assert!(fake.requests() <= requests + 2);
    let requests = fake.requests();
    for _ in 0..3 {
        dictionary.get(&[0], &u64s([3333])).unwrap_err();
    }
    assert_eq!(fake.requests(), requests, "the source is left alone with that key");
    fake.bad.store(0, SeqCst);
    clock.fetch_add(5, SeqCst);
    assert_eq!(get(&dictionary, [3333]).0, [33_330]);
    // A reload ends the wait.
    fake.bad.store(5, SeqCst);
    dictionary.reload().unwrap();
    dictionary.get(&[0], &u64s([5])).unwrap_err();
    fake.bad.store(0, SeqCst);
    dictionary.reload().unwrap();
    assert_eq!(get(&dictionary, [5]).0, [50]);
}

/// Another lookup's keys in the same request are answered, too, and the cached row of a bad one stays.
#[test]
fn one_bad_row_fails_nobody_who_waits_for_the_same_request() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    fake.bad.store(3, SeqCst);
    fake.close_gate();
    std::thread::scope(|scope| {
        let with = scope.spawn(|| dictionary.get(&[0], &u64s(1..8)).map(|_| ()));
        fake.await_waiting(1);
        let without = scope.spawn(|| get(&dictionary, [1, 2, 4, 7]));
        until("the other lookup waits", || dictionary.status().keys_joined >= 4);
        fake.open_gate();
        with.join().unwrap().unwrap_err();
        assert_eq!(without.join().unwrap().0, [10, 20, 40, 70]);
    });
    fake.bad.store(2, SeqCst);
    dictionary.refresh(&u64s([1, 2, 4])).unwrap_err();
    assert_eq!(get(&dictionary, [1, 2, 4]).0, [10, 20, 40]);
}

#[test]
fn reload_ends_the_back_off() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    fake.failing.store(1, SeqCst);
    dictionary.get(&[0], &u64s([1])).unwrap_err();
    fake.failing.store(0, SeqCst);
    dictionary.reload().unwrap();
    let status = dictionary.status();
    assert_eq!((status.error_count, status.last_exception.as_str()), (0, ""));
    assert_eq!(get(&dictionary, [1]).0, [10]);
}

#[test]
fn direct_asks_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("DIRECT()", ""), &environment);
    assert_eq!(get(&dictionary, [1, 10, 1]), (vec![10, 77, 10], vec![true, false, true]));
    fake.version.store(1, SeqCst);
    assert_eq!(get(&dictionary, [1]).0, [11]);
    assert_eq!((fake.requests(), fake.keys()), (2, 3));
    let all = all_rows(&dictionary).unwrap();
    // 18 of 1..=20, the foreign row, and the duplicate, as the source answers them.
    assert_eq!(all.num_rows(), 20);
    fake.failing.store(1, SeqCst);
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert_eq!(error.code(), 626, "a direct dictionary shows the source's own error");
    fake.failing.store(0, SeqCst);
    assert_eq!(get(&dictionary, [1]).0, [11], "and has no back-off");
}

#[test]
fn resident_shows_found_and_fresh_entries() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    assert_eq!(all_rows(&dictionary).unwrap().num_rows(), 0);
    assert_eq!(all_rows(&dictionary).unwrap().schema().field(1).name(), "v");
    get(&dictionary, [1, 2, 10]);
    let mut ids = values(all_rows(&dictionary).unwrap().column(0));
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    clock.fetch_add(201, SeqCst);
    assert_eq!(all_rows(&dictionary).unwrap().num_rows(), 0);
}

#[test]
fn a_path_belongs_to_one_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    let again = Dictionary::open_with_source(definition(&ssd("")), &environment, fake.factory());
    let error = again.err().expect("the path is in use");
    assert!(error.code() == 36 && error.message().contains("in use by another cache"), "{error}");
    get(&dictionary, [1]);
    dictionary.remove();
    assert_eq!(dictionary.get(&[0], &u64s([2])).unwrap_err().code(), 510);
    // The place is free although the old one is still held.
    let next = fake.open(&ssd(""), &environment);
    get(&next, [3]);
    drop(dictionary);
    assert_eq!(get(&next, [3]).0, [30]);
    next.remove();
    drop(next);
    let left: Vec<_> = std::fs::read_dir(folder.path().join("user_files")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn files_are_removed_of_a_dictionary_that_is_not_open_but_not_those_of_strangers() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let of_ssd = definition(&ssd(""));
    let has_files = || Dictionary::has_files(&of_ssd, &environment).unwrap();
    let left = || std::fs::read_dir(folder.path().join("user_files")).unwrap().count();
    assert!(!has_files());
    Dictionary::remove_files_of(&of_ssd, &environment).unwrap();
    let dictionary = fake.open(&ssd(""), &environment);
    get(&dictionary, [1]);
    drop(dictionary);
    assert!(has_files());
    Dictionary::remove_files_of(&of_ssd, &environment).unwrap();
    assert!(!has_files() && left() == 0);
    std::fs::write(folder.path().join("user_files/cache.bin"), "somebody else's").unwrap();
    Dictionary::remove_files_of(&of_ssd, &environment).unwrap();
    assert!(has_files() && left() == 1);
}

#[test]
fn a_reopened_dictionary_is_warm_unless_it_means_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd(""), &environment);
    get(&dictionary, 1..=1000);
    drop(dictionary);
    assert_eq!(std::fs::metadata(folder.path().join("user_files/cache.bin")).unwrap().len(), 16 << 20);
    let dictionary = fake.open(&ssd("").replace("LIFETIME(MIN 100 MAX 200)", "LIFETIME(7)"), &environment);
    assert_eq!(get(&dictionary, [1, 10, 1000]), (vec![10, 77, 77], vec![true, false, false]));
    assert_eq!((fake.requests(), dictionary.status().element_count), (1, 1000));
    let mut ids = values(all_rows(&dictionary).unwrap().column(0));
    ids.sort_unstable();
    assert_eq!(ids, (1..=1000).filter(|id| id % 10 != 0).collect::<Vec<u64>>());
    drop(dictionary);
    // An old row is 8 bytes, and so would be one of this dictionary.
    let changed = ssd("").replace("v UInt64 DEFAULT 77", "v UInt64 DEFAULT 78");
    let dictionary = fake.open(&changed, &environment);
    assert_eq!(dictionary.status().element_count, 0);
    assert_eq!(get(&dictionary, [10]).0, [78]);
    assert_eq!(fake.requests(), 2);
    dictionary.reload().unwrap();
    drop(dictionary);
    assert_eq!(fake.open(&changed, &environment).status().element_count, 0, "a reload is final");
    clock.fetch_add(1, SeqCst);
}

#[test]
fn what_is_on_flash_is_what_was_put() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&ssd("MEMORY_CACHE_SIZE 0"), &environment);
    let keys: Vec<u64> = (0..100_000).collect();
    let expected: Vec<u64> = keys.iter().map(|k| if k % 10 == 0 { 77 } else { k * 10 }).collect();
    for chunk in keys.chunks(8192) {
        get(&dictionary, chunk.iter().copied());
    }
    let scattered: Vec<usize> = (0..keys.len()).map(|i| i * 7919 % keys.len()).collect();
    // What the device has not taken yet is found in write buffers.
    until("most is on flash", || {
        let earlier = dictionary.status().hits_flash;
        let (seen, _) = get(&dictionary, scattered.iter().map(|&i| keys[i]));
        assert!(scattered.iter().zip(&seen).all(|(&i, &value)| value == expected[i]));
        dictionary.status().hits_flash > earlier + 50_000
    });
    let status = dictionary.status();
    assert_eq!(status.hits_memory, 0);
    assert_eq!(status.rows_bad, 0);
    assert!(status.index_bytes < 1 << 20 && status.bytes_allocated > status.index_bytes);
}

#[test]
fn when_an_entry_was_got_follows_from_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary =
        fake.open(&sql("CACHE(SIZE_IN_CELLS 100000)", "LIFETIME(MIN 100 MAX 5000)"), &environment);
    dictionary.get(&[], &u64s(1..1000)).unwrap();
    let first = clock.fetch_add(77, SeqCst);
    dictionary.get(&[], &u64s(1000..2000)).unwrap();
    dictionary.refresh(&u64s([5])).unwrap();
    for batch in dictionary.resident_with(granary_dict::Times::Shown).unwrap().map(Result::unwrap) {
        let times = batch.column_by_name("_updated_at").unwrap();
        let times = times.as_primitive::<arrow::datatypes::TimestampSecondType>();
        for (key, time) in values(batch.column(0)).into_iter().zip(times.iter().flatten()) {
            let expected = if key == 5 || key >= 1000 { first + 77 } else { first };
            assert_eq!(time, expected as i64, "key {key}");
        }
        assert_eq!(times.null_count(), 0);
    }
    let forever = fake.open(&sql("CACHE(SIZE_IN_CELLS 10)", "LIFETIME(0)"), &environment);
    forever.get(&[], &u64s([1])).unwrap();
    let batch = forever.resident_with(granary_dict::Times::Shown).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.column_by_name("_updated_at").unwrap().null_count(), 1);
}
