//! Readers of traces: on each format, and on malformed input.

mod common;

use common::*;
use granary_lab::trace::{Format, Label, Operation, Request, Source, Trace};

fn read(source: &Source) -> Vec<Request> {
    Trace::open(source).unwrap().collect::<Result<_, _>>().unwrap()
}

fn error(source: &Source) -> String {
    match Trace::open(source) {
        Err(error) => error.to_string(),
        Ok(trace) => trace.filter_map(Result::err).next().expect("an error").to_string(),
    }
}

#[test]
fn block_io_is_read_also_when_it_is_packed() {
    let folder = tempfile::tempdir().unwrap();
    let plain = write(folder.path(), "io.csv", CLOUD_PHYSICS.as_bytes());
    let requests = read(&plain);
    assert_eq!(requests.len(), 3);
    let first = requests[0];
    assert_eq!((first.time, first.key, first.value_bytes), (5_633_898, 42_932_745, 512));
    assert_eq!((first.operation, requests[2].operation), (Operation::Set, Operation::Get));
    for (name, packed) in
        [("io.csv.gz", gzip(CLOUD_PHYSICS.as_bytes())), ("io.csv.xz", xz(CLOUD_PHYSICS.as_bytes()))]
    {
        let source = write(folder.path(), name, &packed);
        assert_eq!(read(&source), requests, "{name}");
        assert_eq!(Trace::open(&source).unwrap().label, Label::RealSized);
        assert_eq!(Trace::open(&source).unwrap().name, "io");
    }
}

#[test]
fn web_objects_and_bare_keys_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let web = read(&write(folder.path(), "web.trace.xz", &xz(WEB.as_bytes())));
    assert_eq!(web.iter().map(|r| (r.time, r.key, r.value_bytes)).collect::<Vec<_>>()[1], (2, 1, 7454));

    let source = write(folder.path(), "keys.trace.xz", &xz(&cache2k()));
    let keys = read(&source);
    assert_eq!(keys.iter().map(|r| r.key).collect::<Vec<_>>(), [7, 8, 7, 0xf000_0001]);
    assert_eq!(keys[0].value_bytes, keys[2].value_bytes, "a key keeps its size");
    assert_eq!(Trace::open(&source).unwrap().label, Label::RealKeys);
}

#[test]
fn records_of_libcachesim_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let requests = read(&write(folder.path(), "a.oracleGeneral", &oracle_general()));
    let seen: Vec<_> = requests.iter().map(|r| (r.time, r.key, r.value_bytes)).collect();
    assert_eq!(seen, [(5, 1, 100), (6, 2, 200), (9, 1, 100)]);
}

#[test]
fn key_value_traces_are_read_with_operations_and_lifetimes() {
    let folder = tempfile::tempdir().unwrap();
    let requests = read(&write(folder.path(), "twitter.csv", TWITTER.as_bytes()));
    let operations: Vec<Operation> = requests.iter().map(|r| r.operation).collect();
    assert_eq!(operations, [Operation::Get, Operation::Add, Operation::Set, Operation::Delete]);
    assert_eq!((requests[2].key_bytes, requests[2].value_bytes, requests[2].ttl), (15, 40, 3600));
    assert_eq!(requests[0].key, requests[3].key);

    let requests = read(&write(folder.path(), "kv.csv", KEY_VALUE.as_bytes()));
    assert_eq!(requests.len(), 6, "op_count repeats a request");
    assert_eq!((requests[4].operation, requests[4].ttl, requests[4].key_bytes), (Operation::Set, 7200, 67));
    assert_eq!(requests[1], requests[3]);

    // The other order of columns that is in use.
    let other =
        "op_time,key,key_size,op,op_count,size,cache_hits,usecase,sub_usecase,ttl\n1,5,56,GET,1,21,2,7,8,9\n";
    let requests = read(&write(folder.path(), "other.csv", other.as_bytes()));
    assert_eq!((requests[0].key, requests[0].ttl), (5, 9));
}

#[test]
fn streams_are_drawn_as_the_statistics_say_and_drawn_again_alike() {
    let folder = tempfile::tempdir().unwrap();
    let source = write_cachelib(folder.path());
    let requests = read(&source);
    assert_eq!(requests.len(), 1000);
    assert_eq!(requests, read(&source));
    let share = |f: &dyn Fn(&Request) -> bool| requests.iter().filter(|r| f(r)).count();
    let lone = share(&|r| r.key >= 1 << 62);
    assert!((70..130).contains(&lone), "{lone} lone gets");
    let popular = share(&|r| r.key < 10);
    assert!((770..850).contains(&popular), "{popular} of 900 for a tenth of the keys");
    assert!(requests.iter().all(|r| [31, 63, 95].contains(&r.value_bytes)));
    assert!(requests.iter().all(|r| (1..=64).contains(&r.key_bytes)));

    let table = write(folder.path(), "clusters.md", CLUSTERS.as_bytes());
    let requests = read(&table);
    assert!(requests.iter().all(|r| r.key < 50 && r.ttl == 86_400), "20 requests a key");
    let deletes = requests.iter().filter(|r| r.operation == Operation::Delete).count();
    assert!((180..260).contains(&deletes), "{deletes}");
    assert!(requests.last().unwrap().time > 600_000, "a week");
    assert!(error(&Source { cluster: None, ..table }).contains("--cluster"));
}

#[test]
fn errors_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| error(&write(folder.path(), name, bytes));
    let text = at("a.csv", CLOUD_PHYSICS.replace("1,5641097,28", "1,5641097,99").as_bytes());
    assert!(text.contains("a.csv, line 4: op is \"99\""), "{text}");
    let text = at("web.trace", b"1 0 68\n2 1\n");
    assert!(text.contains("line 2: size is missing"), "{text}");
    let text = at("b.oracleGeneral", &oracle_general()[..60]);
    assert!(text.contains("byte 48 (unpacked): 12 bytes of a record of 24"), "{text}");
    let text = at("kv.csv", KEY_VALUE.replace("GET_LEASE,3", "GET_LEASE,many").as_bytes());
    assert!(text.contains("line 3: op_count is \"many\""), "{text}");
    let text = at("tw.csv", TWITTER.replace("add", "frob").as_bytes());
    assert!(text.contains("line 2: operation \"frob\""), "{text}");
    let text = at("long", &[b'1'; 100_000]);
    assert!(text.contains("not a format"), "{text}");
    let long = [b"1 2 3\n".to_vec(), vec![b'1'; 100_000]].concat();
    let text = at("long.web", &long);
    assert!(text.contains("line 2: longer than"), "{text}");
    let text = at("z", &[0x28, 0xb5, 0x2f, 0xfd, 0]);
    assert!(text.contains("zstd"), "{text}");
    let packed = gzip(WEB.as_bytes());
    let text = at("cut.gz", &packed[..packed.len() - 9]);
    assert!(text.contains("cut.gz: "), "{text}");
    assert!(error(&source(folder.path().join("none"), None)).contains("none: "));
    assert!(error(&source(folder.path().to_owned(), None)).contains("config.json"));
}

#[test]
fn mutations_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut corpus: Vec<(Format, Vec<u8>)> = vec![
        (Format::CloudPhysics, CLOUD_PHYSICS.into()),
        (Format::Web, WEB.into()),
        (Format::Twitter, TWITTER.into()),
        (Format::KeyValue, KEY_VALUE.into()),
        (Format::Cache2k, cache2k()),
        (Format::OracleGeneral, oracle_general()),
        (Format::TwitterClusters, CLUSTERS.into()),
    ];
    corpus.push((Format::Web, gzip(WEB.as_bytes())));
    corpus.push((Format::Web, xz(WEB.as_bytes())));
    let mut random = Random(42);
    for (format, sample) in &corpus {
        for _ in 0..500 {
            let bytes = random.mutate(sample);
            let mut file = write(folder.path(), "mutated", &bytes);
            drain(&file);
            file.format = Some(*format);
            drain(&file);
        }
    }
    let cachelib = write_cachelib(folder.path());
    for (name, text) in [("config.json", CONFIG), ("pop.json", POPULARITY), ("sizes.json", SIZES)] {
        for _ in 0..500 {
            std::fs::write(cachelib.path.join(name), random.mutate(text.as_bytes())).unwrap();
            drain(&cachelib);
        }
        std::fs::write(cachelib.path.join(name), text).unwrap();
    }
}

fn drain(source: &Source) {
    if let Ok(trace) = Trace::open(source) {
        let _ = trace.take(2000).last();
    }
}

/// Xorshift: the same mutations each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn mutate(&mut self, sample: &[u8]) -> Vec<u8> {
        let mut bytes = sample.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().max(1));
            match self.below(5) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                2 => bytes.insert(at.min(bytes.len()), b"0-,.:|\n\xff"[self.below(8)]),
                3 => bytes.splice(at..at, *b"99999999999").for_each(drop),
                _ => bytes.extend_from_within(at.min(bytes.len())..),
            }
        }
        bytes
    }
}
