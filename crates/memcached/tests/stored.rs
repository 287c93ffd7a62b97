//! An item that was answered STORED is there: the next `get` finds it, and each item that is no longer there was
//! counted.

mod common;

use common::{Client, options};
use granary_memcached::{Options, Server};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn sized(folder: &Path, memory_mib: u64, flash_mib: u64, admission: &str) -> Options {
    let mut options = options(folder);
    options.store.memory_bytes = memory_mib * MIB;
    options.store.flash_bytes = flash_mib * MIB;
    options.store.admission = admission.parse().unwrap();
    options
}

fn statistics(client: &mut Client) -> HashMap<String, u64> {
    let lines = client.lines("stats\nstats granary");
    let pair = |line: &str| {
        let mut words = line.strip_prefix("STAT ")?.split(' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    lines.lines().filter_map(pair).collect()
}

fn set(key: u64, len: usize, exptime: u64) -> Vec<u8> {
    let mut request = format!("set key{key} 0 {exptime} {len}\r\n").into_bytes();
    request.resize(request.len() + len, b'a' + (key % 26) as u8);
    request.extend_from_slice(b"\r\n");
    request
}

fn is_found(reply: &[u8], key: u64, len: usize) -> bool {
    let begin = format!("VALUE key{key} 0 {len}\r\n");
    let is_whole = || reply.len() == begin.len() + len + 7 && reply[begin.len()] == b'a' + (key % 26) as u8;
    assert!(reply == b"END\r\n" || (reply.starts_with(begin.as_bytes()) && is_whole()), "of key {key}");
    reply != b"END\r\n"
}

/// How many of the keys are found; all are sent in one go.
fn found(client: &mut Client, keys: Range<u64>, len: usize) -> u64 {
    let request: String = keys.clone().map(|key| format!("get key{key}\r\n")).collect();
    let replies = client.say(request.as_bytes());
    let (mut rest, mut found) = (&replies[..], 0);
    for key in keys {
        let is_miss = rest.starts_with(b"END\r\n");
        let bytes = if is_miss { 5 } else { format!("VALUE key{key} 0 {len}\r\n").len() + len + 7 };
        let reply = rest.split_off(..bytes).expect("the reply is whole");
        found += u64::from(is_found(reply, key, len));
    }
    assert!(rest.is_empty(), "more than the replies");
    found
}

const STORED: &str = "STORED\r\n";

/// Sends a request that begins with `changes` changes, again until all are stored: a change that waits longer than a
/// second for the device is refused, which `refused` counts. Returns the replies.
fn store(client: &mut Client, request: &[u8], changes: usize, refused: &mut u64) -> Vec<u8> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let replies = client.say(request);
        if replies.starts_with(STORED.repeat(changes).as_bytes()) {
            return replies;
        }
        let is_refusal = |line: &&[u8]| *line == b"SERVER_ERROR out of memory storing object\r";
        let count = replies.split(|byte| *byte == b'\n').filter(is_refusal).count() as u64;
        assert!(count > 0 && Instant::now() < deadline, "{}", replies.escape_ascii());
        *refused += count;
    }
}

/// Nearly everything is read right after it is written, as sessions are: then no unread items are left that could be
/// evicted first.
#[test]
fn the_next_get_finds_what_was_stored() {
    for (memory, flash, admissions) in [
        (64, 0, &["reuse"][..]),
        (16, 0, &["reuse"]),
        (8, 0, &["reuse"]),
        (2, 0, &["reuse"]),
        (64, 1024, &["reuse"]),
        (8, 64, &["reuse", "flashield", "all", "none", "reject-first", "probability:0.5"]),
        (1, 64, &["reuse", "all"]),
    ] {
        for admission in admissions {
            let folder = tempfile::tempdir().unwrap();
            let server = Server::start(&sized(folder.path(), memory, flash, admission)).unwrap();
            let (mut client, mut refused) = (Client::new(server.address()), 0);
            // Of each length three times as many as fit RAM; then items of all lengths in turn.
            let sizes = [10 << 10, 600 << 10, 1_000_000, 1_048_500, 100, 300 << 10];
            let count = |len: usize| (memory * MIB * 3 / len as u64).clamp(30, 12_000);
            let same = sizes.iter().flat_map(|len| std::iter::repeat_n(*len, count(*len) as usize));
            let mixed = sizes.iter().copied().cycle().take(200);
            for (key, len) in same.chain(mixed).enumerate() {
                let key = key as u64;
                let mut request = set(key, len, 0);
                request.extend_from_slice(format!("get key{key}\r\n").as_bytes());
                let reply = store(&mut client, &request, 1, &mut refused);
                let rest = &reply[STORED.len()..];
                assert!(is_found(rest, key, len), "{memory}/{flash} MiB, {admission}: {len} bytes of {key}");
            }
            // Items that are stored together are all there.
            for first in (1_000_000..1_000_500).step_by(50) {
                let request: Vec<u8> = (first..first + 50).flat_map(|key| set(key, 2_000, 0)).collect();
                store(&mut client, &request, 50, &mut refused);
                for key in first..first + 50 {
                    let reply = client.say(format!("get key{key}\r\n").as_bytes());
                    let case = format!("{memory}/{flash} MiB, {admission}: {key}");
                    assert!(is_found(&reply, key, 2_000), "{case}: {:?}", statistics(&mut client));
                }
            }
            assert_eq!(statistics(&mut client)["store_no_memory"], refused);
            assert!(flash > 0 || refused == 0, "RAM alone has room at once: {refused} were refused");
            drop(client);
            server.stop().unwrap();
        }
    }
}

/// How far the expected counts may be wrong: keys with equal hash bits are counted by estimate.
fn unsure(stats: &HashMap<String, u64>) -> u64 {
    stats["index_displaced"].isqrt() * 4
}

/// The statistics once every stored item is there or was counted when it left, and the counts no longer change.
fn at_rest(client: &mut Client, stored: u64, case: &str) -> HashMap<String, u64> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut stats = statistics(client);
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let before = std::mem::replace(&mut stats, statistics(client));
        let is_still =
            before["evictions"] == stats["evictions"] && before["curr_items"] == stats["curr_items"];
        let balance = stats["curr_items"] + stats["evictions"] + stats["reclaimed"];
        if is_still && balance.abs_diff(stored) <= unsure(&stats) {
            return stats;
        }
        assert!(Instant::now() < deadline, "{case}: {stored} stored, {balance} counted, {stats:?}");
    }
}

/// Each key is stored once. Items that are no longer there were evicted for others, or had expired.
#[test]
fn what_is_not_there_was_counted() {
    for (memory, flash, admission, len, count) in [
        (8, 0, "reuse", 1_000, 30_000),
        (16, 0, "reuse", 1_000_000, 60),
        (8, 64, "reuse", 1_000, 150_000),
        (8, 64, "reuse", 100_000, 3_000),
        (8, 64, "all", 1_000, 150_000),
        (8, 64, "all", 600_000, 300),
        (8, 64, "none", 10_000, 3_000),
        (8, 64, "flashield", 1_000, 100_000),
        (4, 64, "probability:0.5", 300, 300_000),
        (4, 32, "reject-first", 70_000, 2_000),
    ] {
        let case = format!("{memory}/{flash} MiB, {admission}: {count} items of {len} bytes");
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&sized(folder.path(), memory, flash, admission)).unwrap();
        let mut client = Client::new(server.address());
        let (mut stored, mut key) = (0, 0);
        let batch = (200_000 / len as u64).clamp(1, 100);
        while key < count {
            let request: Vec<u8> =
                (key..key + batch).flat_map(|key| set(key, len, if key % 10 == 0 { 1 } else { 0 })).collect();
            let reply = String::from_utf8(client.say(&request)).unwrap();
            stored += reply.matches("STORED").count() as u64;
            // Some of the items are read.
            let gets: String = (key..key + batch).step_by(3).map(|key| format!("get key{key}\r\n")).collect();
            client.say(gets.as_bytes());
            key += batch;
        }
        // Waits until the cleaner is done.
        let stats = at_rest(&mut client, stored, &case);
        assert_eq!(stats["total_items"], stored, "{case}");
        assert_eq!(stored + stats["store_no_memory"], key, "{case}");
        let left = stats["evictions"] + stats["reclaimed"];
        let unsure = unsure(&stats);
        assert!(left > 0, "{case}: {stats:?}");
        assert!(
            stats["evicted_unfetched"] <= stats["evictions"]
                && stats["expired_unfetched"] <= stats["reclaimed"]
        );
        let batches = (0..key).step_by(batch as usize);
        let found: u64 = batches.map(|first| found(&mut client, first..key.min(first + batch), len)).sum();
        let after = at_rest(&mut client, stored, &case);
        // Expired items are still there but not found. Items that are read go to RAM, which displaces others.
        let there = found + after["get_expired"] - stats["get_expired"];
        let least = after["curr_items"].saturating_sub(unsure);
        let expected = least..=stats["curr_items"] + unsure;
        assert!(expected.contains(&there), "{case}: {there} are there, not {expected:?}, {after:?}");
        drop(client);
        server.stop().unwrap();
    }
}

#[test]
fn what_is_stored_expired_is_told_from_what_was_never_there() {
    for flash in [0, 64] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&sized(folder.path(), 64, flash, "reuse")).unwrap();
        let mut client = Client::new(server.address());
        assert_eq!(client.lines("set a 0 0 1\na\nset a 0 -1 1\nb\nget a"), "STORED\nSTORED\nEND\n");
        assert_eq!(statistics(&mut client)["get_expired"], 1);
        assert_eq!(client.lines("get b\nadd a 0 0 1\nc\nget a"), "END\nSTORED\nVALUE a 0 1\nc\nEND\n");
        assert_eq!(statistics(&mut client)["get_expired"], 1);
        assert_eq!(client.lines("touch a -1\nget a"), "TOUCHED\nEND\n");
        assert_eq!(statistics(&mut client)["get_expired"], 2);
    }
}

/// An item of the size limit must fit the RAM that all items share.
#[test]
fn too_little_ram_is_refused_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let start = |memory_kib: u64, flash_mib, admission| {
        let mut options = sized(folder.path(), 1, flash_mib, admission);
        options.store.memory_bytes = memory_kib << 10;
        Server::start(&options).map(|_| ()).map_err(|error| error.to_string())
    };
    let refused = start(2047, 0, "reuse").unwrap_err();
    assert!(refused.contains("2096128 bytes of RAM") && refused.contains("2097152"), "{refused}");
    assert!(start(2047, 64, "none").is_err());
    assert_eq!(start(2048, 0, "reuse"), Ok(()));
    assert_eq!(start(1024, 64, "reuse"), Ok(()));
}

/// Items on flash miss the changes of a server that uses no flash: they are given up.
#[test]
fn what_changed_without_flash_does_not_come_back_with_it() {
    for (admission, killed) in [("reuse", false), ("reuse", true), ("all", false), ("all", true)] {
        let folder = tempfile::tempdir().unwrap();
        let options = sized(folder.path(), 64, 64, admission);
        let end = |server: Server| if killed { server.abandon() } else { server.stop().unwrap() };
        let say = |server: &Server, request: &str| Client::new(server.address()).lines(request);
        let server = Server::start(&options).unwrap();
        assert_eq!(say(&server, "set a 0 0 2\nv1\nset b 0 0 2\nv1\nset c 0 0 2\nv1"), "STORED\n".repeat(3));
        end(server);
        let server = Server::start(&sized(folder.path(), 64, 0, admission)).unwrap();
        assert_eq!(say(&server, "get a b c"), "END\n");
        assert_eq!(say(&server, "set a 0 0 2\nv2\ndelete b"), "STORED\nNOT_FOUND\n");
        end(server);
        let server = Server::start(&options).unwrap();
        assert_eq!(say(&server, "get a b c"), "END\n");
        // But a server does not give up the items that another server has open.
        assert!(Server::start(&sized(folder.path(), 64, 0, admission)).is_err());
        assert_eq!(say(&server, "set a 0 0 2\nv3\nget a"), "STORED\nVALUE a 0 2\nv3\nEND\n");
        server.stop().unwrap();
    }
}
