//! Rows that are cached during the first look for changes.

mod common;

use arrow::array::{ArrayRef, RecordBatch};
use common::*;
use granary_dict::limits::FIRST_WATERMARK_SECONDS;
use granary_dict::{
    BatchSink, Changes, DictError, Dictionary, Environment, NewestChange, Source, SourceFactory,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A source that says how far changes have come when it may.
struct Slow {
    asked: Sender<()>,
    may_answer: Mutex<Receiver<()>>,
    requests: AtomicU64,
}

struct Connection(Arc<Slow>);

impl Source for Connection {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        Ok(vec![batch(vec![keys[0].clone(), keys[0].clone()])])
    }

    fn load_all(&mut self, _sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        Ok(())
    }

    fn newest_change(&mut self, _watermark: Option<&str>) -> Result<NewestChange, DictError> {
        self.0.asked.send(()).unwrap();
        self.0.may_answer.lock().unwrap().recv().unwrap();
        Ok(NewestChange {
            latest: Some("5".into()),
            count: None,
            next: Some("3".into()),
            ..NewestChange::default()
        })
    }
}

/// The number of requests for keys that are looked up before, during and after the first look for changes, which takes
/// `takes` or longer; and how long it took.
fn requests(lag: u64, takes: Duration, before: bool) -> (u64, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let (asked, is_asked) = channel();
    let (answer, may_answer) = channel();
    let slow = Arc::new(Slow { asked, may_answer: Mutex::new(may_answer), requests: AtomicU64::new(0) });
    let factory: SourceFactory = {
        let slow = Arc::clone(&slow);
        Arc::new(move || Ok(Box::new(Connection(slow.clone()))))
    };
    let sql = format!(
        "CREATE DICTIONARY d (id UInt64, v UInt64) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'x' TABLE 't' UPDATE_FIELD 'at' UPDATE_LAG {lag})) LAYOUT(CACHE(SIZE_IN_CELLS 1000)) LIFETIME(0)"
    );
    let environment = Environment::new(folder.path());
    let dictionary = Dictionary::open_with_source(definition(&sql), &environment, factory).unwrap();
    let look_up = || assert_eq!(values(&dictionary.get(&[0], &u64s([1, 2])).unwrap().columns[0]), [1, 2]);
    if before {
        look_up();
    }
    let took = std::thread::scope(|scope| {
        let began = Instant::now();
        let looking = scope.spawn(|| dictionary.take_updates().unwrap());
        is_asked.recv_timeout(Duration::from_secs(60)).unwrap();
        look_up();
        std::thread::sleep(takes);
        answer.send(()).unwrap();
        assert_eq!(looking.join().unwrap(), 0);
        began.elapsed()
    });
    look_up();
    (slow.requests.load(Ordering::SeqCst), took)
}

#[test]
fn what_is_fetched_during_a_first_look_stays() {
    let short = Duration::from_secs(FIRST_WATERMARK_SECONDS);
    let mut tries = (0..5).map(|_| requests(60, Duration::ZERO, false));
    let requests = tries.find_map(|(requests, took)| (took < short).then_some(requests));
    assert_eq!(requests, Some(1), "of a look that was not too long");
}

#[test]
fn it_is_asked_for_again_where_a_change_could_have_been_missed() {
    assert_eq!(requests(1, Duration::from_millis(1100), false).0, 2, "the look took too long");
    assert_eq!(requests(0, Duration::ZERO, false).0, 2, "watermarks without a lag");
    assert_eq!(requests(60, Duration::ZERO, true).0, 2, "something was there before");
}

/// A source that notes changes, and answers when it may.
#[derive(Default)]
struct Changing {
    version: AtomicU64,
    is_shut: AtomicBool,
}

struct ConnectionTo(Arc<Changing>);

impl Source for ConnectionTo {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        while self.0.is_shut.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let version = self.0.version.load(Ordering::SeqCst);
        let values = values(&keys[0]).iter().map(|_| version).collect::<Vec<_>>();
        Ok(vec![batch(vec![keys[0].clone(), u64s(values)[0].clone()])])
    }

    fn load_all(&mut self, _sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        Ok(())
    }

    fn newest_change(&mut self, _watermark: Option<&str>) -> Result<NewestChange, DictError> {
        let version = Some(self.0.version.load(Ordering::SeqCst).to_string());
        Ok(NewestChange {
            latest: version.clone(),
            count: Some("1".into()),
            next: version,
            ..NewestChange::default()
        })
    }

    fn changes(&mut self, _watermark: &str) -> Result<Changes, DictError> {
        Ok(Changes::Keys(u64s([1, 2, 3])))
    }
}

/// The source answers too late for the changed rows to be renewed: they do not stay as they were.
#[test]
fn what_is_not_renewed_in_time_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let changing = Arc::new(Changing::default());
    let factory: SourceFactory = {
        let changing = Arc::clone(&changing);
        Arc::new(move || Ok(Box::new(ConnectionTo(changing.clone()))))
    };
    let sql = "CREATE DICTIONARY d (id UInt64, v UInt64) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'x' TABLE 't' UPDATE_FIELD 'at' UPDATE_PERIOD 86400)) \
         LAYOUT(CACHE(SIZE_IN_CELLS 1000 QUERY_WAIT_TIMEOUT_MILLISECONDS 100)) LIFETIME(0)";
    let environment = Environment::new(folder.path());
    let dictionary = Dictionary::open_with_source(definition(sql), &environment, factory).unwrap();
    let look_up = || {
        let answer = answers_at_last(|| dictionary.get(&[0], &u64s([1, 2, 3, 4])));
        values(&answer.columns[0])
    };
    // What does not begin or is not answered in time changes nothing.
    let take_updates = || answers_at_last(|| dictionary.take_updates());
    take_updates();
    assert_eq!(look_up(), [0; 4]);
    changing.version.store(1, Ordering::SeqCst);
    changing.is_shut.store(true, Ordering::SeqCst);
    let renewed = take_updates();
    changing.is_shut.store(false, Ordering::SeqCst);
    assert_eq!(renewed, 0);
    assert_eq!(look_up(), [1, 1, 1, 0]);
}
