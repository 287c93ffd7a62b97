//! The bounds of the server, and what clients are refused.

mod common;

use common::{Client, memcached, options, start};
use granary_memcached::Server;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Sends `request`, and returns everything that comes back until the connection ends.
fn until_closed(stream: &mut TcpStream, request: &[u8]) -> String {
    let _ = stream.write_all(request);
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

#[test]
fn items_up_to_the_limit_as_in_memcached() {
    let folder = tempfile::tempdir().unwrap();
    let (server, memcached) = (start(folder.path()), memcached(&["-m", "256"]));
    let mut clients = [Client::new(memcached.address), Client::new(server.address())];
    // 1 MiB less what memcached adds: 48 + 8 + 1 + 2, the key, and 4 for flags.
    for (flags, len) in
        [(0, 1_048_514), (0, 1_048_515), (0, 1_048_516), (9, 1_048_511), (9, 1_048_512), (0, 5 << 20)]
    {
        for command in ["set", "add", "replace", "append"] {
            let mut request = format!("delete kk\r\n{command} kk {flags} 0 {len}\r\n").into_bytes();
            request.resize(request.len() + len, b'x');
            request.extend_from_slice(b"\r\nget kk\r\n");
            let [theirs, ours] = clients.each_mut().map(|client| client.say(&request));
            assert!(theirs == ours, "{command} of {len} bytes");
        }
    }
    // A value that is too long removes the older one, except with `add` and the like.
    for command in ["set", "append", "ms"] {
        let line = if command == "ms" { "ms kk 2000000".into() } else { format!("{command} kk 0 0 2000000") };
        let mut request = format!("set kk 0 0 1\r\nx\r\n{line}\r\n").into_bytes();
        request.resize(request.len() + 2_000_000, b'x');
        request.extend_from_slice(b"\r\nget kk\r\n");
        let [theirs, ours] = clients.each_mut().map(|client| client.say(&request));
        assert!(theirs == ours, "{command}: {}", ours.escape_ascii());
    }
    // Appending beyond the limit.
    let mut request = b"set kk 0 0 1048000\r\n".to_vec();
    request.resize(request.len() + 1_048_000, b'x');
    request.extend_from_slice(b"\r\nappend kk 0 0 514\r\n");
    request.resize(request.len() + 514, b'y');
    request.extend_from_slice(b"\r\nappend kk 0 0 1\r\nz\r\nmg kk s\r\n");
    let [theirs, ours] = clients.each_mut().map(|client| client.say(&request));
    assert_eq!(ours.escape_ascii().to_string(), theirs.escape_ascii().to_string());
}

/// memcached 1.6.18 drops one-line replies that are not sent yet.
#[test]
fn too_long_a_key_takes_no_reply_of_others_away() {
    let folder = tempfile::tempdir().unwrap();
    let (server, memcached) = (start(folder.path()), memcached(&[]));
    let mut clients = [Client::new(memcached.address), Client::new(server.address())];
    let request = format!("set kk 0 0 1\r\nx\r\ndelete k\r\nget {}\r\n", "k".repeat(251));
    let [theirs, ours] = clients.each_mut().map(|client| client.say(request.as_bytes()));
    let error = "CLIENT_ERROR bad command line format\r\n";
    assert_eq!(String::from_utf8(theirs).unwrap(), error);
    assert_eq!(String::from_utf8(ours).unwrap(), format!("STORED\r\nNOT_FOUND\r\n{error}"));
}

#[test]
fn other_limits_are_configured() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.store.item_bytes_max = 8 << 20;
    let server = Server::start(&options).unwrap();
    let value = "v".repeat(8_000_000);
    let mut client = Client::new(server.address());
    assert_eq!(client.lines(&format!("set big 0 0 8000000\n{value}")), "STORED\n");
    assert!(client.lines("get big") == format!("VALUE big 0 8000000\n{value}\nEND\n"));
    let too_large = format!("set big 0 0 8500000\n{value}{}", "v".repeat(500_000));
    assert_eq!(client.lines(&too_large), "SERVER_ERROR object too large for cache\n");
    drop(client);
    server.stop().unwrap();
    options.store.item_bytes_max = 100;
    assert!(Server::start(&options).is_err());
    options.store.item_bytes_max = 1 << 20;
    options.store.flash_bytes = 1 << 20;
    let error = Server::start(&options).err().unwrap().to_string();
    assert!(error.contains("too few"), "{error}");
}

#[test]
fn binary_clients_and_browsers_are_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let connect = || TcpStream::connect(server.address()).unwrap();
    assert_eq!(until_closed(&mut connect(), b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), "");
    assert_eq!(until_closed(&mut connect(), b"POST / HTTP/1.1\r\nset a 0 0 1\r\nx\r\n"), "");
    assert_eq!(until_closed(&mut connect(), &[b'x'; 5000]), "");
    assert_eq!(until_closed(&mut connect(), b"version\r\nquit\r\nversion\r\n").matches("VERSION").count(), 1);
    assert_eq!(Client::new(server.address()).lines("get a"), "END\n");
}

#[test]
fn connections_are_counted_and_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.connections_max = 3;
    let server = Server::start(&options).unwrap();
    let mut clients: Vec<Client> = (0..3).map(|_| Client::new(server.address())).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.lines("get a"), "END\n"));
    let mut turned_away = TcpStream::connect(server.address()).unwrap();
    assert_eq!(until_closed(&mut turned_away, b""), "ERROR Too many open connections\r\n");
    clients.clear();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !until_closed(&mut TcpStream::connect(server.address()).unwrap(), b"quit\r\n").is_empty() {
        assert!(Instant::now() < deadline, "closed connections still count");
    }
}

#[test]
fn a_client_that_takes_no_replies_is_not_read_from() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = Client::new(server.address());
    let value = "v".repeat(100_000);
    assert_eq!(client.lines(&format!("set a 0 0 100000\n{value}")), "STORED\n");
    // A client that asks for gigabytes and takes nothing.
    let mut slow = TcpStream::connect(server.address()).unwrap();
    slow.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let gets = "get a a a a a a a a a a\r\n".repeat(1000);
    let mut sent = 0;
    while let Ok(len) = slow.write(gets.as_bytes()) {
        sent += len;
        assert!(sent < 64 << 20, "all of {sent} bytes were taken");
    }
    // Other clients are served meanwhile, and so is this one, in order, once it reads.
    for _ in 0..100 {
        assert_eq!(client.lines("get nosuch"), "END\n");
    }
    let reply = format!("VALUE a 0 100000\r\n{value}\r\n").repeat(10) + "END\r\n";
    let mut heard = vec![0; reply.len()];
    for _ in 0..50 {
        slow.read_exact(&mut heard).unwrap();
        assert!(heard == reply.as_bytes());
    }
    drop(slow);
    assert_eq!(client.lines("get nosuch"), "END\n");
    server.stop().unwrap();
}

#[test]
fn idle_connections_are_closed_where_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.idle_seconds = 3;
    let server = Server::start(&options).unwrap();
    let mut idle = TcpStream::connect(server.address()).unwrap();
    idle.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(idle.read(&mut [0; 8]).unwrap(), 0);
    assert!(idle_kicks(&server) >= 1);
}

fn idle_kicks(server: &Server) -> u64 {
    let lines = Client::new(server.address()).lines("stats");
    let kicks = lines.lines().find_map(|line| line.strip_prefix("STAT idle_kicks "));
    kicks.expect(&lines).parse().unwrap()
}

/// A client that takes its replies, however slowly, is not idle; one that takes none is.
#[test]
fn who_takes_replies_slowly_is_not_idle() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.idle_seconds = 3;
    let server = Server::start(&options).unwrap();
    let value = "v".repeat(1_000_000);
    let stored = Client::new(server.address()).lines(&format!("set a 0 0 {}\n{value}", value.len()));
    assert_eq!(stored, "STORED\n");
    let reply = format!("VALUE a 0 {}\r\n{value}\r\n", value.len()).repeat(16) + "END\r\n";
    let ask = || {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(format!("get{}\r\n", " a".repeat(16)).as_bytes()).unwrap();
        stream
    };
    // `None`: this thread was held up, so that the client may have seemed idle.
    let take_slowly = || {
        let (mut slow, mut heard, mut piece) = (ask(), Vec::new(), vec![0; 1 << 16]);
        let begin = Instant::now();
        let mut last = begin;
        while begin.elapsed() < Duration::from_secs(9) {
            let read = slow.read(&mut piece);
            if last.elapsed() > Duration::from_secs(1) {
                return None;
            }
            last = Instant::now();
            heard.extend_from_slice(&piece[..read.unwrap()]);
            std::thread::sleep(Duration::from_millis(200));
        }
        assert!(heard.len() < 4_000_000, "it was slow");
        let begun = heard.len();
        heard.resize(reply.len(), 0);
        slow.read_exact(&mut heard[begun..]).unwrap();
        Some(heard)
    };
    let mut deaf = ask();
    let heard = (0..10).find_map(|_| take_slowly()).expect("once this thread is not held up");
    assert!(heard == reply.as_bytes());
    let deadline = Instant::now() + Duration::from_secs(60);
    while idle_kicks(&server) == 0 {
        assert!(Instant::now() < deadline, "who takes nothing is not closed");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Bytes that were sent before the connection was closed may still arrive.
    let mut rest = Vec::new();
    let _ = deaf.read_to_end(&mut rest);
    assert!(rest.len() < reply.len(), "it was closed");
}

#[test]
fn users_say_who_they_are_as_in_memcached() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users");
    std::fs::write(&file, "ann:secret\nbob:other\ncat: two  blanks \n").unwrap();
    let mut options = options(folder.path());
    options.users = Some(file.clone());
    let server = Server::start(&options).unwrap();
    let memcached = memcached(&["-Y", file.to_str().unwrap()]);
    for conversation in [
        "get a",
        "set x 0 0 10\nann secret\nget a",
        "set x 0 0 9\nbob other\nset a 0 0 1\na\nget a",
        // memcached replies to what follows a refusal at once in place of it.
        "set x 0 0 9\nann other",
        "set x 0 0 3\nann",
        "set x 0 0",
        "version",
        "mn",
    ] {
        let request = conversation.replace('\n', "\r\n") + "\r\n";
        let [theirs, ours] = [memcached.address, server.address()].map(|address| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            // Then the client closes its side, and the connection ends when all was answered.
            stream.shutdown(Shutdown::Write).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let mut heard = Vec::new();
            stream.read_to_end(&mut heard).unwrap();
            heard.escape_ascii().to_string()
        });
        assert_eq!(ours, theirs, "{conversation}");
    }
    // As in memcached 1.6.45: the password is all that is behind the first blank.
    for (login, reply) in [
        ("cat  two  blanks ", "STORED\r\n"),
        ("cat two blanks", "CLIENT_ERROR authentication failure\r\n"),
        ("ann secret more", "CLIENT_ERROR authentication failure\r\n"),
    ] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(format!("set x 0 0 {}\r\n{login}\r\n", login.len()).as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(until_closed(&mut stream, b""), reply, "{login}");
    }
    // Nothing is kept of a long line of who may only log in.
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let long = [&b"get "[..], &[b'k'; 4096]].concat();
    assert_eq!(until_closed(&mut stream, &long), "");
    std::fs::write(&file, "nobody").unwrap();
    drop(server);
    assert!(Server::start(&options).is_err());
}

#[test]
fn statistics_have_memcacheds_names() {
    let folder = tempfile::tempdir().unwrap();
    let (server, memcached) = (start(folder.path()), memcached(&[]));
    let names = |client: &mut Client, group: &str| -> Vec<String> {
        let lines = client.lines(&format!("set a 0 0 1\nx\nget a b\n{group}"));
        let lines = lines.lines().filter_map(|line| line.strip_prefix("STAT "));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let (mut ours, mut theirs) = (Client::new(server.address()), Client::new(memcached.address));
    for group in ["stats", "stats settings", "stats items", "stats slabs", "stats sizes"] {
        let known = names(&mut theirs, group);
        let names = names(&mut ours, group);
        assert!(!names.is_empty());
        for name in
            names.iter().filter(|name| !["flash_bytes", "admission", "idle_kicks"].contains(&name.as_str()))
        {
            // This memcached has no flash.
            if name.contains("extstore") {
                continue;
            }
            assert!(known.contains(name), "{group}: {name}");
        }
    }
    // The test's client ends each request with another read, which misses.
    let general = ours.lines("stats");
    for line in ["cmd_get 15", "get_hits 5", "get_misses 10", "cmd_set 5", "curr_items 1", "total_items 5"] {
        assert!(general.contains(&format!("STAT {line}\n")), "{line}: {general}");
    }
    assert!(ours.lines("stats granary").contains("STAT hits_memory"));
    let after = ours.lines("stats reset\nstats");
    assert!(after.starts_with("RESET\n") && after.contains("STAT get_hits 0\n"), "{after}");
}

#[test]
fn a_reset_counts_anew_what_the_cache_goes_on_counting() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = common::with_policy(folder.path(), "reuse");
    (options.connections_max, options.store.flash_bytes) = (1, 0);
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    let fill = |client: &mut Client| {
        let sets: String =
            (0..2000).map(|i| format!("set key{i} 0 0 10000 noreply\r\n{:10000}\r\n", "")).collect();
        client.say(sets.as_bytes());
    };
    let figure = |client: &mut Client, group: &str, name: &str| -> u64 {
        let stats = client.lines(group);
        let value =
            stats.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name}: {stats}")).parse().unwrap()
    };
    fill(&mut client);
    until_closed(&mut TcpStream::connect(server.address()).unwrap(), b"");
    const RESET: [(&str, &str); 5] = [
        ("stats", "evictions"),
        ("stats", "evicted_unfetched"),
        ("stats", "rejected_connections"),
        ("stats items", "items:1:evicted"),
        ("stats items", "items:1:evicted_unfetched"),
    ];
    for (group, name) in RESET {
        assert!(figure(&mut client, group, name) > 0, "{name}");
    }
    let evicted = server.stats().read()["evictions"];
    assert_eq!(client.lines("stats reset"), "RESET\n");
    assert!(server.stats().read()["cmd_set"] >= 2000 && figure(&mut client, "stats", "cmd_set") == 0);
    for (group, name) in RESET {
        assert_eq!(figure(&mut client, group, name), 0, "{name}");
    }
    assert!(server.stats().read()["evictions"] >= evicted, "others count from the start");
    fill(&mut client);
    let since = figure(&mut client, "stats", "evictions");
    assert!((1..=server.stats().read()["evictions"] - evicted).contains(&since), "{since}");
}

#[test]
fn counting_that_is_refused_is_neither_a_hit_nor_a_miss() {
    let folder = tempfile::tempdir().unwrap();
    let (server, memcached) = (start(folder.path()), memcached(&[]));
    let [theirs, ours] = [memcached.address, server.address()].map(|address| {
        let request = "set a 0 0 1\n1\nset b 0 0 1\nx\nma a C99\nma a MD C99\nma b\nma a\nma none\nstats";
        let lines = Client::new(address).lines(request);
        let counted =
            |line: &&str| !line.starts_with("STAT ") || line.contains("incr") || line.contains("decr");
        lines.lines().filter(counted).map(String::from).collect::<Vec<_>>()
    });
    assert_eq!(ours, theirs);
}

#[test]
fn a_client_may_choose_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = Client::new(server.address());
    assert_eq!(client.lines("ms a 1 E1000 c\nx\nmg a c v"), "HD c1000\nVA 1 c1000\nx\n");
    assert_eq!(
        client.lines("ms a 1 C1000 E2000 c\ny\nma n N0 E7 c\nms b 1 c\nb"),
        "HD c2000\nHD c7\nHD c4\n"
    );
    // 0 chooses none.
    assert_eq!(client.lines("ms z 1 E0 c\nx\nms z 1 E0 c\ny"), "HD c5\nHD c6\n");
    // Flushing does not compare the numbers that clients choose.
    assert_eq!(
        client.lines("flush_all\nget a n b\nms a 1 E1 c\nz\nmg a c v"),
        "OK\nEND\nHD c1\nVA 1 c1\nz\n"
    );
}
