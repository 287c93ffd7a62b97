//! Helpers of the integration tests.
#![allow(dead_code, reason = "each test file uses a part of it")]

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, UInt64Array};
use arrow::datatypes::UInt64Type;
use arrow::datatypes::{Field, Schema};
use granary_dict::{
    BatchSink, Clock, Code, DataType, Definition, DictError, Dictionary, Environment, Source, SourceFactory,
    parse_create,
};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub fn definition(sql: &str) -> Definition {
    parse_create(sql).unwrap_or_else(|e| panic!("{e}\n{sql}")).definition
}

pub fn u64s(keys: impl IntoIterator<Item = u64>) -> Vec<ArrayRef> {
    vec![Arc::new(UInt64Array::from_iter_values(keys))]
}

pub fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// A UInt64 column's values.
pub fn values(array: &ArrayRef) -> Vec<u64> {
    array.as_primitive::<UInt64Type>().values().to_vec()
}

/// A String column's values.
pub fn texts(array: &ArrayRef) -> Vec<String> {
    array.as_string::<i32>().iter().map(|text| text.unwrap_or("NULL").to_string()).collect()
}

/// Whether the attributes of a row equal these texts, each in its type.
pub fn shows(dictionary: &Dictionary, key: &[ArrayRef], attributes: &[&str]) {
    let all: Vec<usize> = (0..attributes.len()).collect();
    let answer = dictionary.get(&all, key).unwrap();
    for ((column, text), attribute) in
        answer.columns.iter().zip(attributes).zip(&dictionary.definition().structure.attributes)
    {
        let expected = of_text(&attribute.data_type, text);
        assert_eq!(column, &expected, "{} {}", attribute.name, attribute.data_type);
    }
}

/// Columns of a database's table of hosts, which has one.
pub const HOSTS_BY_ADDRESS: &str = "ip IPv4, seen DateTime64(6), id UInt32";

/// Whether it is found by its address and the moment.
pub fn shows_the_host(by_address: &Dictionary) {
    let seen = DataType::parse("DateTime64(6)").unwrap();
    let key = [of_text(&DataType::Ipv4, "10.0.0.1"), of_text(&seen, "2024-02-29 09:00:00.123456")];
    shows(by_address, &key, &["1"]);
}

/// A column of one value.
pub fn of_text(data_type: &DataType, text: &str) -> ArrayRef {
    data_type.adopt(&strings(&[text])).unwrap()
}

pub fn found(array: &arrow::array::BooleanArray) -> Vec<bool> {
    array.iter().map(|flag| flag.unwrap()).collect()
}

/// Everything that a dictionary has.
pub fn all_rows(dictionary: &Dictionary) -> Result<RecordBatch, DictError> {
    let schema = dictionary.definition().structure.schema();
    let batches = dictionary.resident()?.collect::<Result<Vec<_>, _>>()?;
    Ok(arrow::compute::concat_batches(&schema, &batches).unwrap())
}

/// Reads a DIRECT dictionary of many rows in batches, and only some of them; lookups go on.
pub fn reads_whole_in_batches(direct: &Dictionary) {
    let largest = granary_dict::limits::RESIDENT_BATCH_ROWS;
    for batch in direct.resident().unwrap().take(3) {
        assert!((1..=largest + largest / 2).contains(&batch.unwrap().num_rows()));
    }
    assert!(found(&direct.has(&u64s([1])).unwrap())[0]);
    assert_eq!(direct.status().source_errors, 0);
}

/// A clock that tests set.
pub fn manual_environment(folder: &Path) -> (Environment, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(1_700_000_000));
    let environment = Environment { clock: Clock::Manual(seconds.clone()), ..Environment::new(folder) };
    (environment, seconds)
}

/// A DIRECT dictionary, opened again where answers have 5000 bytes at most, of keys whose rows have more: they are
/// refused, and rows that are handed over in batches are not.
pub fn long_answers_are_refused(direct: &Dictionary, keys: impl Iterator<Item = u64>) {
    let sql = direct.definition().to_sql_with_secrets();
    let environment = Environment { answer_bytes_max: 5_000, ..Environment::new(std::env::temp_dir()) };
    let bounded = Dictionary::open(definition(&sql), &environment).unwrap();
    let keys = u64s(keys.collect::<Vec<_>>());
    assert!(direct.get(&[0], &keys).is_ok());
    let error = bounded.get(&[0], &keys).unwrap_err();
    assert!(error.message().contains("an answer of more than 5000 bytes"), "{error}");
    assert!(bounded.get(&[0], &[keys[0].slice(0, 10)]).is_ok());
    let error = all_rows(&bounded).unwrap_err();
    assert!(error.message().contains("an answer of more than 5000 bytes"), "whole: {error}");
}

/// A DIRECT dictionary of an attribute of 100 bytes, opened where answers have 5000 bytes at most: an answer of 100
/// rows is refused.
pub fn an_answer_read_whole_is_bounded(open: impl Fn(&Environment) -> Dictionary, environment: Environment) {
    let keys = u64s(1..=100);
    assert_eq!(open(&environment).has(&keys).unwrap().true_count(), 100);
    let bounded = open(&Environment { answer_bytes_max: 5_000, ..environment });
    assert_eq!(bounded.get(&[0], &u64s(1..=10)).unwrap().found.true_count(), 10);
    let error = bounded.get(&[0], &keys).unwrap_err();
    assert!(error.message().contains("an answer of more than 5000 bytes"), "{error}");
}

/// Asks until a source that was down answers, half an hour and more between two tries. A request that was under
/// way in the outage may still fail first.
pub fn comes_back<T>(clock: &AtomicU64, ask: impl Fn() -> Result<T, DictError>) -> T {
    answers_at_last(|| {
        clock.fetch_add(2000, Ordering::SeqCst);
        ask()
    })
}

/// Asks until there is an answer. A request that takes too long to begin or to connect is made again.
pub fn answers_at_last<T>(ask: impl Fn() -> Result<T, DictError>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(e) => assert!(Instant::now() < deadline, "still down: {e}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until it holds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A dictionary of `users`, with one connection to a server that ends those that are idle for 5 seconds: each request
/// is made over a new one.
pub fn makes_connections_anew(open: impl Fn() -> Dictionary) {
    // The server ends a connection also if no request comes over it at first.
    until("each request is made over a connection that is not ended", || {
        let dictionary = open();
        let answers = [(1, 6), (2, 0)].map(|(id, idle)| {
            let answer = dictionary.get(&[0], &u64s([id]));
            std::thread::sleep(Duration::from_secs(idle));
            answer.map(|answer| texts(&answer.columns[0]))
        });
        let status = dictionary.status();
        if status.source_errors > 0 {
            return false;
        }
        assert_eq!(answers, [1, 2].map(|id| Ok(vec![format!("user {id}")])));
        assert_eq!(status.source_requests, 2);
        true
    });
}

/// Why a request to a source that does not answer has failed. Its lookup is told only that the time is over. A request
/// that does not begin in that time is not made at all; then another key is asked for.
pub fn gives_up(dictionary: &Dictionary) -> String {
    let wait = Duration::from_millis(dictionary.definition().layout.update.query_wait_timeout_ms);
    let ask = |key| {
        let began = Instant::now();
        (dictionary.has(&u64s([key])).unwrap_err().code(), began.elapsed())
    };
    // Keys that are not cached.
    let mut key = 1001;
    let (code, took) = ask(key);
    // The source is given up later. A lookup that is woken later still is told of that.
    assert!(code == 159 || code == 510 && took > wait * 3 / 2, "{code} after {took:?}");
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let status = dictionary.status();
        if status.error_count > 0 {
            return status.last_exception;
        }
        assert!(Instant::now() < deadline, "it waits on");
        key += 1;
        // The failure may come in between, after which the source is left alone.
        let (code, _) = ask(key);
        assert!([159, 510].contains(&code), "{code}");
    }
}

/// A source that has every key but those divisible by 10, with `value = key * 10 + version`; it counts what
/// it is asked, and fails or waits when told.
#[derive(Default)]
pub struct Fake {
    pub requests: AtomicU64,
    pub keys: AtomicU64,
    pub version: AtomicU64,
    pub failing: AtomicU64,
    /// A key whose row cannot be read; 0: none.
    pub bad: AtomicU64,
    pub largest: AtomicU64,
    pub connections: AtomicU64,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Default)]
struct Gate {
    closed: bool,
    waiting: usize,
    most: usize,
}

impl Fake {
    pub fn factory(self: &Arc<Self>) -> SourceFactory {
        let fake = self.clone();
        Arc::new(move || {
            fake.connections.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(Connection(fake.clone())))
        })
    }

    pub fn open(self: &Arc<Self>, sql: &str, environment: &Environment) -> Dictionary {
        Dictionary::open_with_source(definition(sql), environment, self.factory()).unwrap()
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::SeqCst)
    }

    /// From now on requests wait at the gate.
    pub fn close_gate(&self) {
        self.gate.lock().unwrap().closed = true;
    }

    pub fn open_gate(&self) {
        self.gate.lock().unwrap().closed = false;
        self.changed.notify_all();
    }

    /// Waits until `count` requests wait at the gate.
    pub fn await_waiting(&self, count: usize) {
        let gate = self.gate.lock().unwrap();
        let limit = Duration::from_secs(60);
        let (gate, _) = self.changed.wait_timeout_while(gate, limit, |gate| gate.waiting < count).unwrap();
        assert!(gate.waiting >= count, "only {} requests came", gate.waiting);
    }

    /// The most requests that were at the gate at once.
    pub fn most_at_once(&self) -> usize {
        self.gate.lock().unwrap().most
    }

    fn pass_gate(&self) {
        let mut gate = self.gate.lock().unwrap();
        gate.waiting += 1;
        gate.most = gate.most.max(gate.waiting);
        self.changed.notify_all();
        while gate.closed {
            gate = self.changed.wait(gate).unwrap();
        }
        gate.waiting -= 1;
    }
}

struct Connection(Arc<Fake>);

impl Source for Connection {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let fake = &self.0;
        fake.requests.fetch_add(1, Ordering::SeqCst);
        fake.keys.fetch_add(keys[0].len() as u64, Ordering::SeqCst);
        fake.largest.fetch_max(keys[0].len() as u64, Ordering::SeqCst);
        fake.pass_gate();
        match fake.failing.load(Ordering::SeqCst) {
            0 => {}
            1 => return Err(DictError::new(Code::SqliteEngineError, "the source is down")),
            _ => panic!("a bug in the client"),
        }
        let asked = keys[0].as_primitive::<UInt64Type>();
        let bad = fake.bad.load(Ordering::SeqCst);
        if bad > 0 && asked.values().contains(&bad) {
            return Err(DictError::new(Code::CannotParseNumber, format!("the row of {bad} is bad")));
        }
        let mut ids: Vec<u64> = asked.values().iter().copied().filter(|key| key % 10 != 0).collect();
        ids.reverse();
        // A row that was not asked for, and one that a later row of the same key replaces.
        ids.insert(0, u64::MAX);
        let version = fake.version.load(Ordering::SeqCst);
        let mut values: Vec<u64> = ids.iter().map(|id| id.wrapping_mul(10) + version).collect();
        if let Some(&last) = ids.last() {
            ids.insert(0, last);
            values.insert(0, 999);
        }
        Ok(vec![batch(vec![Arc::new(UInt64Array::from(ids)), Arc::new(UInt64Array::from(values))])])
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        self.load(&u64s(1..=20))?.into_iter().try_for_each(sink)
    }
}

pub fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(i, c)| Field::new(format!("c{i}"), c.data_type().clone(), true))
        .collect();
    let options = RecordBatchOptions::new();
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).unwrap()
}

/// A row of `news`: id, v, at.
pub type News<'a> = (u64, u64, &'a str);

/// UPDATE_FIELD on a SQL source; `write` replaces the rows of a table `news`: id, v and at, a time. The dictionary
/// reads rows below 1000: `TABLE 'news' WHERE 'v < 1000' UPDATE_FIELD 'at'`.
pub fn changes_are_taken_in(dictionary: &Dictionary, write: &dyn Fn(&[News<'_>])) {
    let renewed = || dictionary.take_updates().unwrap();
    let look_up = || {
        let answer = dictionary.get(&[0], &u64s([1, 2, 3, 99])).unwrap();
        let column = values(&answer.columns[0]);
        column.iter().zip(found(&answer.found)).map(|(v, found)| found.then_some(*v)).collect::<Vec<_>>()
    };
    let (long_ago, first) = ("2025-01-01 00:00:00", "2026-01-01 00:00:00");
    let (second, third) = ("2026-01-01 00:10:07", "2026-01-01 00:20:07");
    write(&[(1, 10, first), (2, 20, first), (3, 30, long_ago), (5, 50, first)]);
    assert_eq!(renewed(), 0, "from here on changes are known");
    assert_eq!(look_up(), [Some(10), Some(20), Some(30), None]);
    let asked = dictionary.status().source_keys;
    // One is changed, one falls out of WHERE, one comes; and one that is not cached is changed, too.
    write(&[(1, 11, second), (2, 5000, second), (3, 31, long_ago), (5, 51, second), (99, 990, second)]);
    assert_eq!(look_up(), [Some(10), Some(20), Some(30), None], "nobody has looked");
    assert_eq!(renewed(), 3);
    assert_eq!(
        look_up(),
        [Some(11), None, Some(30), Some(990)],
        "what does not say that it changed is not known to"
    );
    assert_eq!(dictionary.status().source_keys, asked + 3);
    // A little later no row can come any more that says so early; then nothing is read of the rows.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    for _ in 0..3 {
        renewed();
    }
    let status = dictionary.status();
    assert_eq!((renewed(), dictionary.status().source_requests), (0, status.source_requests + 1));
    write(&[(1, 12, third), (2, 21, third), (3, 31, long_ago), (99, 990, second)]);
    assert_eq!(renewed(), 3, "two, and one that is no older than the lag");
    assert_eq!(look_up(), [Some(12), Some(21), Some(30), Some(990)]);
}

/// A type of UPDATE_FIELD, the value before a change and after it, UPDATE_LAG, and the error if the type is refused.
pub type Marked<'a> = (&'a str, &'a str, &'a str, &'a str, Option<&'a str>);

/// UPDATE_FIELD on a SQL source, on columns of such types: `make` makes a table `marked` of id, v and at, with one row,
/// and `open` a dictionary.
pub fn columns_tell_changes(
    cases: &[Marked<'_>],
    make: &dyn Fn(&str, &str),
    open: &dyn Fn(&str) -> Dictionary,
) {
    for (data_type, first, second, lag, refused) in cases {
        make(data_type, &format!("(1, 10, {first})"));
        let dictionary = open(&format!("TABLE 'marked' UPDATE_FIELD 'at' {lag}"));
        let value = || values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0])[0];
        if let Some(said) = refused {
            assert_eq!(value(), 10);
            let error = dictionary.take_updates().unwrap_err();
            assert!(error.message().contains(said), "{data_type} {first}: {error}");
            assert_eq!(dictionary.status().element_count, 1);
            continue;
        }
        dictionary.take_updates().unwrap();
        assert_eq!(value(), 10);
        // Twice, a second apart: from then on a time of seconds is not looked at again.
        dictionary.take_updates().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1050));
        dictionary.take_updates().unwrap();
        make(data_type, &format!("(1, 11, {second})"));
        assert_eq!(dictionary.take_updates().unwrap(), 1, "{data_type} {second}");
        assert_eq!(value(), 11, "{data_type} {second}");
    }
}

/// The columns and the source of such a dictionary.
pub const NEWS: (&str, &str) =
    ("id UInt64, v UInt64", "TABLE 'news' WHERE 'v < 1000' UPDATE_FIELD 'at' UPDATE_LAG 2");

/// Rows for `INSERT INTO news VALUES`.
pub fn news(rows: &[News<'_>]) -> String {
    rows.iter().map(|(id, v, at)| format!("({id}, {v}, '{at}')")).collect::<Vec<_>>().join(", ")
}

/// Where one server cannot be reached the next is asked, in the order of PRIORITY: `open` makes a dictionary of the
/// table `users` on the server with this port.
pub fn asks_the_next_replica(port: u16, open: impl Fn(&str) -> Dictionary) {
    let of = |port: u16, priority: u8| format!("REPLICA(HOST '127.0.0.1' PORT {port} PRIORITY {priority})");
    for (first, second) in [(1, port), (port, 1)] {
        let dictionary = open(&format!("TABLE 'users' {} {}", of(second, 2), of(first, 1)));
        assert_eq!(texts(&dictionary.get(&[0], &u64s([4])).unwrap().columns[0]), ["user 4"]);
    }
    let nowhere = open(&format!("TABLE 'users' {} {}", of(1, 2), of(2, 1)));
    let error = nowhere.get(&[0], &u64s([4])).unwrap_err();
    assert!(error.message().contains("127.0.0.1:1"), "{error}");
}
