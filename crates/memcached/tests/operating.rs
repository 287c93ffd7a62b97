//! Features for the operator: Unix sockets, lists of items and connections, forbidden commands.

mod common;

use common::{Client, memcached, options, with_policy};
use granary_memcached::{Flush, Server, UnixSocket};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn say(stream: &mut UnixStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut heard = [0; 1000];
    let len = stream.read(&mut heard).unwrap();
    String::from_utf8_lossy(&heard[..len]).into_owned()
}

#[test]
fn a_unix_socket_beside_tcp_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut options = options(folder.path());
    options.socket = Some(UnixSocket { path: path.clone(), mode: 0o740 });
    let server = Server::start(&options).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o740);
    assert_eq!(server.places(), format!("{} and unix:{}", server.address(), path.display()));
    let mut local = UnixStream::connect(&path).unwrap();
    assert_eq!(say(&mut local, "set a 0 0 1\r\nx\r\n"), "STORED\r\n");
    assert_eq!(Client::new(server.address()).lines("get a"), "VALUE a 0 1\nx\nEND\n");
    // A second server does not take over a socket that is being served.
    let other = tempfile::tempdir().unwrap();
    let mut second = common::options(other.path());
    (second.address, second.socket) = (None, options.socket.clone());
    let error = Server::start(&second).err().unwrap().to_string();
    assert!(error.contains("in use"), "{error}");
    server.stop().unwrap();
    assert!(!path.exists());
    // A socket that was left behind is replaced, another file is not.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = Server::start(&second).unwrap();
    assert_eq!(say(&mut UnixStream::connect(&path).unwrap(), "get a\r\n"), "END\r\n");
    server.stop().unwrap();
    std::fs::write(&path, "mine").unwrap();
    let error = Server::start(&second).err().unwrap().to_string();
    assert!(error.contains("no socket"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    second.socket = None;
    assert!(Server::start(&second).err().unwrap().to_string().contains("no address and no socket"));
}

#[test]
fn nobody_is_served_by_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.connections_max = 0;
    assert_eq!(
        Server::start(&options).err().unwrap().to_string(),
        "0 connections can serve nobody: give at least 1"
    );
    (options.connections_max, options.threads) = (1, Some(0));
    assert!(Server::start(&options).err().unwrap().to_string().starts_with("0 threads"));
}

#[test]
fn flushing_can_be_forbidden() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.flush = Flush::Refused;
    let server = Server::start(&options).unwrap();
    let memcached = memcached(&["-F"]);
    let request =
        "set a 0 0 1\nx\nflush_all\nflush_all 1\nflush_all noreply\nflush_all x\nget a\nstats settings";
    let [theirs, ours] = [memcached.address, server.address()].map(|address| {
        let lines = Client::new(address).lines(request);
        lines
            .lines()
            .filter(|line| !line.starts_with("STAT ") || line.contains("flush_"))
            .map(String::from)
            .collect::<Vec<_>>()
    });
    assert_eq!(ours, theirs);
    assert!(ours.contains(&"STAT flush_enabled no".to_owned()));
}

/// The lines of a list, without their common prefix. memcached ignores bytes that are sent together with the request
/// for a list.
fn list(address: SocketAddr, request: &str, prefix: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    let end = if prefix == "mg " { "EN" } else { "END" };
    let lines = BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| line != end);
    lines.map(|line| line.strip_prefix(prefix).expect(&line).to_owned()).collect()
}

#[test]
fn items_are_listed_as_in_memcached() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path())).unwrap();
    let memcached = memcached(&[]);
    let mut clients = [Client::new(memcached.address), Client::new(server.address())];
    let request = "set plain 0 0 1\nx\nset a%b:c/d~e 7 0 3\nxyz\nset soon 0 2000000000 1\nx\nset gone 0 -1 1\nx\nget soon\n\
                   set deleted 0 0 1\nx\ndelete deleted";
    clients.iter_mut().for_each(|client| _ = client.lines(request));
    let [theirs, ours] = [memcached.address, server.address()].map(|address| {
        let mut lines = list(address, "lru_crawler metadump all", "key=");
        // memcached's clock is sometimes a second behind, which `la` shows; its slab classes differ.
        lines.iter_mut().for_each(|line| {
            let words = line.split(' ').filter(|word| !word.starts_with("la=") && !word.starts_with("cls="));
            *line = words.collect::<Vec<_>>().join(" ");
        });
        lines.sort();
        lines
    });
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 3);
    for request in [
        "lru_crawler metadump hash",
        "lru_crawler metadump 1",
        "lru_crawler metadump 3,1",
        "lru_crawler metadump ,1,",
    ] {
        assert_eq!(list(server.address(), request, "key=").len(), 3, "{request}");
    }
    let mut keys = list(server.address(), "lru_crawler mgdump all", "mg ");
    keys.sort();
    assert_eq!(keys, ["a%b:c/d~e", "plain", "soon"]);
    for class in ["0", "64", "x", "1,x"] {
        let both = clients.each_mut().map(|client| client.lines(&format!("lru_crawler metadump {class}")));
        assert_eq!(both[0], both[1], "{class}");
    }
    // Flushed items are not listed.
    assert_eq!(clients[1].lines("flush_all\nlru_crawler metadump all"), "OK\nEND\n");
}

/// A key that was given in base64 is listed so, however its item is changed: raw, it could not be part of a line.
#[test]
fn binary_keys_are_listed_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path())).unwrap();
    let mut client = Client::new(server.address());
    for (request, reply) in [
        ("ms AAEC 1 b\nx\nms AAEC 1 b MA\ny\nmg AAEC b k v", "HD\nHD\nVA 2 kAAEC b\nxy\n"),
        ("ms AAED 1 b\n9\nma AAED b v k\nmg AAED b k", "HD\nVA 2 kAAED b\n10\nHD kAAED b\n"),
        ("ma AAEE b N0 J5\nmg AAEE b k v", "HD\nVA 1 kAAEE b\n5\n"),
        ("mg AAEF b N0 k\nmg AAEF b k", "HD kAAEF b W\nHD kAAEF b Z\n"),
    ] {
        assert_eq!(client.lines(request), reply, "{request}");
    }
    let mut keys = list(server.address(), "lru_crawler mgdump all", "mg ");
    keys.sort();
    assert_eq!(keys, ["AAEC b", "AAED b", "AAEE b", "AAEF b"]);
}

/// A list of many items, most of them on flash, which the client takes slowly, while others are served.
#[test]
fn a_long_list_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = with_policy(folder.path(), "all");
    options.threads = Some(1);
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    let count = 100_000;
    for first in (0..count).step_by(500) {
        let set = |key| format!("set key{key} 0 0 200\r\n{:0200}\r\n", key);
        let request: String = (first..first + 500).map(set).collect();
        assert_eq!(client.say(request.as_bytes()), "STORED\r\n".repeat(500).as_bytes());
    }
    let mut slow = TcpStream::connect(server.address()).unwrap();
    slow.write_all(b"lru_crawler metadump all\r\nget nosuch\r\n").unwrap();
    // The list is not read meanwhile: a server that waited for that would not answer.
    let mut found = 0;
    for key in 0..2000 {
        found += u32::from(client.lines(&format!("get key{key}")).starts_with("VALUE"));
    }
    // Nearly all: a few of these keys have equal hash bits in the index.
    assert!(found > 1_990, "{found} of 2000 gets");
    let mut keys = HashSet::new();
    let mut lines = BufReader::new(&slow).lines().map(Result::unwrap);
    for line in lines.by_ref().take_while(|line| line != "END") {
        keys.insert(line.split_once(' ').unwrap().0.to_owned());
    }
    assert!(keys.len() > count * 99 / 100, "{} of {count}", keys.len());
    assert_eq!(lines.next().unwrap(), "END", "what was asked for behind it is answered behind it");
}

#[test]
fn connections_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut options = options(folder.path());
    options.socket = Some(UnixSocket::new(&path));
    let server = Server::start(&options).unwrap();
    let mut asking = Client::new(server.address());
    let mut local = UnixStream::connect(&path).unwrap();
    local.write_all(b"set a 0 0 5\r\nab").unwrap();
    let idle = TcpStream::connect(server.address()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let lines = asking.lines("stats conns");
        let values = |name: &str| -> Vec<String> {
            let of = |line: &str| Some(line.split_once(name)?.1.to_owned());
            lines.lines().filter_map(of).collect()
        };
        let states = values(":state ");
        let are = |state: &str| states.iter().filter(|is| *is == state).count();
        if (are("conn_listening"), are("conn_nread"), are("conn_parse_cmd"), are("conn_read")) == (2, 1, 1, 1)
        {
            let addresses = values(":addr ");
            assert!(addresses.contains(&format!("tcp:{}", idle.local_addr().unwrap())), "{lines}");
            assert!(addresses.contains(&format!("unix:{}", path.display())), "{lines}");
            assert_eq!(values(":listen_addr ").len(), 3, "{lines}");
            assert_eq!(values(":secs_since_last_cmd ").len(), 5, "{lines}");
            break;
        }
        assert!(Instant::now() < deadline, "{lines}");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop((idle, local));
    let deadline = Instant::now() + Duration::from_secs(60);
    while asking.lines("stats conns").contains("conn_nread") {
        assert!(Instant::now() < deadline);
    }
}

/// The figures that exporters and dashboards read, by memcached's names.
#[test]
fn figures_by_memcacheds_names_move() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = with_policy(folder.path(), "probability:1");
    options.connections_max = 1;
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    for first in (0..60_000).step_by(100) {
        let request: String =
            (first..first + 100).map(|i| format!("set k{i} 0 0 200\r\n{i:0200}\r\n")).collect();
        client.say(request.as_bytes());
    }
    // The first items are on the device then, and no longer read from write buffers.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let lines = client.lines("stats granary");
        let written = lines.lines().find_map(|line| line.strip_prefix("STAT bytes_written "));
        if written.unwrap_or_else(|| panic!("{lines}")).parse::<u64>().unwrap() >= 4 << 20 {
            break;
        }
        assert!(Instant::now() < deadline, "too little is written: {lines}");
        std::thread::sleep(Duration::from_millis(5));
    }
    (0..2000).for_each(|i| _ = client.lines(&format!("get k{i}")));
    let mut refused = TcpStream::connect(server.address()).unwrap();
    refused.read_to_end(&mut Vec::new()).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let lines = client.lines("stats\nstats items");
    let value = |name: &str| -> f64 {
        let line =
            lines.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {lines}")).parse().unwrap()
    };
    for name in [
        "rejected_connections",
        "rusage_user",
        "rusage_system",
        "items:1:age",
        "items:1:number",
        "get_extstore",
        "extstore_objects_read",
        "extstore_objects_written",
        "extstore_objects_used",
        "extstore_bytes_read",
        "extstore_bytes_written",
        "extstore_pages_used",
    ] {
        assert!(value(name) > 0.0, "{name}");
    }
    // These need not move here.
    for name in ["listen_disabled_num", "conn_yields", "reclaimed", "expired_unfetched", "evicted_unfetched"]
    {
        value(name);
    }
    assert_eq!(value("extstore_limit_maxbytes"), 256.0 * 1024.0 * 1024.0);
    assert!(value("extstore_objects_used") <= value("extstore_objects_written"));
    // Items of 200 bytes, and their keys and headers.
    let mean = value("extstore_bytes_used") / value("extstore_objects_used");
    assert!((200.0..240.0).contains(&mean), "{mean} bytes an item");
    let page_bytes =
        value("extstore_limit_maxbytes") / (value("extstore_pages_used") + value("extstore_pages_free"));
    let (used, fragmented) = (value("extstore_bytes_used"), value("extstore_bytes_fragmented"));
    assert_eq!(used + fragmented, page_bytes * value("extstore_pages_used"));
    assert_eq!(value("extstore_bytes_evicted"), 0.0);
}

/// A list of all items that is not read holds a copy of many of them, so only a few lists are made at the same time.
#[test]
fn lists_that_nobody_takes_are_few() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.store.memory_bytes = 64 << 20;
    options.store.flash_bytes = 0;
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    for first in (0..300_000).step_by(1000) {
        let sets: String =
            (first..first + 1000).map(|i| format!("set key-{i} 0 0 1 noreply\r\nx\r\n")).collect();
        client.say(sets.as_bytes());
    }
    assert_eq!(client.lines("mn"), "MN\n");
    let list = || {
        let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"lru_crawler metadump all\r\n").unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).unwrap();
        (stream, word)
    };
    let lists = [(); 4].map(|()| list());
    assert!(lists.iter().all(|(_, word)| word == b"key="));
    assert_eq!(list().1, *b"BUSY");
    // A client that hangs up makes room for another list.
    drop(lists);
    let deadline = Instant::now() + Duration::from_secs(60);
    while list().1 == *b"BUSY" {
        assert!(Instant::now() < deadline, "a list of nobody's goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.stop().unwrap();
}
