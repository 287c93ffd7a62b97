//! Numbers that could not be reserved.

mod common;

use common::{Client, options};
use granary_memcached::Server;
use std::time::{Duration, Instant};

/// Numbers cannot be reserved, as on a full disk; then the process is killed.
#[test]
fn what_was_stored_while_numbers_could_not_be_written_is_flushed_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    assert_eq!(client.lines("set a 0 0 1\nx"), "STORED\n");
    server.stop().unwrap();
    // The file that is to be written and renamed cannot be created.
    let in_the_way = options.store.path.join("numbers.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    for key in ["b", "c", "d"] {
        assert_eq!(client.lines(&format!("set {key} 0 0 1\ny")), "STORED\n");
    }
    server.abandon();
    std::fs::remove_dir(&in_the_way).unwrap();
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    assert_eq!(client.lines("set e 0 0 1\nz"), "STORED\n");
    assert_eq!(client.lines("flush_all"), "OK\n");
    assert_eq!(client.lines("get a b c d e"), "END\n");
    server.stop().unwrap();
}

/// Everything is flushed while the file cannot be written: no flushed item is there, then and after a kill.
#[test]
fn what_is_flushed_while_numbers_cannot_be_written_is_gone() {
    for delay in ["", " 0", " noreply"] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path());
        options.store.admission = "all".parse().unwrap();
        let server = Server::start(&options).unwrap();
        let mut client = Client::new(server.address());
        assert_eq!(client.lines("set a 0 0 1\nx"), "STORED\n");
        let in_the_way = options.store.path.join("numbers.new");
        std::fs::create_dir(&in_the_way).unwrap();
        // With `noreply` there is no `OK`.
        let said = if delay == " noreply" { "" } else { "OK\n" };
        assert_eq!(client.lines(&format!("flush_all{delay}\nget a")), format!("{said}END\n"));
        assert_eq!(client.lines("set b 0 0 1\ny\nget b"), "STORED\nVALUE b 0 1\ny\nEND\n");
        assert_eq!(client.lines("flush_all 100 noreply\nget a"), "END\n");
        server.abandon();
        std::fs::remove_dir(&in_the_way).unwrap();
        let server = Server::start(&options).unwrap();
        assert_eq!(Client::new(server.address()).lines("get a"), "END\n");
        server.stop().unwrap();
    }
}

/// A planned flush is carried out though the file cannot be written by then, and is not repeated.
#[test]
fn a_planned_flush_that_cannot_be_written_empties_the_cache_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    assert_eq!(client.lines("set old 0 0 1\nx"), "STORED\n");
    assert_eq!(client.lines("flush_all 1"), "OK\n");
    let in_the_way = options.store.path.join("numbers.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while client.lines("get old") != "END\n" {
        assert!(Instant::now() < deadline, "it is flushed within some seconds");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.lines("set new 0 0 1\ny"), "STORED\n");
    std::fs::remove_dir(&in_the_way).unwrap();
    // In the second after the planned one, nothing is flushed again.
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(client.lines("get old new"), "VALUE new 0 1\ny\nEND\n");
    server.abandon();
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    assert_eq!(client.lines("get old"), "END\n");
    server.stop().unwrap();
}
