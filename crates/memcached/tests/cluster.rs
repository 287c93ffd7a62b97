//! Three servers behind a consistent hash: the client chooses the server (libmemcached's ketama), or a proxy does
//! (twemproxy). One server is killed and restarted with its items: the hits are back without anything being stored
//! again.

mod common;

use common::OtherServer;
use common::process::{self, Process};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The program of the server processes; does nothing as a test.
#[test]
fn child() {
    process::serve();
}

/// How many items of 3000 bytes are stored.
const ITEMS: usize = 30_000;

/// `pylibmc SERVER...` or `pymemcache SERVER`, then `fill` or `count`: stores all items, or counts those that are
/// found.
const PYTHON: &str = r#"
import sys
kind, *servers, what = sys.argv[1:]
items = {f"key-{i}": f"{i}:".encode().ljust(3000, b"v") for i in range(ITEMS)}
if kind == "pylibmc":
    import pylibmc
    client = pylibmc.Client(servers, behaviors={"ketama": True, "tcp_nodelay": True})
    failure = pylibmc.Error
else:
    import pymemcache
    from pymemcache.client.base import Client
    host, port = servers[0].split(":")
    client = Client((host, int(port)), timeout=90)
    failure = (pymemcache.exceptions.MemcacheError, OSError)
found = 0
for key, value in items.items():
    if what == "fill":
        client.set(key, value)
        continue
    try:
        got = client.get(key)
    except failure:
        continue
    assert got is None or got == value, key
    found += got is not None
print(found)
"#;

fn python(kind: &str, servers: &[String], what: &str) -> usize {
    let script = PYTHON.replace("ITEMS", &ITEMS.to_string());
    let mut command = Command::new("/usr/bin/python3");
    let output = command.args(["-c", &script, kind]).args(servers).arg(what).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "see scripts/install-test-servers.sh: {error}");
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// Starts twemproxy in front of `servers`.
fn proxy(folder: &Path, servers: &[String]) -> OtherServer {
    OtherServer::start("nutcracker", |address| {
        let list: String =
            servers.iter().enumerate().map(|(i, s)| format!("    - {s}:1 granary{i}\n")).collect();
        let configuration = format!(
            "granary:\n  listen: {address}\n  hash: fnv1a_64\n  distribution: ketama\n  timeout: 60000\n  \
             auto_eject_hosts: true\n  server_failure_limit: 1\n  server_retry_timeout: 500\n  servers:\n{list}"
        );
        let file = folder.join("nutcracker.yml");
        std::fs::write(&file, configuration).unwrap();
        let statistics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("/usr/sbin/nutcracker");
        command
            .arg("-c")
            .arg(&file)
            .args(["-a", "127.0.0.1", "-s", &statistics.to_string()])
            .stdout(Stdio::null());
        command
    })
}

#[test]
fn a_server_comes_back_warm_behind_clients_and_behind_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let path = |i: usize| folder.path().join(i.to_string());
    let mut processes: Vec<Process> = (0..3).map(|i| Process::start(&path(i), "all", 0)).collect();
    let servers: Vec<String> = processes.iter().map(|process| process.address.to_string()).collect();
    let proxy = proxy(folder.path(), &servers);
    for (kind, servers) in [("pylibmc", servers.clone()), ("pymemcache", vec![proxy.address.to_string()])] {
        python(kind, &servers, "fill");
        // Keys with equal hash bits in the index displace each other: a few in ten thousand.
        let all = python(kind, &servers, "count");
        assert!(all >= ITEMS * 999 / 1000, "{kind}: {all} of {ITEMS}");
        let first = processes.remove(0);
        let port = first.address.port();
        first.kill();
        let without = python(kind, &servers, "count");
        assert!((ITEMS / 2..ITEMS * 4 / 5).contains(&without), "{kind}: two of three servers have {without}");
        processes.insert(0, Process::start(&path(0), "all", port));
        // The proxy tries again after half a second. The items in the last write buffers were lost with the process.
        std::thread::sleep(Duration::from_secs(1));
        let again = python(kind, &servers, "count");
        println!("{kind}: {without} of {ITEMS} without one server, {again} with it back");
        assert!(again >= ITEMS * 9 / 10, "{kind}: {again} of {ITEMS} are there again");
    }
}
