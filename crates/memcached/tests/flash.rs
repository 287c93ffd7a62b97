//! Items on the device, which are read while other clients are served: clients that pipeline, go away, close their
//! side, or are connected when the server stops.

mod common;
#[path = "../../log/tests/common/random.rs"]
mod random;

use common::with_policy;
use granary_memcached::Server;
use random::Random;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// A server of two threads with 4 MiB of RAM, whose items go to flash when they leave it.
fn start(folder: &Path) -> Server {
    let mut options = with_policy(folder, "probability:1");
    options.threads = Some(2);
    Server::start(&options).unwrap()
}

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    fn send(&mut self, request: &str) {
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line
    }

    /// The keys and values of a reply to `get`.
    fn values(&mut self) -> Vec<(String, String)> {
        let mut values = Vec::new();
        loop {
            let line = self.line();
            if line == "END\r\n" {
                return values;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!((words.len(), words[0], words[2]), (4, "VALUE", "0"), "{line}");
            let mut data = vec![0; words[3].parse::<usize>().unwrap() + 2];
            self.stream.read_exact(&mut data).unwrap();
            let data = String::from_utf8(data).unwrap();
            values.push((words[1].to_owned(), data.strip_suffix("\r\n").unwrap().to_owned()));
        }
    }
}

/// A value that contains its key and version; some take several blocks.
fn value(key: &str, version: u64) -> String {
    let len = if version.is_multiple_of(29) { 30_000 } else { 300 + version as usize * 37 % 1_500 };
    format!("{key}/{version}/{:x<len$}", "")
}

/// Stores items `prefix-0..count` of version 0.
fn fill(address: SocketAddr, prefix: &str, count: usize) {
    let mut client = Client::new(address);
    for first in (0..count).step_by(50) {
        let keys = (first..(first + 50).min(count)).map(|i| format!("{prefix}-{i}"));
        let requests = keys.clone().map(|key| {
            let value = value(&key, 1);
            format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())
        });
        client.send(&requests.collect::<String>());
        keys.for_each(|_| assert_eq!(client.line(), "STORED\r\n"));
    }
}

fn statistic(address: SocketAddr, group: &str, name: &str) -> u64 {
    let mut client = Client::new(address);
    client.send(&format!("stats {group}\r\n"));
    loop {
        let line = client.line();
        assert_ne!(line, "END\r\n", "{name} is told");
        if let Some(value) = line.strip_prefix(&format!("STAT {name} ")) {
            return value.trim().parse().unwrap();
        }
    }
}

/// Waits until `bytes` bytes are on the device: until then items are read from write buffers.
fn await_flash(address: SocketAddr, bytes: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while statistic(address, "granary", "bytes_written") < bytes {
        assert!(Instant::now() < deadline, "too little is written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

enum Expected {
    Line(&'static [&'static str]),
    /// The keys asked for, and the version that each must have.
    Values(Vec<(String, Option<u64>)>),
}

/// One client's requests for keys that no other client uses: replies come in order, and each shows the effect of all
/// requests before it.
fn talk(address: SocketAddr, number: u64, rounds: u64) {
    let mut random = Random(number);
    let mut client = Client::new(address);
    let mut versions: HashMap<String, u64> = HashMap::new();
    let key = |i: u64| format!("own{number}-{i}");
    let mut newest = 1;
    let (mut asked, mut found) = (0, 0);
    versions.extend((0..150).map(|i| (key(i), 1)));
    for _ in 0..rounds {
        let (mut request, mut expected) = (String::new(), Vec::new());
        for _ in 0..1 + random.below(40) {
            let one = key(random.below(150));
            match random.below(12) {
                0 => {
                    newest += 1;
                    let value = value(&one, newest);
                    request += &format!("set {one} 0 0 {}\r\n{value}\r\n", value.len());
                    versions.insert(one, newest);
                    expected.push(Expected::Line(&["STORED\r\n"]));
                }
                1 => {
                    request += &format!("delete {one}\r\n");
                    versions.remove(&one);
                    expected.push(Expected::Line(&["DELETED\r\n", "NOT_FOUND\r\n"]));
                }
                2 => {
                    request += "mn\r\n";
                    expected.push(Expected::Line(&["MN\r\n"]));
                }
                n => {
                    let more = (0..if n == 3 { random.below(30) } else { 0 }).map(|_| key(random.below(150)));
                    let keys: Vec<String> = std::iter::once(one).chain(more.collect::<Vec<_>>()).collect();
                    request += &format!("get {}\r\n", keys.join(" "));
                    let right = |key: String| (key.clone(), versions.get(&key).copied());
                    expected.push(Expected::Values(keys.into_iter().map(right).collect()));
                }
            }
        }
        // Some clients send more while their earlier requests are looked up.
        let piece = if number.is_multiple_of(2) { request.len() } else { 1 + random.below(300) as usize };
        for piece in request.as_bytes().chunks(piece) {
            client.send(std::str::from_utf8(piece).unwrap());
        }
        for expected in expected {
            match expected {
                Expected::Line(lines) => {
                    let line = client.line();
                    assert!(lines.contains(&line.as_str()), "{line}");
                }
                Expected::Values(keys) => {
                    let mut values = client.values().into_iter().peekable();
                    for (key, version) in keys {
                        asked += u64::from(version.is_some());
                        if let Some((_, is)) = values.next_if(|(found, _)| *found == key) {
                            let right = version.map(|version| value(&key, version));
                            assert!(Some(&is) == right.as_ref(), "{key}: {} {version:?}", &is[..20]);
                            found += 1;
                        }
                    }
                    assert!(values.next().is_none(), "values come in the order asked for");
                }
            }
        }
    }
    assert!(found * 10 > asked * 9, "{found} of {asked} were found");
}

#[test]
fn replies_keep_their_order_while_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    for number in 0..24 {
        fill(server.address(), &format!("own{number}"), 150);
    }
    // These items take the others' place in RAM.
    fill(server.address(), "other", 20_000);
    await_flash(server.address(), 4 << 20);
    std::thread::scope(|scope| {
        for number in 0..24 {
            let address = server.address();
            scope.spawn(move || talk(address, number, 60));
        }
    });
    let from_flash = statistic(server.address(), "granary", "hits_flash");
    assert!(from_flash > 1_000, "{from_flash}");
    server.stop().unwrap();
}

/// Clients of both threads count the same items, which are on the device, in the same order and at the same time.
#[test]
fn no_change_of_an_item_on_the_device_is_lost() {
    const COUNTERS: usize = 300;
    const CLIENTS: u64 = 6;
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let address = server.address();
    let requests: String = (0..COUNTERS).map(|i| format!("incr counter-{i} 1\r\n")).collect();
    let count = || -> Vec<Option<u64>> {
        let mut client = Client::new(address);
        client.send(&requests);
        (0..COUNTERS).map(|_| client.line().trim().parse().ok()).collect()
    };
    for round in 0..4 {
        let mut client = Client::new(address);
        for i in 0..COUNTERS {
            client.send(&format!("set counter-{i} 0 0 4\r\n1000\r\n"));
            assert_eq!(client.line(), "STORED\r\n");
        }
        // These items take the others' place in RAM.
        fill(address, &format!("round{round}"), 24_000);
        let told: Vec<Vec<Option<u64>>> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(count)).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        let mut found = 0;
        for i in 0..COUNTERS {
            let mut numbers: Vec<Option<u64>> = told.iter().map(|numbers| numbers[i]).collect();
            // An item may have been lost, for all.
            if numbers.iter().any(Option::is_some) {
                numbers.sort_unstable();
                assert!(numbers.iter().copied().eq((1_001..1_001 + CLIENTS).map(Some)), "{i}: {numbers:?}");
                found += 1;
            }
        }
        assert!(found * 10 > COUNTERS * 9, "{found} of {COUNTERS} were found");
    }
    let from_flash = statistic(address, "granary", "hits_flash");
    assert!(from_flash > COUNTERS as u64, "{from_flash} hits on flash");
    server.stop().unwrap();
}

fn gets(keys: std::ops::Range<usize>) -> String {
    keys.map(|i| format!("get item-{i}\r\n")).collect()
}

#[test]
fn clients_that_go_away_take_their_reads_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    fill(server.address(), "item", 20_000);
    for round in 0..300 {
        let mut client = Client::new(server.address());
        client.send(&gets(round * 30..round * 30 + 30));
        if round % 3 == 0 {
            // Has the connection closed by a reset.
            socket2::SockRef::from(client.stream.get_ref()).set_linger(Some(Duration::ZERO)).unwrap();
        } else if round % 3 == 1 {
            client.values();
        }
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while statistic(server.address(), "", "curr_connections") > 1 {
        assert!(Instant::now() < deadline, "closed connections still count");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut client = Client::new(server.address());
    for i in 0..500 {
        client.send(&gets(i..i + 1));
        let key = format!("item-{i}");
        assert!(client.values().iter().all(|found| *found == (key.clone(), value(&key, 1))));
    }
    server.stop().unwrap();
}

#[test]
fn a_client_that_has_closed_its_side_gets_all_replies() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    fill(server.address(), "item", 20_000);
    await_flash(server.address(), 4 << 20);
    for round in 0..20 {
        let mut client = Client::new(server.address());
        let first = round * 100;
        client.send(&gets(first..first + 100));
        client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
        let mut found = 0;
        for i in first..first + 100 {
            let key = format!("item-{i}");
            let values = client.values();
            assert!(values.iter().all(|found| *found == (key.clone(), value(&key, 1))));
            found += values.len();
        }
        assert_eq!(client.line(), "", "then the connection ends");
        assert!(found > 90, "{found} of 100");
    }
    let from_flash = statistic(server.address(), "granary", "hits_flash");
    assert!(from_flash > 100, "{from_flash} hits on flash");
}

#[test]
fn a_server_that_stops_answers_what_has_arrived() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..5 {
        let server = start(folder.path());
        fill(server.address(), "item", 20_000);
        let mut client = Client::new(server.address());
        // These requests fit one read of the server, but are more than it looks up at once.
        client.send(&gets(0..1_500));
        client.stream.fill_buf().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| server.stop().unwrap());
            for i in 0..1_500 {
                let key = format!("item-{i}");
                assert!(client.values().iter().all(|found| *found == (key.clone(), value(&key, 1))));
            }
            assert_eq!(client.line(), "");
        });
    }
}

/// Values of 100 KB, of which ten find room at a time: the bytes read from the device stay near those asked for. The
/// server does not read all remaining values for each ten.
#[test]
fn many_long_values_are_read_about_once() {
    const ITEMS: usize = 150;
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let address = server.address();
    let mut client = Client::new(address);
    let data = "x".repeat(100_000);
    for i in 0..ITEMS {
        client.send(&format!("set long-{i} 0 0 {}\r\n{data}\r\n", data.len()));
        assert_eq!(client.line(), "STORED\r\n");
    }
    // More than two segments of 4 MiB, of 40 values each.
    await_flash(address, 8 << 20);
    let keys: Vec<String> = (0..ITEMS).map(|i| format!(" long-{i}")).collect();
    let many = format!("get{}\r\n", keys.concat());
    let piped = keys.iter().map(|key| format!("get{key}\r\n")).collect();
    for (requests, replies) in [(many, 1), (piped, ITEMS)] {
        let before = statistic(address, "granary", "bytes_read");
        client.send(&requests);
        let found: usize = (0..replies).map(|_| client.values().len()).sum();
        let read = statistic(address, "granary", "bytes_read") - before;
        println!("{found} values of 100 KB, {read} bytes read");
        assert!(found > ITEMS / 2, "{found} found");
        assert!(read > (ITEMS / 3 * 100_000) as u64, "{read} bytes read: they were not on the device");
        assert!(read < (3 * ITEMS * 100_000) as u64, "{read} bytes read for {found} values of 100 KB");
    }
}
