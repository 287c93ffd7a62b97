//! Sends the same random requests to a real memcached and to Granary: the replies are the same, byte for byte.
//!
//! Items expire in the pause between two windows, after which they are expired by both clocks: no item expires inside a
//! window. Numbers (`cas`) are compared, too.
//!
//! GRANARY_MEMCACHED_OPERATIONS: how many requests (200 000). GRANARY_SEED: another sequence.

mod common;
#[path = "../../log/tests/common/random.rs"]
mod random;

use common::{Client, OtherServer, memcached, with_policy};
use granary_memcached::{Options, Server};
use random::Random;
use std::collections::HashMap;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_millis(700);
/// Seconds that short-lived items live; a clock that counts seconds may take one of them away.
const SHORT: u64 = 3;
const SOON: &str = "3";
/// No item expires within this time from the beginning of a window.
const SAFE: Duration = Duration::from_millis((SHORT - 1) * 1000 - 100);
/// Longer than short-lived items live by both clocks, one of which is set by a timer that may be late.
const PAUSE: Duration = Duration::from_millis(SHORT * 1000 + 2500);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

struct Requests {
    random: Random,
    /// The number that a key was last seen with.
    numbers: HashMap<String, u64>,
}

impl Requests {
    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.below(of.len() as u64) as usize]
    }

    /// A key; some are chosen often.
    fn key(&mut self) -> String {
        let n = self.random.below(2000).min(self.random.below(2000));
        match n % 7 {
            0 => format!("{n}"),
            1 => format!("{n}:{}", "k".repeat(n as usize % 240)),
            _ => format!("key-{n}"),
        }
    }

    fn counter(&mut self) -> String {
        format!("n{}", self.random.below(200))
    }

    fn exptime(&mut self) -> String {
        self.pick(&["0", "0", "0", SOON, SOON, "1000", "100000", "-1", "2592000", "2592001", "2147483647"])
            .into()
    }

    fn value(&mut self) -> String {
        let len = match self.random.below(1000) {
            0 => self.random.below(200_000),
            1..20 => self.random.below(8_000),
            20..60 => 0,
            _ => self.random.below(120),
        };
        let letter = char::from(b'a' + self.random.below(26) as u8);
        String::from(letter).repeat(len as usize)
    }

    fn noreply(&mut self) -> &'static str {
        if self.random.below(10) == 0 { " noreply" } else { "" }
    }

    fn flags(&mut self) -> String {
        if self.random.below(3) == 0 { self.random.below(1 << 32).to_string() } else { "0".into() }
    }

    fn number(&mut self, key: &str) -> u64 {
        let known = self.numbers.get(key).copied();
        known.filter(|_| self.random.below(4) > 0).unwrap_or(1 + self.random.below(1000))
    }

    fn keys(&mut self) -> String {
        let keys: Vec<String> = (0..1 + self.random.below(8)).map(|_| self.key()).collect();
        keys.join(" ")
    }

    fn text(&mut self) -> String {
        let (key, exptime, noreply) = (self.key(), self.exptime(), self.noreply());
        match self.random.below(100) {
            0..20 => format!("get {}\r\n", self.keys()),
            20..30 => format!("gets {}\r\n", self.keys()),
            30..34 => format!("gat {exptime} {}\r\n", self.keys()),
            34..37 => format!("gats {exptime} {}\r\n", self.keys()),
            37..75 => {
                let command = self.pick(&["set", "set", "set", "set", "add", "replace", "append", "prepend"]);
                let (flags, value) = (self.flags(), self.value());
                format!("{command} {key} {flags} {exptime} {}{noreply}\r\n{value}\r\n", value.len())
            }
            75..82 => {
                let (flags, value, number) = (self.flags(), self.value(), self.number(&key));
                format!("cas {key} {flags} {exptime} {} {number}{noreply}\r\n{value}\r\n", value.len())
            }
            82..92 => format!("delete {key}{noreply}\r\n"),
            92..99 => format!("touch {key} {exptime}{noreply}\r\n"),
            _ => format!("incr {key} 1{noreply}\r\n"),
        }
    }

    /// A request to count numbers that have ten digits before and after: how a shorter one is padded depends on
    /// memcached's memory.
    fn counting(&mut self) -> String {
        let (key, exptime, noreply, delta) =
            (self.counter(), self.exptime(), self.noreply(), self.random.below(1000));
        match self.random.below(8) {
            0 => format!("set {key} 0 {exptime} 10{noreply}\r\n5000000000\r\n"),
            1 => format!("add {key} 7 {exptime} 10{noreply}\r\n6000000000\r\n"),
            2 | 3 => format!("incr {key} {delta}{noreply}\r\n"),
            4 => format!("decr {key} {delta}{noreply}\r\n"),
            5 => format!("gets {key}\r\n"),
            6 => format!("ma {key} N{exptime} J4000000000 D{delta} v c k O{delta}\r\n"),
            _ => format!("ma {key} MD D{delta} q v\r\n"),
        }
    }

    fn meta(&mut self) -> String {
        let (key, exptime) = (self.key(), self.exptime());
        let quiet = self.pick(&["", "", "", " q"]);
        match self.random.below(12) {
            0..3 => format!("mg {key} v c f s k O1{quiet}\r\n"),
            3 => format!("mg {key} s c{quiet}\r\n"),
            4 => format!("mg {key} N{exptime} v c{quiet}\r\n"),
            5 => format!("mg {key} R500 T{exptime} c v{quiet}\r\n"),
            6 => {
                let value = self.value();
                let mode = self.pick(&["", " ME", " MA", " MP", " MR", " MS"]);
                format!("ms {key} {} T{exptime} F9 c k{mode}{quiet}\r\n{value}\r\n", value.len())
            }
            7 => {
                let (value, number) = (self.value(), self.number(&key));
                let stale = self.pick(&["", " I"]);
                format!("ms {key} {} C{number} c{stale}{quiet}\r\n{value}\r\n", value.len())
            }
            8 => format!("md {key} k{quiet}\r\n"),
            9 => format!("md {key} C{}{quiet}\r\n", self.number(&key)),
            10 => format!("md {key} I T{exptime}{quiet}\r\n"),
            _ => "mn\r\n".into(),
        }
    }

    fn next(&mut self) -> String {
        match self.random.below(5000) {
            0 => format!("flush_all{}\r\n", self.noreply()),
            1..3000 => self.text(),
            3000..4000 => self.counting(),
            _ => self.meta(),
        }
    }

    /// Remembers the numbers in a reply.
    fn learn(&mut self, reply: &[u8]) {
        for line in reply.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"VALUE ")) {
            let line = String::from_utf8_lossy(line);
            if let [_, key, _, _, number] = line.split_whitespace().collect::<Vec<_>>()[..] {
                self.numbers.insert(key.into(), number.parse().unwrap());
            }
        }
    }
}

/// Describes the first place where two replies differ, with the request.
fn differ(request: &str, theirs: &[u8], ours: &[u8]) -> String {
    let at = theirs.iter().zip(ours).position(|(a, b)| a != b).unwrap_or(theirs.len().min(ours.len()));
    let around = |reply: &[u8]| {
        let (from, to) = (at.saturating_sub(300), (at + 200).min(reply.len()));
        reply[from.min(to)..to].escape_ascii().to_string().replace("\\r\\n", "\n")
    };
    let lines: String = request.chars().take(6000).collect();
    format!("{lines}\n--- memcached:\n{}\n--- Granary:\n{}", around(theirs), around(ours))
}

#[test]
fn the_same_answers_to_random_requests() {
    the_same_answers("all");
}

/// With a policy by which all items go through RAM to flash.
#[test]
fn the_same_answers_with_ram_first() {
    the_same_answers("probability:1");
}

/// Both servers, empty, with room enough that no item is dropped.
struct Pair {
    _memcached: OtherServer,
    options: Options,
    server: Server,
    clients: [Client; 2],
    _folder: tempfile::TempDir,
}

impl Pair {
    fn start(admission: &str, operations: u64) -> Pair {
        let folder = tempfile::tempdir().unwrap();
        let memcached = memcached(&["-m", "4096", "-o", "no_lru_crawler,no_lru_maintainer"]);
        let mut options = with_policy(folder.path(), admission);
        options.store.flash_bytes = (64 << 20) + operations * 2048;
        let server = Server::start(&options).unwrap();
        let clients = [Client::new(memcached.address), Client::new(server.address())];
        Pair { _memcached: memcached, options, server, clients, _folder: folder }
    }

    /// Restarts Granary, which changes no reply.
    fn restart_granary(mut self) -> Pair {
        self.server.stop().unwrap();
        self.server = Server::start(&self.options).unwrap();
        self.clients[1] = Client::new(self.server.address());
        self
    }
}

fn the_same_answers(admission: &str) {
    let operations = setting("GRANARY_MEMCACHED_OPERATIONS", 200_000);
    let mut pair = Pair::start(admission, operations);
    let mut requests = Requests { random: Random(setting("GRANARY_SEED", 1)), numbers: HashMap::new() };
    let (mut done, mut bytes, mut windows, mut late) = (0, 0, 0, 0);
    while done < operations {
        let begun = Instant::now();
        while done < operations && begun.elapsed() < WINDOW {
            let batch = 1 + requests.random.below(200);
            let request: String = (0..batch).map(|_| requests.next()).collect();
            pair.clients.iter_mut().for_each(|client| client.ask(request.as_bytes()));
            let [theirs, ours] = pair.clients.each_mut().map(|client| client.hear(request.as_bytes()));
            if begun.elapsed() >= SAFE {
                break;
            }
            assert!(theirs == ours, "after {done} operations: {}", differ(&request, &theirs, &ours));
            requests.learn(&theirs);
            (done, bytes) = (done + batch, bytes + theirs.len());
        }
        windows += 1;
        let paused = Instant::now();
        if begun.elapsed() >= SAFE {
            // The machine stood still: an item may have expired on one side only, so both servers begin anew.
            late += 1;
            assert!(late <= 20, "this machine stood still in {late} of {windows} windows");
            pair = Pair::start(admission, operations);
            requests.numbers.clear();
        } else if done < operations {
            pair = pair.restart_granary();
            std::thread::sleep(PAUSE.saturating_sub(paused.elapsed()));
        }
    }
    let stats = pair.clients[1].lines("stats granary");
    assert!(stats.contains("STAT puts_dropped 0\n"), "{stats}");
    pair.server.stop().unwrap();
    println!("{done} operations in {windows} windows ({late} late), {bytes} bytes of replies compared");
}
