//! Rows that are kept compressed are the source's, before and after a dictionary is trained, and after a restart.

mod common;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use common::*;
use granary_dict::{BatchSink, DictError, Dictionary, Source, SourceFactory};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const KEYS: u64 = 40_000;
const BATCH: u64 = 1000;

/// Texts that share most of their content; it has all keys, and counts those that it is asked for.
struct Alike(Arc<AtomicUsize>);

fn text(id: u64) -> String {
    let city = ["Oslo", "Roma", "Lima", "Kyiv"][id as usize % 4];
    format!(
        "{{\"id\":{id},\"kind\":\"customer\",\"city\":\"{city}\",\"street\":\"Long Street {}\",\"state\":\"active and verified\"}}",
        id * 7919 % 1000
    )
}

impl Source for Alike {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let ids = values(&keys[0]);
        self.0.fetch_add(ids.len(), SeqCst);
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(ids.iter().map(|id| text(*id))));
        Ok(vec![batch(vec![u64s(ids).remove(0), texts])])
    }

    fn load_all(&mut self, _: &mut BatchSink<'_>) -> Result<(), DictError> {
        unreachable!("nobody reads it whole")
    }
}

fn open(folder: &Path, layout: &str, asked: &Arc<AtomicUsize>) -> Dictionary {
    let (environment, _) = manual_environment(folder);
    let asked = Arc::clone(asked);
    let factory: SourceFactory = Arc::new(move || Ok(Box::new(Alike(Arc::clone(&asked))) as Box<dyn Source>));
    let sql = format!(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT({layout}) LIFETIME(1000)"
    );
    Dictionary::open_with_source(definition(&sql), &environment, factory).unwrap()
}

fn check(dictionary: &Dictionary) {
    for first in (0..KEYS).step_by(BATCH as usize) {
        let ids = first..first + BATCH;
        let found = dictionary.get(&[0], &u64s(ids.clone())).unwrap();
        assert!(texts(&found.columns[0]).into_iter().eq(ids.map(text)), "from {first} on");
    }
}

#[test]
fn rows_are_those_of_the_source() {
    for layout in
        ["CACHE(SIZE_IN_CELLS 100000", "SSD_CACHE(PATH 'd' FILE_SIZE 67108864 WRITE_BUFFER_SIZE 1048576"]
    {
        for compression in ["zstd", "lz4"] {
            let layout = format!("{layout} COMPRESSION '{compression}')");
            let folder = tempfile::tempdir().unwrap();
            let asked = Arc::default();
            let dictionary = open(folder.path(), &layout, &asked);
            check(&dictionary);
            let until = Instant::now() + Duration::from_secs(60);
            while dictionary.status().compression_versions == 0 {
                assert!(Instant::now() < until, "{layout}: no dictionary is trained");
                std::thread::sleep(Duration::from_millis(10));
            }
            // Rows compressed without a trained dictionary, and then with it.
            check(&dictionary);
            dictionary.invalidate(&u64s(0..KEYS)).unwrap();
            check(&dictionary);
            let ratio = dictionary.status().compression_ratio;
            assert!(ratio > 1.5, "{layout}: {ratio}");
            if layout.starts_with("SSD") {
                drop(dictionary);
                let before = asked.load(SeqCst);
                let dictionary = open(folder.path(), &layout, &asked);
                check(&dictionary);
                let again = asked.load(SeqCst) - before;
                // Keys that look alike take each other's places.
                assert!(again < KEYS as usize / 100, "{layout}: {again} keys are asked for again");
            }
        }
    }
}
