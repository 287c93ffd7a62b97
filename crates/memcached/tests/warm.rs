//! Stops and kills: stored items are there again; deleted, overwritten, flushed and expired ones are not.

mod common;
#[path = "../../log/tests/common/golden.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod golden;
#[path = "../../log/tests/common/random.rs"]
mod random;

use common::process::{self, Process};
use common::{Client, SYNCED, with_policy};
use granary_memcached::Server;
use random::Random;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The program of the server process; does nothing as a test.
#[test]
fn child() {
    process::serve();
}

/// What a client knows of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// This version was acknowledged.
    Stored(u64),
    Deleted,
}

/// Kills in the middle of changes. An item may be lost; an older version, or a deleted one, may not come back.
#[test]
fn nothing_old_comes_back_after_a_kill() {
    nothing_old_comes_back("all", After::Kill);
}

#[test]
fn nothing_old_comes_back_after_a_kill_with_ram_first() {
    nothing_old_comes_back("probability:0.7", After::Kill);
}

/// Where changes are synced, items on flash survive a crash of the machine, too.
#[test]
fn nothing_old_comes_back_after_a_loss_of_power() {
    nothing_old_comes_back(&format!("all{SYNCED}"), After::PowerLoss);
    nothing_old_comes_back(&format!("probability:0.7{SYNCED}"), After::PowerLoss);
}

#[derive(Clone, Copy, PartialEq)]
enum After {
    Kill,
    /// Simulated by another boot id; the kernel still has all that was written.
    PowerLoss,
}

/// Waits until the SSD is written no more: it has all but the last write buffer.
fn await_written(client: &mut Client) {
    let mut before = String::new();
    loop {
        let figures = client.lines("stats granary");
        let written = figures.lines().find(|line| line.starts_with("STAT bytes_written ")).unwrap();
        if written == before && !written.ends_with(" 0") {
            return;
        }
        before = written.to_owned();
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn nothing_old_comes_back(policy: &str, after: After) {
    let folder = tempfile::tempdir().unwrap();
    let kills: u64 = std::env::var("GRANARY_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    // A sync for each change is slow, so there are fewer kills.
    let kills = if after == After::PowerLoss { kills.div_ceil(2) } else { kills };
    let mut random = Random(std::env::var("GRANARY_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1));
    let mut known: HashMap<u64, Known> = HashMap::new();
    let (mut version, mut highest, mut warm, mut stored) = (0, 0, 0, 0);
    for kill in 0..kills {
        let process = Process::start(folder.path(), policy, 0);
        let mut client = Client::new(process.address);
        for (key, known) in &known {
            let heard = client.lines(&format!("gets {key}"));
            stored += u64::from(*known != Known::Deleted);
            let Some(heard) = heard.strip_prefix(&format!("VALUE {key} 0 ")) else { continue };
            let mut lines = heard.lines();
            let number: u64 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
            let value: u64 = lines.next().unwrap().trim_start_matches('v').parse().unwrap();
            assert_eq!(Known::Stored(value), *known, "key {key}");
            highest = highest.max(number);
            warm += 1;
        }
        // Fills several write buffers of 4 MiB: the items in the last one are lost with the process.
        let mut left = 4000 + random.below(4000);
        while left > 0 {
            // Changes that arrive together are synced together.
            let count = left.min(1 + random.below(60));
            left -= count;
            let mut requests = Vec::new();
            for _ in 0..count {
                let key = random.below(3000);
                version += 1;
                let value = format!("v{version:03000}");
                let (request, then) = match random.below(4) {
                    0 => (format!("delete {key}"), Known::Deleted),
                    1 => (format!("ms {key} {} c\n{value}", value.len()), Known::Stored(version)),
                    _ => (format!("set {key} 0 0 {}\n{value}", value.len()), Known::Stored(version)),
                };
                requests.push(request);
                known.insert(key, then);
            }
            let heard = client.lines(&requests.join("\n"));
            assert_eq!(heard.lines().count() as u64, count, "{heard}");
            for number in heard.lines().filter_map(|line| line.strip_prefix("HD c")) {
                let number: u64 = number.parse().unwrap();
                assert!(number > highest, "the number {number} was given before");
                highest = number;
            }
        }
        // Never before the first kill, so that items are there at the start after it.
        if kill > 0 && random.below(3) == 0 {
            assert_eq!(client.lines("flush_all"), "OK\n");
            known.values_mut().for_each(|known| *known = Known::Deleted);
        }
        if after == After::PowerLoss {
            await_written(&mut client);
        }
        process.kill();
        if after == After::PowerLoss {
            golden::lose_power(&folder.path().join("memcached/items.state"));
        }
    }
    process::end(folder.path(), policy);
    println!("{policy}: {kills} kills, {stored} items stored, {warm} of them there after a kill");
    // What leaves RAM while all write buffers are full is dropped; a kill leaves what is in RAM, a loss of power does not.
    let is_dropped = after == After::PowerLoss && !policy.starts_with("all");
    let least = if is_dropped { 0 } else { stored / 4 };
    assert!(warm > least, "{warm} of {stored} items were there after a kill");
}

#[test]
fn all_is_there_after_a_stop() {
    for policy in ["all", "flashield", "reuse"] {
        all_is_there(policy);
    }
}

fn all_is_there(policy: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = with_policy(folder.path(), policy);
    options.store.memory_bytes = 16 << 20;
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    let mut request = String::new();
    for i in 0..5000 {
        let value = "x".repeat(i % 900);
        request += &format!("set k{i} {i} 0 {} noreply\n{value}\n", value.len());
    }
    let long = "y".repeat(900_000);
    request += &format!("set long 0 0 900000\n{long}\nset marked 0 1000 1\nm\nmd marked I\ngets k7");
    let said = client.lines(&request);
    assert!(said.starts_with("STORED\nSTORED\nHD\nVALUE k7 7 7 8\n"), "{said}");
    server.stop().unwrap();
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    let again = client.lines("gets k7\nmg marked v\nms new 1 c\n1");
    assert_eq!(again, format!("VALUE k7 7 7 8\n{}\nEND\nVA 1 X W\nm\nHD c5004\n", "x".repeat(7)));
    for i in 0..5000 {
        let expected = format!("VALUE k{i} {i} {}\n{}\nEND\n", i % 900, "x".repeat(i % 900));
        assert_eq!(client.lines(&format!("get k{i}")), expected);
    }
    assert!(client.lines("get long") == format!("VALUE long 0 900000\n{long}\nEND\n"));
    server.stop().unwrap();
}

#[test]
fn a_start_that_is_refused_gives_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = common::start(folder.path());
    assert_eq!(Client::new(server.address()).lines("set a 0 0 1\na"), "STORED\n");
    server.stop().unwrap();
    let mut without_flash = common::options(folder.path());
    without_flash.store.flash_bytes = 0;
    without_flash.store.bytes_per_day = Some(1 << 30);
    let refused = Server::start(&without_flash).err().expect("a write budget needs flash");
    assert!(refused.to_string().contains("flash"), "{refused}");
    let server = common::start(folder.path());
    assert_eq!(Client::new(server.address()).lines("get a"), "VALUE a 0 1\na\nEND\n");
    server.stop().unwrap();
    without_flash.store.bytes_per_day = None;
    Server::start(&without_flash).unwrap().stop().unwrap();
    let server = common::start(folder.path());
    assert_eq!(Client::new(server.address()).lines("get a"), "END\n", "changes went by it");
    server.stop().unwrap();
}

#[test]
fn a_flush_holds_after_stops_kills_and_while_nobody_serves() {
    let folder = tempfile::tempdir().unwrap();
    let items = "set a 0 0 1\na\nset b 0 2 1\nb";
    let server = common::start(folder.path());
    let mut client = Client::new(server.address());
    assert_eq!(client.lines(&format!("{items}\nflush_all\nset c 0 0 1\nc")), "STORED\nSTORED\nOK\nSTORED\n");
    server.stop().unwrap();
    let server = common::start(folder.path());
    let mut client = Client::new(server.address());
    assert_eq!(client.lines("get a b c"), "VALUE c 0 1\nc\nEND\n");
    // A flush that is planned for a time when the server is down.
    let before_flush = |client: &mut Client, request: &str, reply: &str| {
        let begun = Instant::now();
        let heard = client.lines(request);
        // Unless the server was held up so long that it was time to flush.
        if begun.elapsed() < Duration::from_secs(1) {
            assert_eq!(heard, reply);
        }
    };
    let planned = format!("{items}\nflush_all 2\nget a c");
    before_flush(&mut client, &planned, "STORED\nSTORED\nOK\nVALUE a 0 1\na\nVALUE c 0 1\nc\nEND\n");
    server.abandon();
    std::thread::sleep(Duration::from_millis(3100));
    let server = common::start(folder.path());
    let mut client = Client::new(server.address());
    assert_eq!(client.lines("get a b c\nset a 0 0 1\n2\nget a"), "END\nSTORED\nVALUE a 0 1\n2\nEND\n");
    // A flush that is planned for a time when the server is up.
    before_flush(&mut client, "flush_all 2\nget a", "OK\nVALUE a 0 1\n2\nEND\n");
    std::thread::sleep(Duration::from_millis(3100));
    assert_eq!(client.lines("get a\nadd a 0 0 1\n3\nget a"), "END\nSTORED\nVALUE a 0 1\n3\nEND\n");
    server.stop().unwrap();
}

#[test]
fn without_its_numbers_a_store_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let server = common::start(folder.path());
    assert_eq!(Client::new(server.address()).lines("set a 0 0 1\na"), "STORED\n");
    server.stop().unwrap();
    std::fs::remove_file(folder.path().join("memcached/numbers")).unwrap();
    let server = common::start(folder.path());
    assert_eq!(Client::new(server.address()).lines("get a"), "END\n");
    server.stop().unwrap();
}

/// A clock that was set back by some seconds goes on from where it was. If it was set back by more, the items are given
/// up, also those that had not expired.
#[test]
fn what_has_expired_stays_so_when_the_clock_is_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&with_policy(folder.path(), "all")).unwrap();
    let stored = Client::new(server.address()).lines("set long 0 7200 1\n1\nset short 0 20 1\n1");
    assert_eq!(stored, "STORED\nSTORED\n");
    server.stop().unwrap();
    let file = folder.path().join("memcached/time");
    let reached = || std::fs::read_to_string(&file).unwrap().trim_end().parse::<u64>().unwrap();
    let now = reached();
    // As if it had been stopped so late.
    let started_after = |seconds: u64| {
        std::fs::write(&file, format!("{:010}\n", now + seconds)).unwrap();
        let process = Process::start(folder.path(), "all", 0);
        let client = Client::new(process.address);
        (process, client)
    };
    let (process, mut client) = started_after(40);
    assert_eq!(client.lines("get long short"), "VALUE long 0 1\n1\nEND\n");
    let deadline = Instant::now() + Duration::from_secs(60);
    while reached() <= now + 40 {
        assert!(Instant::now() < deadline, "the time is noted");
        client.lines("get long");
        std::thread::sleep(Duration::from_millis(50));
    }
    process.kill();
    let (process, mut client) = started_after(3600);
    assert_eq!(client.lines("get long short"), "END\n");
    process.kill();
    process::end(folder.path(), "all");
}
