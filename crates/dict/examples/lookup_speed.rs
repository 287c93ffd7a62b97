//! What a lookup costs above the cache itself: `cargo run --release -p granary-dict --example lookup_speed`,
//! with another LAYOUT as its argument if wanted, such as
//! `"SSD_CACHE(PATH 'c' FILE_SIZE 1073741824 WRITE_BUFFER_SIZE 1048576)"`, and another number of keys a batch.
//! Prints nanoseconds a key for batches of hits, through the dictionary and from the bare cache.

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use granary_cache::{Cache, Entry, Io, Key, Options};
use granary_dict::{DictError, Dictionary, Environment, Source, Take, parse_create};
use std::sync::Arc;
use std::time::Instant;

const KEYS: u64 = 300_000;
const BATCHES: u64 = 16;
const ROUNDS: usize = 12;

struct Any;

impl Source for Any {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let rows = keys[0].len();
        let schema = Schema::new(vec![
            Field::new("id", DataType::UInt64, true),
            Field::new("n", DataType::UInt64, true),
            Field::new("s", DataType::Utf8, true),
        ]);
        let text = StringArray::from_iter_values((0..rows).map(|_| "testtesttest"));
        Ok(vec![
            RecordBatch::try_new(Arc::new(schema), vec![keys[0].clone(), keys[0].clone(), Arc::new(text)])
                .expect("three columns of one length"),
        ])
    }

    fn load_all(&mut self, _take: &mut Take<'_>) -> Result<(), DictError> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = std::env::args().nth(1).unwrap_or("CACHE(SIZE_IN_CELLS 4194304)".into());
    let folder = std::env::temp_dir().join(format!("granary-lookup-speed-{}", std::process::id()));
    let definition = parse_create(&format!(
        "CREATE DICTIONARY d (id UInt64, n UInt64, s String) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
         LAYOUT({layout}) LIFETIME(0)",
    ))?
    .definition;
    let environment = Environment::new(&folder);
    let dictionary = Dictionary::open_with_source(definition, &environment, Arc::new(|| Ok(Box::new(Any))))?;
    let rows: u64 = std::env::args().nth(2).map_or(Ok(65_536), |rows| rows.parse())?;
    // Keys at random; the cache is filled in their order.
    let random = |i: u64| (i + 123).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31) % KEYS;
    let array =
        |keys: &mut dyn Iterator<Item = u64>| Arc::new(UInt64Array::from_iter_values(keys)) as ArrayRef;
    let batches: Vec<ArrayRef> =
        (0..BATCHES).map(|batch| array(&mut (batch * rows..(batch + 1) * rows).map(random))).collect();
    let all = array(&mut (0..KEYS));
    let time = |what: &str, count: usize, mut run: Box<dyn FnMut(&ArrayRef) + '_>| {
        let mut best = f64::INFINITY;
        for _ in 0..count {
            let start = Instant::now();
            batches.iter().for_each(&mut run);
            best = best.min(start.elapsed().as_nanos() as f64 / (BATCHES * rows) as f64);
        }
        println!("{what:<28} {best:>8.1} ns a key");
    };
    let get = |attributes: &'static [usize]| {
        let dictionary = &dictionary;
        Box::new(move |keys: &ArrayRef| {
            let answer = dictionary.get(attributes, std::slice::from_ref(keys)).expect("every key is there");
            assert_eq!(answer.found.true_count() as u64, rows);
        })
    };
    let start = Instant::now();
    dictionary.get(&[0], &[all])?;
    println!("{:<28} {:>8.1} ns a key", "fill", start.elapsed().as_nanos() as f64 / KEYS as f64);
    time("dictHas", ROUNDS, get(&[]));
    time("dictGetUInt64", ROUNDS, get(&[0]));
    time("dictGetString", ROUNDS, get(&[1]));
    time("dictGet both", ROUNDS, get(&[0, 1]));

    let cache =
        Cache::open(Options { memory_bytes: u64::MAX, memory_entries: Some(4 << 20), ..Options::default() })?;
    let mut value = 7u64.to_le_bytes().to_vec();
    value.extend_from_slice(b"\x0ctesttesttest");
    for key in 0..KEYS {
        cache.put_many(&[Entry { key: cache.key(&key.to_le_bytes()), value: Some(&value), expires_at: 0 }]);
    }
    let mut io = Io::new();
    let mut sum = 0;
    time(
        "cache alone",
        ROUNDS,
        Box::new(|keys| {
            let data = keys.to_data();
            let bytes = data.buffers()[0].as_slice();
            let keys: Vec<Key<'_>> = bytes.chunks_exact(8).map(|key| cache.key(key)).collect();
            cache.get_many(&mut io, &keys, 1, |i, _| sum += i);
        }),
    );
    println!("({sum})");
    drop(dictionary);
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}
