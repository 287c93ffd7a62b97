//! Layouts that hold all rows: when these are loaded, and what is shown meanwhile.

mod common;

use arrow::array::{ArrayRef, RecordBatch};
use common::*;
use granary_dict::{BatchSink, Code, DictError, Dictionary, Environment, LoadState, Source, WaitLimit};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

fn sql(layout: &str, lifetime: &str) -> String {
    format!(
        "CREATE DICTIONARY d (id UInt64, v UInt64 DEFAULT 7) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT({layout}) LIFETIME({lifetime})"
    )
}

/// The values of these keys; `None`: the source does not have them.
fn look_up<const N: usize>(dictionary: &Dictionary, keys: [u64; N]) -> [Option<u64>; N] {
    let answer = dictionary.get(&[0], &u64s(keys)).unwrap();
    let (values, found) = (values(&answer.columns[0]), found(&answer.found));
    std::array::from_fn(|i| {
        assert!(found[i] || values[i] == 7, "the DEFAULT of what is not there");
        found[i].then_some(values[i])
    })
}

#[test]
fn all_rows_are_loaded_once_and_other_keys_are_never_asked_for() {
    for (layout, layout_type, of_two_rows) in [
        ("FLAT()", "Flat", 10),
        ("FLAT(INITIAL_ARRAY_SIZE 10 MAX_ARRAY_SIZE 100)", "Flat", 10),
        ("HASHED(SHARDS 2 MAX_LOAD_FACTOR 0.9)", "Hashed", 999),
        ("SPARSE_HASHED()", "SparseHashed", 999),
        ("HASHED_ARRAY()", "HashedArray", 999),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (environment, _) = manual_environment(folder.path());
        let fake = Arc::new(Fake::default());
        let dictionary = fake.open(&sql(layout, "0"), &environment);
        let status = dictionary.status();
        assert_eq!(
            (status.state, status.layout_type, fake.requests()),
            (LoadState::NotLoaded, layout_type, 0)
        );
        for _ in 0..3 {
            let shown = look_up(&dictionary, [2, 10, 1, 2, 1_000_000]);
            assert_eq!(shown, [Some(20), None, Some(of_two_rows), Some(20), None], "{layout}");
        }
        let status = dictionary.status();
        assert_eq!((status.state, fake.requests(), status.element_count), (LoadState::Loaded, 1, 19));
        assert_eq!((status.keys_requested, status.keys_negative, status.keys_missed), (15, 6, 0));
        assert_eq!((status.hit_rate, status.found_rate), (1.0, 0.6));
        assert!(status.bytes_allocated >= 19 * 16 && status.load_factor > 0.0, "{status:?}");
    }
}

#[test]
fn rows_of_complex_keys_are_held_too() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    for (layout, layout_type) in [
        ("COMPLEX_KEY_HASHED()", "ComplexKeyHashed"),
        ("COMPLEX_KEY_SPARSE_HASHED()", "ComplexKeySparseHashed"),
        ("COMPLEX_KEY_HASHED_ARRAY()", "ComplexHashedArray"),
    ] {
        let fake = Arc::new(Fake::default());
        let dictionary = fake.open(&sql(layout, "0"), &environment);
        assert_eq!(look_up(&dictionary, [3, 20]), [Some(30), None]);
        assert_eq!(dictionary.status().layout_type, layout_type);
        let printed = dictionary.definition().to_sql();
        assert_eq!(definition(&printed), *dictionary.definition(), "{printed}");
    }
}

#[test]
fn reading_all_rows_loads_them_and_asks_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("FLAT()", "0"), &environment);
    for _ in 0..2 {
        let rows = all_rows(&dictionary).unwrap();
        let ids = (1..=19).filter(|id| id % 10 != 0).chain([u64::MAX]).collect::<Vec<_>>();
        assert_eq!(values(rows.column(0)), ids, "in the order of the keys");
        assert_eq!(values(rows.column(1))[..3], [10, 20, 30]);
    }
    assert_eq!(fake.requests(), 1);
}

#[test]
fn who_comes_while_the_rows_are_loaded_waits_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("HASHED()", "0"), &environment);
    fake.close_gate();
    std::thread::scope(|scope| {
        let lookups: Vec<_> = (0..8).map(|_| scope.spawn(|| look_up(&dictionary, [5]))).collect();
        fake.await_waiting(1);
        assert_eq!(dictionary.status().state, LoadState::Loading);
        fake.open_gate();
        lookups.into_iter().for_each(|lookup| assert_eq!(lookup.join().unwrap(), [Some(50)]));
    });
    assert_eq!(fake.requests(), 1);
}

#[test]
fn who_does_not_want_to_wait_longer_is_told_and_the_load_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("HASHED(QUERY_WAIT_TIMEOUT_MILLISECONDS 50)", "0"), &environment);
    fake.close_gate();
    let deadline = Instant::now() + Duration::from_secs(60);
    // A load that does not begin in time is given up, and its waiters get an error.
    loop {
        let code = dictionary.get(&[0], &u64s([5])).unwrap_err().code();
        if fake.requests() == 1 && code == 159 {
            break;
        }
        assert!([159, 510].contains(&code) && Instant::now() < deadline, "{code}");
    }
    fake.open_gate();
    while dictionary.status().state != LoadState::Loaded {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!((look_up(&dictionary, [5]), fake.requests()), ([Some(50)], 1));
}

#[test]
fn a_reload_shows_the_old_rows_until_all_new_ones_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("HASHED()", "0"), &environment);
    assert_eq!(look_up(&dictionary, [5]), [Some(50)]);
    fake.version.store(1, SeqCst);
    fake.close_gate();
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| dictionary.reload());
        fake.await_waiting(1);
        let shown = (look_up(&dictionary, [5]), dictionary.status().state);
        assert_eq!(shown, ([Some(50)], LoadState::LoadedAndReloading));
        fake.open_gate();
        reload.join().unwrap().unwrap();
    });
    assert_eq!(dictionary.status().state, LoadState::Loaded);
    assert_eq!(look_up(&dictionary, [5]), [Some(51)]);
}

#[test]
fn a_reload_reads_rows_that_are_no_older_than_itself() {
    static WAITS: AtomicU64 = AtomicU64::new(0);
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let waiting = WaitLimit::new(|wait| {
        WAITS.fetch_add(1, SeqCst);
        wait();
    });
    let environment = Environment { waiting, ..environment };
    let parts = Arc::new(Parts::default());
    let dictionary = parts.open(&sql("HASHED()", "0"), &environment);
    parts.stops.store(true, SeqCst);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| look_up(&dictionary, [0, 1]));
        // The first part has been read, of version 0.
        await_that(|| parts.given.load(SeqCst) == 1);
        parts.version.store(1, SeqCst);
        let reload = scope.spawn(|| dictionary.reload());
        // It waits for the load that is under way, as the lookup does.
        await_that(|| WAITS.load(SeqCst) == 2);
        assert!(!reload.is_finished());
        parts.stops.store(false, SeqCst);
        reload.join().unwrap().unwrap();
        first.join().unwrap();
    });
    assert_eq!(look_up(&dictionary, [0, 1]), [Some(1), Some(1)]);
    assert_eq!(parts.given.load(SeqCst), 4, "two loads of two parts");
}

#[test]
fn lookups_know_whether_they_saw_one_load() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("HASHED()", "0"), &environment);
    let none = dictionary.shown_load();
    assert!(none == dictionary.shown_load());
    look_up(&dictionary, [5]);
    let first = dictionary.shown_load();
    assert!(first != none);
    look_up(&dictionary, [6]);
    assert!(first == dictionary.shown_load());
    dictionary.reload().unwrap();
    assert!(first != dictionary.shown_load());
}

/// The load that is under way takes longer than a reload waits: another one follows it.
#[test]
fn a_reload_is_made_up_for_that_waited_in_vain_for_a_load_that_began_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let parts = Arc::new(Parts::default());
    let dictionary = parts.open(&sql("HASHED(QUERY_WAIT_TIMEOUT_MILLISECONDS 2000)", "0"), &environment);
    answers_at_last(|| dictionary.get(&[0], &u64s([0])));
    let given = parts.given.load(SeqCst);
    parts.stops.store(true, SeqCst);
    // A load that does not begin in time is given up.
    await_that(|| {
        let code = dictionary.reload().unwrap_err().code();
        assert!([159, 510].contains(&code), "{code}");
        parts.given.load(SeqCst) == given + 1
    });
    parts.version.store(1, SeqCst);
    assert_eq!(dictionary.reload().unwrap_err().code(), 159);
    parts.stops.store(false, SeqCst);
    await_that(|| look_up(&dictionary, [0, 1]) == [Some(1), Some(1)]);
    assert_eq!(parts.given.load(SeqCst), given + 4, "no more loads than these two");
}

/// Queries may take what is left of the RAM: rows that are being loaded are none of theirs.
#[test]
fn rows_count_from_when_they_are_read_until_nobody_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let parts = Arc::new(Parts::default());
    let dictionary = parts.open(&sql("HASHED()", "0"), &environment);
    let held = || environment.totals.full_load_bytes();
    assert_eq!(held(), 0);
    look_up(&dictionary, [0]);
    let loaded = dictionary.status().bytes_allocated;
    assert!(held() == loaded && loaded > 0, "{} {loaded}", held());
    let read = dictionary.resident().unwrap();
    parts.stops.store(true, SeqCst);
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| dictionary.reload());
        await_that(|| held() > loaded);
        parts.stops.store(false, SeqCst);
        reload.join().unwrap().unwrap();
    });
    assert_eq!(held(), 2 * loaded, "the old rows are still read");
    drop(read);
    assert_eq!(held(), loaded);
    drop(dictionary);
    assert_eq!(held(), 0);
}

/// DROP and UNLOAD end a load, which would go on to the end of the table.
#[test]
fn a_load_ends_when_its_dictionary_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let given = Arc::new(AtomicU64::new(0));
    let factory = {
        let given = given.clone();
        Arc::new(move || Ok(Box::new(Endless(given.clone())) as Box<dyn Source>))
    };
    let dictionary =
        Dictionary::open_with_source(definition(&sql("HASHED()", "0")), &environment, factory).unwrap();
    std::thread::scope(|scope| {
        let lookup = scope.spawn(|| dictionary.get(&[0], &u64s([5])).map(drop));
        await_that(|| given.load(SeqCst) > 10);
        dictionary.close();
        assert!(lookup.join().unwrap().unwrap_err().message().contains("was not started"));
    });
    let ended = given.load(SeqCst);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(given.load(SeqCst), ended);
    let status = dictionary.status();
    assert_eq!((status.error_count, status.source_errors), (0, 0), "it is no failure of the source");
}

#[test]
fn half_a_load_is_never_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let parts = Arc::new(Parts::default());
    let dictionary = parts.open(&sql("HASHED()", "0"), &environment);
    parts.breaks.store(true, SeqCst);
    assert_eq!(dictionary.get(&[0], &u64s([0, 1])).unwrap_err().code(), 626);
    let status = dictionary.status();
    assert_eq!((status.state, status.element_count), (LoadState::Failed, 0));
    parts.breaks.store(false, SeqCst);
    clock.fetch_add(1000, SeqCst);
    assert_eq!(look_up(&dictionary, [0, 1]), [Some(0), Some(0)]);
    parts.breaks.store(true, SeqCst);
    parts.version.store(1, SeqCst);
    assert_eq!(dictionary.reload().unwrap_err().code(), 626);
    assert_eq!(look_up(&dictionary, [0, 1]), [Some(0), Some(0)], "all of the old ones");
    let status = dictionary.status();
    assert_eq!((status.state, status.element_count, status.error_count), (LoadState::Loaded, 2, 1));
    assert!(status.last_exception.contains("half of it"), "{}", status.last_exception);
}

#[test]
fn a_source_that_failed_is_left_alone_for_a_while_unless_somebody_reloads() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("HASHED()", "0"), &environment);
    fake.failing.store(1, SeqCst);
    for _ in 0..3 {
        let error = dictionary.get(&[0], &u64s([5])).unwrap_err();
        assert!(error.to_string().contains("the source is down"), "{error}");
    }
    assert_eq!(all_rows(&dictionary).unwrap_err().code(), 626);
    assert_eq!((fake.requests(), dictionary.status().state), (1, LoadState::Failed));
    clock.fetch_add(700, SeqCst);
    assert_eq!(dictionary.get(&[0], &u64s([5])).unwrap_err().code(), 626);
    assert_eq!(fake.requests(), 2);
    fake.failing.store(0, SeqCst);
    fake.close_gate();
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| dictionary.reload());
        fake.await_waiting(1);
        assert_eq!(dictionary.status().state, LoadState::FailedAndReloading);
        fake.open_gate();
        reload.join().unwrap().unwrap();
    });
    assert_eq!(look_up(&dictionary, [5]), [Some(50)]);
    assert_eq!(fake.requests(), 3);
}

#[test]
fn rows_are_loaded_anew_when_their_lifetime_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = Arc::new(fake.open(&sql("HASHED()", "MIN 100 MAX 100"), &environment));
    dictionary.watch();
    assert_eq!(look_up(&dictionary, [5]), [Some(50)]);
    fake.version.store(1, SeqCst);
    clock.fetch_add(99, SeqCst);
    // Longer than the watcher's pulse.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!((look_up(&dictionary, [5]), fake.requests()), ([Some(50)], 1));
    clock.fetch_add(1, SeqCst);
    await_that(|| look_up(&dictionary, [5]) == [Some(51)]);
    // A load that fails leaves the old rows, and is tried again.
    fake.failing.store(1, SeqCst);
    clock.fetch_add(100, SeqCst);
    await_that(|| dictionary.status().error_count == 1);
    assert_eq!(look_up(&dictionary, [5]), [Some(51)]);
    fake.version.store(2, SeqCst);
    fake.failing.store(0, SeqCst);
    clock.fetch_add(700, SeqCst);
    await_that(|| look_up(&dictionary, [5]) == [Some(52)]);
}

#[test]
fn single_keys_are_neither_forgotten_nor_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(&sql("HASHED()", "0"), &environment);
    for refused in [dictionary.invalidate(&u64s([5])), dictionary.refresh(&u64s([5])).map(drop)] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), 1);
        assert!(error.to_string().contains("SYSTEM RELOAD DICTIONARY"), "{error}");
    }
    assert_eq!(fake.requests(), 0);
}

fn await_that(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A source of two rows, 0 and 1, with its version as their value; read whole it gives them one by one, and stops
/// or breaks off between them when told.
#[derive(Default)]
struct Parts {
    version: AtomicU64,
    given: AtomicU64,
    stops: AtomicBool,
    breaks: AtomicBool,
}

impl Parts {
    fn open(self: &Arc<Self>, sql: &str, environment: &Environment) -> Dictionary {
        let parts = self.clone();
        let factory = Arc::new(move || Ok(Box::new(Reading(parts.clone())) as Box<dyn Source>));
        Dictionary::open_with_source(definition(sql), environment, factory).unwrap()
    }
}

struct Reading(Arc<Parts>);

impl Source for Reading {
    fn load(&mut self, _keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        panic!("nobody asks for keys")
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        let version = self.0.version.load(SeqCst);
        for id in 0..2 {
            sink(batch(vec![u64s([id]).remove(0), u64s([version]).remove(0)]))?;
            self.0.given.fetch_add(1, SeqCst);
            if self.0.breaks.load(SeqCst) {
                return Err(DictError::new(Code::SqliteEngineError, "half of it is missing"));
            }
            await_that(|| !self.0.stops.load(SeqCst));
        }
        Ok(())
    }
}

/// A source that gives one row again and again, and counts.
struct Endless(Arc<AtomicU64>);

impl Source for Endless {
    fn load(&mut self, _keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        panic!("nobody asks for keys")
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        loop {
            sink(batch(vec![u64s([7]).remove(0), u64s([7]).remove(0)]))?;
            self.0.fetch_add(1, SeqCst);
        }
    }
}
