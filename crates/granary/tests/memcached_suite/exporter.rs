//! Prometheus' exporter for memcached reads Granary's figures.

use super::{program::granary, repository, say};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The exporter, built if necessary; `None`: it cannot be built.
fn program() -> Option<PathBuf> {
    let built = Command::new(repository().join("scripts/build-memcached-exporter.sh")).output().ok()?;
    if !built.status.success() {
        say(&String::from_utf8_lossy(&built.stderr));
        return None;
    }
    Some(repository().join("target/memcached_exporter"))
}

/// A process, killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address that was not in use a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Starts a program at its own address and waits until it answers. If another program got the address first, it is
/// started at another one.
fn start(command: impl Fn(SocketAddr) -> Command) -> (Process, SocketAddr) {
    for _ in 0..5 {
        let address = free();
        let mut process = Process(command(address).stdin(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while process.0.try_wait().unwrap().is_none() {
            if TcpStream::connect(address).is_ok() && process.0.try_wait().unwrap().is_none() {
                return (process, address);
            }
            assert!(Instant::now() < deadline, "nobody answers at {address}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    panic!("it has ended");
}

fn server(folder: &Path, address: SocketAddr) -> Command {
    let mut command = granary();
    command
        .args(["server", "--memcached-memory", "8MiB", "--memcached-flash", "64MiB", "--memcached-admission"])
        .args(["probability:1", "--http", "127.0.0.1:0", "--log", "error", "--path"])
        .arg(folder)
        .args(["--memcached", &address.to_string()]);
    command
}

/// Stores more than RAM holds, and reads all of it.
fn use_it(address: SocketAddr) {
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    let value = "v".repeat(1000);
    for key in 0..20_000 {
        let request = format!("set key{key} 0 0 1000 noreply\r\n{value}\r\n");
        stream.get_mut().write_all(request.as_bytes()).unwrap();
    }
    // What is in write buffers is not read from flash.
    let deadline = Instant::now() + Duration::from_secs(60);
    while figure(&mut stream, "extstore_page_allocs") == 0 {
        assert!(Instant::now() < deadline, "nothing is written");
        std::thread::sleep(Duration::from_millis(10));
    }
    for key in 0..20_000 {
        stream.get_mut().write_all(format!("mg key{key} s\r\n").as_bytes()).unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert!(line == "HD s1000\r\n" || line == "EN\r\n", "{line}");
    }
}

/// A figure of `stats`.
fn figure(stream: &mut BufReader<TcpStream>, name: &str) -> u64 {
    stream.get_mut().write_all(b"stats\r\n").unwrap();
    let mut found = None;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        match line.trim_end().split(' ').collect::<Vec<_>>()[..] {
            ["STAT", is, value] if is == name => found = Some(value.parse().unwrap()),
            ["STAT", ..] => {}
            _ => break,
        }
    }
    found.unwrap_or_else(|| panic!("{name} is not in it"))
}

#[test]
fn the_exporter_of_prometheus_reads_all_that_it_asks_for() {
    let Some(program) = program() else {
        return super::skip::skipped("Prometheus' memcached_exporter could not be built");
    };
    let folder = tempfile::tempdir().unwrap();
    let (_server, granary) = start(|address| server(folder.path(), address));
    use_it(granary);
    // The age of the oldest item is in whole seconds.
    std::thread::sleep(Duration::from_millis(1100));
    let (mut process, exporter) = start(|address| {
        let mut command = Command::new(&program);
        command
            .arg(format!("--memcached.address={granary}"))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::piped());
        command
    });
    let mut log = process.0.stderr.take().unwrap();
    let agent = ureq::Agent::new_with_defaults();
    let text =
        agent.get(format!("http://{exporter}/metrics")).call().unwrap().body_mut().read_to_string().unwrap();
    drop(process);
    let mut said = String::new();
    log.read_to_string(&mut said).unwrap();
    assert!(!said.contains("level=error"), "{said}");
    let figures: HashMap<&str, f64> = text
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(name, n)| Some((name, n.parse().ok()?)))
        .collect();
    for name in [
        "memcached_up",
        "memcached_accepting_connections",
        "memcached_commands_total{command=\"get\",status=\"hit\"}",
        "memcached_commands_total{command=\"set\",status=\"hit\"}",
        "memcached_connections_total",
        "memcached_current_items",
        "memcached_items_total",
        "memcached_limit_bytes",
        "memcached_current_bytes",
        "memcached_process_user_cpu_seconds_total",
        "memcached_slab_items_age_seconds{slab=\"1\"}",
        "memcached_extstore_bytes_limit",
        "memcached_extstore_bytes_read_total",
        "memcached_extstore_bytes_written_total",
        "memcached_extstore_objects_read_total",
        "memcached_extstore_objects_used",
        "memcached_extstore_objects_written_total",
        "memcached_extstore_pages_used",
        "memcached_extstore_pages_allocated_total",
    ] {
        assert!(figures.get(name).is_some_and(|figure| *figure > 0.0), "{name}: {text}");
    }
    for name in [
        "memcached_connections_rejected_total",
        "memcached_connections_listener_disabled_total",
        "memcached_connections_yielded_total",
        "memcached_items_evicted_total",
        "memcached_items_reclaimed_total",
        "memcached_item_no_memory_total",
        "memcached_slab_items_evicted_unfetched_total{slab=\"1\"}",
        "memcached_slab_items_expired_unfetched_total{slab=\"1\"}",
        "memcached_extstore_objects_evicted_total",
        "memcached_extstore_pages_evicted_total",
        "memcached_extstore_io_queue_depth",
    ] {
        assert!(figures.contains_key(name), "{name}: {text}");
    }
}
