//! Entries that are forgotten or asked for anew while requests are under way: each interleaving is forced.

mod common;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::UInt64Type;
use common::*;
use granary_dict::{
    BatchSink, Changes, Code, DictError, Dictionary, Environment, NewestChange, Source, SourceFactory,
};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const CACHE: &str = "CREATE DICTIONARY d (id UInt64, v UInt64 DEFAULT 77) PRIMARY KEY id \
     SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT(CACHE(SIZE_IN_CELLS 1000)) LIFETIME(MIN 100 MAX 200)";

fn value(dictionary: &Dictionary, key: u64) -> u64 {
    values(&dictionary.get(&[0], &u64s([key])).unwrap().columns[0])[0]
}

/// SYSTEM REFRESH DICTIONARY of one key, while another key is invalidated: the row that the refresh got must be shown.
#[test]
fn a_refresh_that_succeeds_is_kept_whatever_else_is_forgotten_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let dictionary = fake.open(CACHE, &environment);
    assert_eq!(value(&dictionary, 1), 10);
    fake.version.store(5, SeqCst);
    fake.close_gate();
    std::thread::scope(|scope| {
        let refresh = scope.spawn(|| dictionary.refresh(&u64s([1])).unwrap());
        fake.await_waiting(1);
        dictionary.invalidate(&u64s([2])).unwrap();
        fake.open_gate();
        assert_eq!(refresh.join().unwrap(), 1, "the source has the key");
    });
    assert_eq!(value(&dictionary, 1), 15, "the row before the refresh is shown after it");
}

/// `found_rate` is of the keys that lookups ask for: a refresh asks the source for keys that no lookup did.
#[test]
fn a_refresh_is_no_lookup_to_the_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let dictionary = Arc::new(Fake::default()).open(CACHE, &environment);
    for _ in 0..3 {
        assert_eq!(dictionary.refresh(&u64s([1, 2])).unwrap(), 2);
    }
    value(&dictionary, 1);
    value(&dictionary, 3);
    let status = dictionary.status();
    assert_eq!((status.keys_requested, status.keys_hit, status.keys_found_at_source), (2, 1, 1));
    assert_eq!((status.source_keys, status.found_rate), (7, 1.0));
}

/// A source with UPDATE_FIELD: a number `at`.
#[derive(Default)]
struct Feed {
    /// By id: v, at.
    rows: Mutex<BTreeMap<u64, (u64, u64)>>,
    lag: u64,
    /// Lookups so far, and which of them fails; the first is 1.
    lookups: AtomicU64,
    failing: AtomicU64,
    /// Lookups wait, after they have read.
    closed: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Feed {
    fn factory(self: &Arc<Self>) -> SourceFactory {
        let feed = self.clone();
        Arc::new(move || Ok(Box::new(Reader(feed.clone()))))
    }

    fn write(&self, id: u64, v: u64, at: u64) {
        self.rows.lock().unwrap().insert(id, (v, at));
    }

    fn close(&self) {
        self.closed.lock().unwrap().0 = true;
    }

    fn open(&self) {
        self.closed.lock().unwrap().0 = false;
        self.changed.notify_all();
    }

    fn await_waiting(&self, lookups: usize) {
        let gate = self.closed.lock().unwrap();
        let limit = Duration::from_secs(60);
        let (gate, _) = self.changed.wait_timeout_while(gate, limit, |gate| gate.1 < lookups).unwrap();
        assert!(gate.1 >= lookups, "only {} lookups came", gate.1);
    }
}

struct Reader(Arc<Feed>);

impl Source for Reader {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let asked = keys[0].as_primitive::<UInt64Type>().values().to_vec();
        let lookup = self.0.lookups.fetch_add(1, SeqCst) + 1;
        let found: Vec<(u64, u64)> = {
            let rows = self.0.rows.lock().unwrap();
            asked.iter().filter_map(|id| Some((*id, rows.get(id)?.0))).collect()
        };
        let mut gate = self.0.closed.lock().unwrap();
        gate.1 += 1;
        self.0.changed.notify_all();
        gate = self.0.changed.wait_while(gate, |gate| gate.0).unwrap();
        gate.1 -= 1;
        drop(gate);
        if self.0.failing.load(SeqCst) == lookup {
            return Err(DictError::new(Code::NetworkError, "the source is down"));
        }
        let (ids, values): (Vec<u64>, Vec<u64>) = found.into_iter().unzip();
        Ok(vec![batch(vec![Arc::new(UInt64Array::from(ids)), Arc::new(UInt64Array::from(values))])])
    }

    fn load_all(&mut self, _sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        unreachable!()
    }

    fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
        let rows = self.0.rows.lock().unwrap();
        let latest = rows.values().map(|row| row.1).max();
        let since = watermark.map_or(0, |watermark| watermark.parse().unwrap());
        let count = rows.values().filter(|row| row.1 >= since).count();
        let next = latest.map(|latest| (latest - self.0.lag).to_string());
        Ok(NewestChange {
            latest: latest.map(|l| l.to_string()),
            count: Some(count.to_string()),
            next,
            ..NewestChange::default()
        })
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        let since: u64 = watermark.parse().unwrap();
        let rows = self.0.rows.lock().unwrap();
        Ok(Changes::Keys(u64s(rows.iter().filter(|(_, row)| row.1 >= since).map(|(id, _)| *id))))
    }
}

/// Two refreshes of one key: the first brings the row, and the second, which is not to get an older one, fails. Both
/// tell the truth, so what was known before the first cannot stay.
#[test]
fn a_refresh_is_not_undone_by_a_later_one_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let feed = Arc::new(Feed::default());
    feed.write(1, 10, 0);
    let (environment, clock) = manual_environment(folder.path());
    let environment = Environment { backoff_base_seconds: 0, ..environment };
    let dictionary = Dictionary::open_with_source(definition(CACHE), &environment, feed.factory()).unwrap();
    assert_eq!(value(&dictionary, 1), 10);
    feed.write(1, 11, 0);
    feed.failing.store(3, SeqCst);
    feed.close();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| dictionary.refresh(&u64s([1])));
        feed.await_waiting(1);
        let second = scope.spawn(|| dictionary.refresh(&u64s([1])));
        feed.await_waiting(2);
        feed.open();
        assert_eq!(first.join().unwrap().unwrap(), 1);
        second.join().unwrap().unwrap_err();
    });
    clock.fetch_add(3, SeqCst);
    assert_eq!(value(&dictionary, 1), 11);
}

fn watched(feed: &Arc<Feed>, folder: &std::path::Path, lag: u64) -> Dictionary {
    let sql = format!(
        "CREATE DICTIONARY d (id UInt64, v UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't' \
         UPDATE_FIELD 'at' UPDATE_LAG {lag})) LAYOUT(CACHE(SIZE_IN_CELLS 1000)) LIFETIME(MIN 100 MAX 200)"
    );
    let (environment, _) = manual_environment(folder);
    Dictionary::open_with_source(definition(&sql), &environment, feed.factory()).unwrap()
}

/// UPDATE_FIELD asks anew for a changed row, while another key is invalidated: the change must be taken in before the
/// watermark goes on.
#[test]
fn a_change_is_taken_in_whatever_else_is_forgotten_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let feed = Arc::new(Feed::default());
    feed.write(1, 10, 100);
    feed.write(2, 20, 100);
    let dictionary = watched(&feed, folder.path(), 0);
    dictionary.take_updates().unwrap();
    assert_eq!((value(&dictionary, 1), value(&dictionary, 2)), (10, 20));
    feed.write(1, 11, 200);
    feed.write(3, 30, 300);
    feed.close();
    std::thread::scope(|scope| {
        let look = scope.spawn(|| dictionary.take_updates().unwrap());
        feed.await_waiting(1);
        dictionary.invalidate(&u64s([2])).unwrap();
        feed.open();
        look.join().unwrap();
    });
    for _ in 0..5 {
        dictionary.take_updates().unwrap();
    }
    assert_eq!(value(&dictionary, 1), 11, "a change that was seen, and counted as taken in, is not shown");
}

/// A cache loses sight of an entry while its block cannot be read. A change that comes then finds nothing to ask anew
/// for; at the next start the block can be read again, and the row before the change must not be shown.
#[test]
fn a_change_of_a_row_that_the_cache_lost_sight_of_is_taken_in_too() {
    let folder = tempfile::tempdir().unwrap();
    let feed = Arc::new(Feed::default());
    feed.write(1, 0x1122_3344_5566, 100);
    let sql = "CREATE DICTIONARY d (id UInt64, v UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't' UPDATE_FIELD 'at' \
         UPDATE_LAG 0)) LAYOUT(SSD_CACHE(PATH 'd' FILE_SIZE 1048576 WRITE_BUFFER_SIZE 65536 MEMORY_CACHE_SIZE 0)) \
         LIFETIME(MIN 100 MAX 200)";
    let open = || {
        let (environment, _) = manual_environment(folder.path());
        Dictionary::open_with_source(definition(sql), &environment, feed.factory()).unwrap()
    };
    let first = open();
    first.take_updates().unwrap();
    assert_eq!(value(&first, 1), 0x1122_3344_5566);
    drop(first);

    let data = folder.path().join("user_files/d.bin");
    let bytes = std::fs::read(&data).unwrap();
    let row = 0x1122_3344_5566u64.to_le_bytes();
    let at = bytes.windows(8).position(|bytes| bytes == row).expect("the row is on flash") as u64;
    let write = |byte: u8| {
        let file = std::fs::OpenOptions::new().write(true).open(&data).unwrap();
        file.write_all_at(&[byte], at).unwrap();
        file.sync_all().unwrap();
    };
    let second = open();
    write(!row[0]);
    feed.write(1, 11, 200);
    second.take_updates().unwrap();
    write(row[0]);
    drop(second);

    assert_eq!(value(&open(), 1), 11, "the row before a change that was taken in");
}

/// Asking anew for changed rows may take long: a row committed meanwhile, within the lag, must be found by a later
/// look.
#[test]
fn the_lag_is_over_when_changes_were_read_after_it_not_when_they_were_fetched_after_it() {
    let shown = (0..20).find_map(|_| value_changed_within_the_lag());
    let shown = shown.expect("a try in which the machine does not stand still");
    assert_eq!(shown, 11, "it was committed within the lag");
}

/// The value that a lookup gives after the change was renewed; `None`: the change came after the lag had ended.
fn value_changed_within_the_lag() -> Option<u64> {
    let folder = tempfile::tempdir().unwrap();
    let feed = Arc::new(Feed { lag: 2, ..Feed::default() });
    feed.write(1, 10, 99);
    feed.write(2, 20, 101);
    let dictionary = watched(&feed, folder.path(), 2);
    let begun = Instant::now();
    dictionary.take_updates().unwrap();
    assert_eq!((value(&dictionary, 1), value(&dictionary, 2)), (10, 20));
    dictionary.take_updates().unwrap();
    feed.close();
    let is_within_the_lag = std::thread::scope(|scope| {
        let look = scope.spawn(|| dictionary.take_updates().unwrap());
        feed.await_waiting(1);
        // The source is slow. A transaction that said 100 is committed less than a second after 101 was seen.
        feed.write(1, 11, 100);
        let is_within_the_lag = begun.elapsed() < Duration::from_secs(1);
        std::thread::sleep(Duration::from_millis(2300));
        feed.open();
        look.join().unwrap();
        is_within_the_lag
    });
    for _ in 0..5 {
        dictionary.take_updates().unwrap();
    }
    is_within_the_lag.then(|| value(&dictionary, 1))
}
