//! The server against a plain map, through stops and kills: an item may be lost, but an item that is found is the one
//! stored last, **whatever a delete in between was answered**. Half of the keys have equal hash bits in the index, so
//! that they displace each other.

mod common;
#[path = "../../log/tests/common/random.rs"]
mod random;

use common::{Client, options};
use granary_cache::KeyHasher;
use granary_memcached::{Options, Server};
use random::Random;
use std::collections::HashMap;
use std::path::Path;

const HASH_SEED: u64 = 23;

/// More bits of a hash than the index keeps at these sizes, those of the shard included.
const ALIKE_BITS: u32 = 30;

/// The item that a client may be shown for a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Item {
    value: String,
    stale: bool,
}

/// The last acknowledged item of each key; for a key without one nothing may be shown.
type Model = HashMap<usize, Item>;

fn keys() -> Vec<String> {
    let (count, candidates) = (3_000, 6_000_000u32);
    let hasher = KeyHasher::with_seed(HASH_SEED);
    let name = |number: u32| format!("key{number}");
    let look = |number: u32| {
        let hash = hasher.hash(name(number).as_bytes()).to_bits();
        (hash >> (granary_cache::limits::HASH_BITS - ALIKE_BITS)) << 1 | hash & 1
    };
    let mut looks: Vec<(u64, u32)> = (0..candidates).map(|number| (look(number), number)).collect();
    looks.sort_unstable();
    let groups = looks.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1);
    let mut numbers: Vec<u32> = groups.flatten().map(|(_, number)| *number).take(count / 2).collect();
    assert!(numbers.len() >= count / 2 - 1, "{} look alike", numbers.len());
    numbers.extend(candidates..candidates + (count - numbers.len()) as u32);
    numbers.into_iter().map(name).collect()
}

/// A request for a key.
struct Request {
    key: usize,
    verb: Verb,
    value: String,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Set,
    Add,
    Append,
    Delete,
    MetaDelete,
    Invalidate,
    TouchToEnd,
    GetToEnd,
    Get,
}

impl Request {
    fn any(random: &mut Random, keys: usize, number: u64) -> Request {
        let verb = match random.below(40) {
            0..10 => Verb::Set,
            10..12 => Verb::Add,
            12 => Verb::Append,
            13..16 => Verb::Delete,
            16..18 => Verb::MetaDelete,
            18 => Verb::Invalidate,
            19 => Verb::TouchToEnd,
            20 => Verb::GetToEnd,
            _ => Verb::Get,
        };
        let value = format!("v{number}-{}", "x".repeat(random.below(600) as usize));
        Request { key: random.below(keys as u64) as usize, verb, value }
    }

    fn text(&self, keys: &[String]) -> String {
        let Request { value, verb, .. } = self;
        let (key, len) = (&keys[self.key], value.len());
        match verb {
            Verb::Set => format!("set {key} 0 0 {len}\r\n{value}\r\n"),
            Verb::Add => format!("add {key} 0 0 {len}\r\n{value}\r\n"),
            Verb::Append => format!("append {key} 0 0 2\r\n+a\r\n"),
            Verb::Delete => format!("delete {key}\r\n"),
            Verb::MetaDelete => format!("md {key}\r\n"),
            Verb::Invalidate => format!("md {key} I\r\n"),
            Verb::TouchToEnd => format!("touch {key} -1\r\n"),
            Verb::GetToEnd => format!("mg {key} T-1\r\n"),
            Verb::Get => format!("mg {key} v\r\n"),
        }
    }

    /// Compares the reply with the model, and updates the model.
    fn hear<'a>(&self, model: &mut Model, lines: &mut impl Iterator<Item = &'a str>, what: &str) {
        let line = lines.next().expect("an answer to each request");
        let known = model.get(&self.key).cloned();
        let shown =
            || known.clone().unwrap_or_else(|| panic!("{what}: it is gone, and {:?} says {line}", self.verb));
        let next = match (self.verb, line) {
            (Verb::Set | Verb::Add, "STORED") => Some(Item { value: self.value.clone(), stale: false }),
            (Verb::Append, "STORED") => Some(Item { value: shown().value + "+a", stale: false }),
            (Verb::Add, "NOT_STORED") => Some(shown()),
            (Verb::Append, "NOT_STORED") | (Verb::Get, "EN") => known,
            (Verb::Delete, "DELETED") | (Verb::TouchToEnd, "TOUCHED") => {
                shown();
                None
            }
            (Verb::MetaDelete | Verb::GetToEnd, line) if line.starts_with("HD") => {
                shown();
                None
            }
            (Verb::Invalidate, "HD") => Some(Item { stale: true, ..shown() }),
            // Refused because the device is behind: the item that was there is gone.
            (
                Verb::Set | Verb::Add | Verb::Append | Verb::Invalidate | Verb::TouchToEnd | Verb::GetToEnd,
                "SERVER_ERROR out of memory storing object",
            ) => None,
            (Verb::Delete | Verb::TouchToEnd, "NOT_FOUND")
            | (Verb::MetaDelete | Verb::Invalidate, "NF")
            | (Verb::GetToEnd, "EN") => None,
            (Verb::Get, line) if line.starts_with("VA ") => {
                let value = lines.next().expect("a value").to_owned();
                let stale = line.split(' ').any(|flag| flag == "X");
                let item = Item { value, stale };
                assert_eq!(item, shown(), "{what}: stale or wrong");
                Some(item)
            }
            (verb, line) => panic!("{what}: {verb:?} is answered by {line}"),
        };
        match next {
            Some(item) => model.insert(self.key, item),
            None => model.remove(&self.key),
        };
    }
}

fn exchange(client: &mut Client, keys: &[String], model: &mut Model, requests: &[Request], what: &str) {
    let text: String = requests.iter().map(|request| request.text(keys)).collect();
    let heard = String::from_utf8(client.say(text.as_bytes())).unwrap();
    let mut lines = heard.split_terminator("\r\n");
    for request in requests {
        request.hear(model, &mut lines, &format!("{what}, {}", keys[request.key]));
    }
    assert_eq!(lines.next(), None);
}

fn options_of(folder: &Path, policy: &str, memory_bytes: u64) -> Options {
    let mut options = options(folder);
    options.store.memory_bytes = memory_bytes;
    options.store.flash_bytes = 16 << 20;
    options.store.item_bytes_max = 2048;
    options.store.hash_seed = Some(HASH_SEED);
    options.store.admission = policy.parse().unwrap();
    options
}

/// Sends random requests to servers of these policies, chosen at random. GRANARY_MODEL_OPERATIONS: how many requests in
/// all runs.
fn run(policies: &[&str], memory_bytes: u64, seed: u64) {
    let asked = std::env::var("GRANARY_MODEL_OPERATIONS").ok().and_then(|n| n.parse::<u64>().ok());
    let operations = asked.unwrap_or(300_000) / 3;
    let keys = keys();
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(seed);
    let mut model = Model::new();
    let (mut done, mut round) = (0, 0);
    while done < operations {
        let policy = policies[random.below(policies.len() as u64) as usize];
        let mut options = options_of(folder.path(), policy, memory_bytes);
        if random.below(8) == 0 {
            // The items in RAM are lost with this process, and those that the last process had there are void.
            options.store.memory_folder = None;
        }
        let server = Server::start(&options).unwrap();
        let mut client = Client::new(server.address());
        let what = format!("seed {seed}, {policy}, start {round}");
        // Sometimes requests are made before all keys are checked.
        if random.below(3) > 0 {
            let all = (0..keys.len()).map(|key| Request { key, verb: Verb::Get, value: String::new() });
            exchange(&mut client, &keys, &mut model, &all.collect::<Vec<_>>(), &what);
        }
        for _ in 0..random.below(80) {
            let requests: Vec<Request> =
                (0..100).map(|i| Request::any(&mut random, keys.len(), done + i)).collect();
            exchange(&mut client, &keys, &mut model, &requests, &what);
            done += 100;
        }
        if random.below(10) == 0 {
            assert_eq!(client.lines("flush_all"), "OK\n");
            model.clear();
        }
        drop(client);
        match random.below(4) {
            0 => server.stop().unwrap(),
            _ => server.abandon(),
        }
        round += 1;
    }
    // A clean stop, so that no file of the server's RAM is left.
    Server::start(&options_of(folder.path(), policies[0], memory_bytes)).unwrap().stop().unwrap();
}

#[test]
fn write_through() {
    run(&["all"], 1 << 20, 1);
}

#[test]
fn dram_first() {
    run(&["probability:1", "reuse", "reject-first", "flashield", "probability:0.5", "none"], 1 << 20, 2);
}

#[test]
fn dram_first_where_much_is_in_ram() {
    run(&["probability:1", "reuse"], 8 << 20, 3);
}
