//! Kills the server under load, at random moments: acknowledged changes are there after the restart, of a change under
//! way the state before or after it, and nothing else. GRANARY_KILLS says how often each test kills (default 20).

mod common;
#[path = "../../log/tests/common/random.rs"]
mod random;
#[path = "../../cache/tests/common/room.rs"]
mod room;
#[path = "../../log/tests/common/skip.rs"]
mod skip;

use common::LITTLE_FLASH;
use common::process::{self, Process};
use random::Random;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The program of the server process; does nothing as a test.
#[test]
fn child() {
    process::serve();
}

const CLIENTS: u64 = 2;
const PIPELINE: usize = 30;

/// The server that is killed again and again.
struct Setting<'a> {
    policy: &'a str,
    seed: u64,
    /// Keys of each client.
    keys: u64,
    memory_bytes: u64,
    /// Items are evicted: before every other kill, when nothing changes, the test checks which of the expected items
    /// are there.
    is_full: bool,
}

/// What a client knows of a key.
struct Known {
    /// Its possible values (`None`: it is not there); more than one while a change is under way.
    states: Vec<Option<String>>,
    /// It was missed although it ought to be there: a key with equal hash bits has taken its place in the index.
    is_missed: bool,
}

impl Known {
    fn only(state: Option<String>) -> Self {
        Self { states: vec![state], is_missed: false }
    }
}

/// The keys that were ever changed.
type Model = HashMap<u64, Known>;

fn value(key: u64, version: u64, random: &mut Random) -> String {
    format!("k{key}-v{version}-{}", "x".repeat(random.below(400) as usize))
}

/// Changes keys until the server is gone, or until `stops`.
fn change(
    address: SocketAddr,
    keys: std::ops::Range<u64>,
    model: &mut Model,
    random: &mut Random,
    stops: &AtomicBool,
) -> u64 {
    // The server may be gone before the client connects.
    let Ok(stream) = TcpStream::connect(address) else { return 0 };
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let mut acknowledged = 0;
    while !stops.load(Ordering::Acquire) {
        let mut requests = String::new();
        let mut changes = Vec::new();
        for _ in 0..PIPELINE {
            let key = keys.start + random.below(keys.end - keys.start);
            let new = value(key, random.below(1 << 40), random);
            // The change is noted as under way before it is sent.
            let now = model.get(&key).and_then(|known| known.states.last().cloned()).flatten();
            let (request, after) = match random.below(20) {
                0..3 => (format!("delete {key}\r\n"), None),
                // An item that is stored as already expired.
                3 => (format!("set {key} 0 -1 {}\r\n{new}\r\n", new.len()), None),
                4 => (format!("touch {key} 1000\r\n"), now),
                5 => (format!("append {key} 0 0 1\r\n+\r\n"), now.map(|value| value + "+")),
                6 => (format!("ms {key} {} T1000\r\n{new}\r\n", new.len()), Some(new)),
                _ => (format!("set {key} 0 0 {}\r\n{new}\r\n", new.len()), Some(new)),
            };
            model.entry(key).or_insert_with(|| Known::only(None)).states.push(after.clone());
            requests += &request;
            changes.push((key, after));
        }
        if stream.write_all(requests.as_bytes()).is_err() {
            return acknowledged;
        }
        for (key, after) in changes {
            let mut line = String::new();
            if !answers.read_line(&mut line).is_ok_and(|len| len > 0) || !line.ends_with("\r\n") {
                return acknowledged;
            }
            let known = model.get_mut(&key).expect("it was put there");
            match line.trim_end() {
                // The states before this change are no longer possible; later changes may be under way.
                "STORED" | "DELETED" | "TOUCHED" | "HD" => {
                    let at = known.states.iter().position(|state| *state == after).expect("it was noted");
                    known.states.drain(..at);
                    known.is_missed = false;
                }
                "NOT_FOUND" | "NOT_STORED" => known.is_missed = true,
                // Refused because the device is behind: the item that was there is gone.
                "SERVER_ERROR out of memory storing object" => {
                    let at = known.states.iter().position(|state| *state == after).expect("it was noted");
                    drop(known.states.splice(..=at, [None]));
                    known.is_missed = false;
                }
                other => panic!("{other}"),
            }
            acknowledged += 1;
        }
    }
    acknowledged
}

/// Reads every key; returns how many items ought to be there, and how many are.
fn check(address: SocketAddr, model: &mut Model, what: &str) -> (u64, u64) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let (mut expected, mut found) = (0, 0);
    let keys: Vec<u64> = model.keys().copied().collect();
    for some in keys.chunks(100) {
        let names: Vec<String> = some.iter().map(u64::to_string).collect();
        stream.write_all(format!("get {}\r\n", names.join(" ")).as_bytes()).unwrap();
        let mut values: HashMap<u64, String> = HashMap::new();
        loop {
            let mut line = String::new();
            answers.read_line(&mut line).unwrap();
            if line == "END\r\n" {
                break;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut bytes = vec![0; words[3].parse::<usize>().unwrap() + 2];
            answers.read_exact(&mut bytes).unwrap();
            bytes.truncate(bytes.len() - 2);
            values.insert(words[1].parse().unwrap(), String::from_utf8(bytes).unwrap());
        }
        for key in some {
            let known = model.get_mut(key).expect("it is there");
            let is = values.remove(key);
            let is_there = known.states.iter().all(Option::is_some);
            let must_be_there = is_there && !known.is_missed;
            expected += u64::from(must_be_there);
            found += u64::from(must_be_there && is.is_some());
            // An item that was missed, and not changed since, stays missing.
            let may_be_there = !known.is_missed || known.states.len() > 1;
            let is_right = is.is_none() || may_be_there && known.states.contains(&is);
            let states = &known.states;
            assert!(is_right, "{what}: key {key} is stale or wrong: {is:?}, known {states:?}");
            match is {
                None if is_there => known.is_missed = true,
                is => *known = Known::only(is),
            }
        }
    }
    (expected, found)
}

/// How often [`read_until_still`] reads all keys at most.
const READS_MAX: usize = 20;

/// Figures that stay when nothing is evicted, moved or written.
const STILL: [&str; 5] = ["evicted_memory", "evicted_flash", "evicted_index", "taken_back", "bytes_written"];

/// Reads every key until that evicts nothing any more: items that are read from flash displace others from RAM, these
/// are written, and a segment may be emptied for them. Returns how many items came back to RAM from such segments.
fn read_until_still(address: SocketAddr, models: &mut [Model], what: &str) -> u64 {
    let mut client = common::Client::new(address);
    let mut figures = || {
        let stats = client.lines("stats granary");
        STILL.map(|name| {
            let start = format!("STAT {name} ");
            let line = stats.lines().find_map(|line| line.strip_prefix(&start));
            line.unwrap_or_else(|| panic!("no {name} in {stats}")).parse::<u64>().unwrap()
        })
    };
    let mut before = figures();
    for _ in 0..READS_MAX {
        for model in models.iter_mut() {
            check(address, model, what);
        }
        // What the last read set off may be under way in another thread.
        std::thread::sleep(Duration::from_millis(20));
        let after = figures();
        if after == before {
            return after[3];
        }
        before = after;
    }
    panic!("{what}: {READS_MAX} times, reads alone went on to evict");
}

fn kill(setting: &Setting<'_>) {
    let Setting { policy, seed, keys, memory_bytes, is_full } = *setting;
    // Room for the RAM tier, for write buffers, and for another such test at the same time.
    if !room::has_room(2 * memory_bytes + (64 << 20)) {
        return skip::skipped("no room in /dev/shm: what is in RAM alone does not outlive a kill");
    }
    let folder = tempfile::tempdir().unwrap();
    let kills = std::env::var("GRANARY_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let seed = std::env::var("GRANARY_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(seed);
    let mut random = Random(seed);
    let mut models: Vec<Model> = (0..CLIENTS).map(|_| Model::new()).collect();
    let (mut expected, mut found, mut acknowledged) = (0, 0, 0);
    let (mut has_looked, mut emptied) = (!is_full, false);
    for round in 0..=kills {
        let mut process = Some(Process::start_with(folder.path(), policy, 0, Some(memory_bytes)));
        let address = process.as_ref().expect("it runs").address;
        for model in &mut models {
            let (of_all, there) =
                check(address, model, &format!("{policy}, seed {seed}, after {round} kills"));
            if has_looked {
                (expected, found) = (expected + of_all, found + there);
            }
        }
        if random.below(12) == 0 {
            let mut client = common::Client::new(address);
            assert_eq!(client.lines("flush_all"), "OK\n");
            models.iter_mut().flat_map(Model::values_mut).for_each(|known| *known = Known::only(None));
        }
        let pause = Duration::from_millis(20 + random.below(300));
        let seeds: Vec<u64> = models.iter().map(|_| random.next()).collect();
        let (looks, stops) = (is_full && round % 2 == 0, AtomicBool::new(false));
        has_looked = looks || !is_full;
        std::thread::scope(|scope| {
            let (clients, stops) = (models.iter_mut().zip(seeds).zip(0..), &stops);
            let clients: Vec<_> = clients
                .map(|((model, seed), client)| {
                    scope.spawn(move || {
                        let keys = client * keys..(client + 1) * keys;
                        change(address, keys, model, &mut Random(seed | 1), stops)
                    })
                })
                .collect();
            std::thread::sleep(pause);
            stops.store(looks, Ordering::Release);
            if !looks {
                process.take().into_iter().for_each(Process::kill);
            }
            acknowledged += clients.into_iter().map(|client| client.join().unwrap()).sum::<u64>();
        });
        if looks {
            let before = format!("{policy}, seed {seed}, before kill {}", round + 1);
            emptied |= read_until_still(address, &mut models, &before) > 0;
        }
        process.into_iter().for_each(Process::kill);
    }
    process::end(folder.path(), policy);
    assert!(emptied || !is_full, "no segment was emptied, with items that are read");
    let share = found as f64 / expected as f64;
    println!(
        "{policy}: {kills} kills, {acknowledged} changes acknowledged, {found} of {expected} items there ({:.4} %)",
        share * 100.0
    );
    assert!(expected > 0 && share >= 0.999, "{found} of {expected} items came back");
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    kill(&Setting { policy: "reuse", seed: 1, keys: 20_000, memory_bytes: 64 << 20, is_full: false });
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_with_all_on_flash() {
    kill(&Setting { policy: "all", seed: 2, keys: 20_000, memory_bytes: 64 << 20, is_full: false });
}

/// RAM has half of the items: those that are being written to the device at the kill are still there.
#[test]
fn what_was_acknowledged_is_there_after_a_kill_with_all_on_flash_and_half_in_ram() {
    kill(&Setting { policy: "all", seed: 3, keys: 100_000, memory_bytes: 32 << 20, is_full: false });
}

/// RAM has a seventh of the items: most of those that are being written to the device are in write buffers only.
#[test]
fn what_was_acknowledged_is_there_after_a_kill_with_all_on_flash_and_little_ram() {
    kill(&Setting { policy: "all", seed: 4, keys: 100_000, memory_bytes: 8 << 20, is_full: false });
}

/// DRAM first, and flash is in use: items go to flash, come back to RAM when their segments are emptied, and are
/// evicted.
#[test]
fn what_was_there_before_a_kill_is_there_after_it() {
    let policy = &format!("probability:1{LITTLE_FLASH}");
    kill(&Setting { policy, seed: 5, keys: 50_000, memory_bytes: 8 << 20, is_full: true });
}
