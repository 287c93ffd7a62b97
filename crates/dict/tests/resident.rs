//! All rows of a dictionary, a batch at a time.

mod common;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use common::*;
use granary_dict::limits::{LOOKUPS_WAITING_MAX, RESIDENT_BATCH_BYTES, RESIDENT_BATCH_ROWS};
use granary_dict::{BatchSink, Code, DictError, Dictionary, Source, WaitLimit};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

fn sql(layout: &str) -> String {
    let lifetime = if layout.starts_with("DIRECT") { "" } else { "LIFETIME(1000)" };
    format!(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT({layout}) {lifetime}"
    )
}

/// Has all keys; read whole it gives `batches` batches of one row each, and then fails.
struct Many {
    batches: usize,
    given: Arc<AtomicUsize>,
}

fn rows(ids: Vec<u64>) -> RecordBatch {
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(ids.iter().map(|id| format!("{id:0100}"))));
    batch(vec![u64s(ids).remove(0), values])
}

impl Source for Many {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        Ok(vec![rows(values(&keys[0]))])
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        for id in 0..self.batches {
            self.given.fetch_add(1, SeqCst);
            sink(rows(vec![id as u64]))?;
        }
        Err(DictError::new(Code::SqliteEngineError, "the last is missing"))
    }
}

fn open(layout: &str, batches: usize) -> (Dictionary, Arc<AtomicUsize>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let given = Arc::new(AtomicUsize::new(0));
    let of_source = given.clone();
    let factory =
        Arc::new(move || Ok(Box::new(Many { batches, given: of_source.clone() }) as Box<dyn Source>));
    let dictionary = Dictionary::open_with_source(definition(&sql(layout)), &environment, factory).unwrap();
    (dictionary, given, folder)
}

#[test]
fn what_is_cached_comes_in_batches_of_bounded_size() {
    for layout in [
        "CACHE(SIZE_IN_CELLS 1000000)",
        "SSD_CACHE(PATH 'd' FILE_SIZE 67108864 WRITE_BUFFER_SIZE 16777216 MEMORY_CACHE_SIZE 1000000)",
    ] {
        let (dictionary, _, _folder) = open(layout, 0);
        (0..3)
            .for_each(|part| drop(dictionary.get(&[0], &u64s(part * 60_000..(part + 1) * 60_000)).unwrap()));
        let mut ids = Vec::new();
        let mut largest = 0;
        for batch in dictionary.resident().unwrap() {
            let batch = batch.unwrap();
            assert!(batch.num_rows() > 0);
            largest = largest.max(batch.num_rows());
            ids.extend(values(batch.column(0)));
        }
        // A row takes some 120 bytes in the cache, a step of which is a mebibyte.
        let most = RESIDENT_BATCH_ROWS + (1 << 20) / 110;
        assert!(largest <= most && largest * 108 < RESIDENT_BATCH_BYTES + (1 << 20), "{layout}: {largest}");
        ids.sort_unstable();
        let status = dictionary.status();
        assert!(ids.is_sorted_by(|a, b| a < b), "{layout}: no row comes twice");
        // Keys that look alike in the index may have taken each other's places.
        assert_eq!(ids.len() as u64, status.element_count, "{layout}");
        assert!(ids.len() > 179_000, "{layout}: {} rows", ids.len());
    }
}

#[test]
fn a_source_is_read_no_faster_than_its_rows_are_taken() {
    let (dictionary, given, _folder) = open("DIRECT(MAX_THREADS_FOR_UPDATES 1)", 1000);
    let mut rows = dictionary.resident().unwrap();
    for taken in 1..=20 {
        assert_eq!(rows.next().unwrap().unwrap().num_rows(), 1);
        assert!(given.load(SeqCst) <= taken + 2, "{} given, {taken} taken", given.load(SeqCst));
    }
    // A slow reader holds up no lookup, although there is one thread for them.
    assert_eq!(texts(&dictionary.get(&[0], &u64s([7])).unwrap().columns[0]), [format!("{:0100}", 7)]);
    drop(rows);
    let again = all_rows(&dictionary);
    assert_eq!(again.err().map(|error| error.code()), Some(626), "the one before has made room");
    assert!(given.load(SeqCst) <= 22 + 1000, "and took no more rows");
    assert_eq!(dictionary.status().source_errors, 1, "that nobody wanted more was no failure");
}

/// Rows that come slowly.
struct Slow(Arc<AtomicUsize>);

impl Source for Slow {
    fn load(&mut self, _keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        panic!("nobody asks for keys")
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        self.0.fetch_add(1, SeqCst);
        (0..5).try_for_each(|id| {
            std::thread::sleep(Duration::from_millis(30));
            sink(rows(vec![id]))
        })
    }
}

/// Calls `then` while `count` lookups wait.
fn while_waiting(waiting: &WaitLimit, count: usize, then: &mut dyn FnMut()) {
    match count {
        0 => then(),
        _ => waiting.wait(|| while_waiting(waiting, count - 1, then)).expect("a place to wait at"),
    }
}

#[test]
fn a_read_that_has_begun_goes_on_where_all_places_are_taken_and_another_one_does_not_begin() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let begun = Arc::new(AtomicUsize::new(0));
    let factory = {
        let begun = begun.clone();
        Arc::new(move || Ok(Box::new(Slow(begun.clone())) as Box<dyn Source>))
    };
    let dictionary =
        Dictionary::open_with_source(definition(&sql("DIRECT()")), &environment, factory).unwrap();
    let mut read = dictionary.resident().unwrap();
    assert_eq!(read.next().unwrap().unwrap().num_rows(), 1);
    while_waiting(&environment.waiting, LOOKUPS_WAITING_MAX, &mut || {
        assert_eq!(dictionary.resident().map(drop).unwrap_err().code(), 159);
        assert_eq!(read.by_ref().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 4);
    });
    assert_eq!(begun.load(SeqCst), 1);
    assert_eq!(all_rows(&dictionary).unwrap().num_rows(), 5, "places are given back");
}

#[test]
fn an_error_is_the_last_of_the_batches() {
    let (dictionary, _, _folder) = open("DIRECT()", 5);
    let mut rows = dictionary.resident().unwrap();
    assert_eq!(rows.by_ref().take_while(Result::is_ok).count(), 5);
    assert!(rows.next().is_none());
}

#[test]
fn a_dictionary_may_go_while_its_rows_are_read() {
    let (dictionary, _, _folder) = open("CACHE(SIZE_IN_CELLS 1000000)", 0);
    dictionary.get(&[], &u64s(0..50_000)).unwrap();
    let mut rows = dictionary.resident().unwrap();
    let first = rows.next().unwrap().unwrap().num_rows();
    drop(dictionary);
    assert_eq!(first + rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 50_000);
}
