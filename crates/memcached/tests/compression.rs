//! Compressed items are read as they were stored: before and after dictionaries are trained, after all kinds of
//! changes, and after a stop.

mod common;

use common::{Client, options};
use granary_memcached::{Compression, Server};
use std::time::{Duration, Instant};

const ITEMS: u64 = 20_000;

/// A value that shares most of its text with the others.
fn value(key: u64) -> String {
    let city = ["Oslo", "Roma", "Lima", "Kyiv"][key as usize % 4];
    format!(
        "{{\"id\":{key},\"kind\":\"customer\",\"address\":{{\"city\":\"{city}\",\"street\":\"Long Street {}\",\"country\":\"somewhere\"}},\"flags\":[\"active\",\"verified\",\"newsletter\"],\"balance\":{}.50}}",
        key * 7919 % 1000,
        key * 104_729 % 100_000,
    )
}

fn set_all(client: &mut Client, keys: std::ops::Range<u64>) {
    for first in keys.clone().step_by(100) {
        let some = first..keys.end.min(first + 100);
        let requests: Vec<String> = some
            .clone()
            .map(|key| (key, value(key)))
            .map(|(key, value)| format!("set k{key} 5 0 {}\r\n{value}\r\n", value.len()))
            .collect();
        assert_eq!(client.say(requests.concat().as_bytes()), "STORED\r\n".repeat(some.count()).as_bytes());
    }
}

/// Checks that all items are there, except a few whose keys have equal hash bits in the index.
fn check_all(client: &mut Client, keys: std::ops::Range<u64>) {
    let mut found = 0;
    for key in keys.clone() {
        let said = client.say(format!("get k{key}\r\n").as_bytes());
        let value = value(key);
        let expected = format!("VALUE k{key} 5 {}\r\n{value}\r\nEND\r\n", value.len());
        if said != b"END\r\n" {
            assert_eq!(String::from_utf8_lossy(&said), expected);
            found += 1;
        }
    }
    assert!(found * 1000 >= keys.clone().count() * 999, "{found} of {keys:?}");
}

fn statistic(client: &mut Client, name: &str) -> f64 {
    let said = String::from_utf8(client.say(b"stats granary\r\n")).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.unwrap_or_else(|| panic!("{name} is not in {said}")).trim().parse().unwrap()
}

fn items_stay_as_they_are(compression: Compression, admission: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = || {
        let mut options = options(folder.path());
        options.store.memory_bytes = 2 << 20;
        options.store.compression = compression;
        options.store.admission = admission.parse().unwrap();
        options
    };
    let server = Server::start(&options()).unwrap();
    let mut client = Client::new(server.address());
    // The first items are stored before there is a dictionary.
    set_all(&mut client, 0..ITEMS / 2);
    let until = Instant::now() + Duration::from_secs(60);
    while statistic(&mut client, "codec_versions") == 0.0 {
        assert!(Instant::now() < until, "no dictionary is trained");
        set_all(&mut client, 0..1000);
    }
    // What was stored without a dictionary counts, too: the longer the training took, the more that is.
    let ratio = loop {
        set_all(&mut client, ITEMS / 2..ITEMS);
        match statistic(&mut client, "compression_ratio") {
            ratio if ratio > 1.6 || Instant::now() > until => break ratio,
            _ => {}
        }
    };
    assert!(ratio > 1.6, "{compression:?}: {ratio}");
    check_all(&mut client, 0..ITEMS);

    // Commands that change a compressed item.
    let text = value(7).repeat(3);
    client.say(format!("set long 1 0 {}\r\n{text}\r\n", text.len()).as_bytes());
    assert_eq!(client.lines("append long 0 0 5\n-tail"), "STORED\n");
    assert_eq!(client.lines("prepend long 0 0 5\nhead-"), "STORED\n");
    let expected = format!("VALUE long 1 {}\nhead-{text}-tail\nEND\n", text.len() + 10);
    assert_eq!(client.lines("get long"), expected);
    let gets = client.lines("gets long");
    let cas = gets.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap().to_owned();
    assert_eq!(client.lines("touch long 1000"), "TOUCHED\n");
    assert_eq!(client.lines("get long"), expected);
    let long = value(9).repeat(2);
    let swap = format!("cas long 2 0 {} {cas}\n{long}", long.len());
    assert_eq!(client.lines(&swap), "STORED\n");
    assert_eq!(client.lines(&swap), "EXISTS\n");
    assert_eq!(client.lines("set n 0 0 2\n41"), "STORED\n");
    assert_eq!(client.lines("incr n 1"), "42\n");

    drop(client);
    server.stop().unwrap();
    let server = Server::start(&options()).unwrap();
    let mut client = Client::new(server.address());
    check_all(&mut client, 0..ITEMS);
    assert_eq!(client.lines("get long"), format!("VALUE long 2 {}\n{long}\nEND\n", long.len()));
    assert_eq!(statistic(&mut client, "values_undecodable"), 0.0);
    drop(client);
    server.stop().unwrap();
}

#[test]
fn with_zstd_and_all_on_flash() {
    items_stay_as_they_are(Compression::Zstd, "all");
}

#[test]
fn with_lz4_and_all_on_flash() {
    items_stay_as_they_are(Compression::Lz4, "all");
}

#[test]
fn with_zstd_and_ram_first() {
    items_stay_as_they_are(Compression::Zstd, "probability:1");
}
