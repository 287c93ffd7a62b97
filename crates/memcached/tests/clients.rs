//! Common clients: libmemcached's tools and its test of servers, pymemcache and python-memcached.

mod common;

use common::start;
use std::path::Path;
use std::process::{Command, Output};

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}; see scripts/install-test-servers.sh"))
}

#[test]
fn libmemcached_finds_the_server_capable() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let port = server.address().port().to_string();
    let output = run("memccapable", &["-h", "127.0.0.1", "-p", &port, "-t", "10", "-a"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("All tests passed"), "{text}");
}

#[test]
fn libmemcacheds_tools() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let servers = format!("--servers={}", server.address());
    let file = folder.path().join("greeting");
    let text = "hello\n".repeat(10_000);
    std::fs::write(&file, &text).unwrap();
    let tool = |name: &str, arguments: &[&str]| run(name, &[&[servers.as_str()], arguments].concat());
    let works = |name: &str, arguments: &[&str]| tool(name, arguments).status.success();
    assert!(works("memccp", &["--flag=7", "--expire=100", file.to_str().unwrap()]));
    let cat = tool("memccat", &["greeting"]);
    assert!(cat.status.success() && String::from_utf8(cat.stdout).unwrap().trim_end() == text.trim_end());
    assert!(works("memcexist", &["greeting"]) && works("memctouch", &["--expire=50", "greeting"]));
    let stats = tool("memcstat", &[]);
    assert!(String::from_utf8_lossy(&stats.stdout).contains("curr_items: 1"));
    assert!(works("memcrm", &["greeting"]) && !works("memcexist", &["greeting"]));
    assert!(works("memcping", &[]) && works("memcflush", &[]));
}

const PYTHON: &str = r#"
import sys
import memcache, pymemcache
from pymemcache.client.base import Client
host, port = sys.argv[1].split(":")

client = Client((host, int(port)), timeout=10)
assert client.set("a", b"1", noreply=False) and client.get("a") == b"1"
assert client.set_many({f"k{i}": b"v" * i for i in range(500)}, noreply=False) == []
assert client.get_many([f"k{i}" for i in range(600)]) == {f"k{i}": b"v" * i for i in range(500)}
value, number = client.gets("a")
assert client.cas("a", b"2", number, noreply=False) and not client.cas("a", b"3", number, noreply=False)
assert client.incr("a", 40, noreply=False) == 42 and client.decr("a", 2, noreply=False) == 40
assert client.append("a", b"!", noreply=False) and client.prepend("a", b"?", noreply=False)
assert client.get("a") == b"?40!" and not client.add("a", b"", noreply=False)
assert client.touch("a", 100, noreply=False) and client.delete("a", noreply=False) and client.get("a") is None
client.set("gone", b"x", expire=-1)
assert client.get("gone") is None and b"pid" in client.stats()
long = bytes(range(256)) * 4000
assert client.set("long", long, noreply=False) and client.get("long") == long
client.flush_all()
assert client.get("long") is None

client = memcache.Client([sys.argv[1]], socket_timeout=10)
assert client.set("object", {"a": [1, 2, 3]}, time=100) and client.get("object") == {"a": [1, 2, 3]}
client.set_multi({str(i): i for i in range(300)})
assert client.get_multi([str(i) for i in range(300)]) == {str(i): i for i in range(300)}
assert client.incr("299") == 300 and client.delete("object") and client.get("object") is None
assert client.get_stats()[0][1]["curr_items"]
"#;

#[test]
fn pymemcache_and_python_memcached() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    // Debian's Python, for which the packages are installed.
    let python = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let output = run(python, &["-c", PYTHON, &server.address().to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
