//! Many clients change the same keys: no change is lost.

mod common;

use common::{Client, start};
use std::net::SocketAddr;

const CLIENTS: usize = 8;
const ROUNDS: usize = 300;

/// Runs `talk(client, number)` for each client at once.
fn all(address: SocketAddr, talk: impl Fn(&mut Client, usize) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let talk = &talk;
            scope.spawn(move || talk(&mut Client::new(address), number));
        }
    });
}

#[test]
fn every_change_counts() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = Client::new(server.address());
    client.lines("set n 0 0 1\n0\nset text 0 0 0\n\nset sum 0 0 1\n0");
    all(server.address(), |client, number| {
        for _ in 0..ROUNDS {
            client.lines("incr n 3\nma n D2 q\ndecr n 1");
            assert_eq!(client.lines(&format!("append text 0 0 1\n{number}")), "STORED\n");
            loop {
                let heard = client.lines("gets sum");
                let mut words = heard.split_whitespace();
                let (cas, sum) = (words.nth(4).unwrap(), words.next().unwrap().parse::<usize>().unwrap() + 1);
                let (sum, len) = (sum.to_string(), sum.to_string().len());
                match client.lines(&format!("cas sum 0 0 {len} {cas}\n{sum}")).as_str() {
                    "STORED\n" => break,
                    other => assert_eq!(other, "EXISTS\n"),
                }
            }
        }
    });
    let value = |heard: String| heard.lines().nth(1).unwrap().trim().to_owned();
    assert_eq!(value(client.lines("get n")), (CLIENTS * ROUNDS * 4).to_string());
    assert_eq!(value(client.lines("get sum")), (CLIENTS * ROUNDS).to_string());
    let text = value(client.lines("get text"));
    for number in 0..CLIENTS {
        let digit = char::from_digit(number as u32, 10).unwrap();
        assert_eq!(text.chars().filter(|c| *c == digit).count(), ROUNDS, "client {number}");
    }
}

#[test]
fn one_client_wins_a_missing_and_a_stale_item() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    for round in 0..50 {
        let wins = std::sync::atomic::AtomicUsize::new(0);
        let ask = |request: String| {
            all(server.address(), |client, _| {
                let won = client.lines(&request).contains(" W");
                wins.fetch_add(usize::from(won), std::sync::atomic::Ordering::Relaxed);
            });
        };
        ask(format!("mg k{round} N30 v"));
        assert_eq!(
            Client::new(server.address()).lines(&format!("ms k{round} 1\nx\nmd k{round} I T30")),
            "HD\nHD\n"
        );
        ask(format!("mg k{round} v"));
        assert_eq!(wins.into_inner(), 2);
    }
}

#[test]
fn nothing_written_before_a_flush_is_there_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = Client::new(server.address());
    for round in 0..30 {
        client.lines("set log 0 0 6\nbefore");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut client = Client::new(server.address());
                    (0..20).for_each(|_| drop(client.lines("append log 0 0 1\nx\ntouch log 100\nget log")));
                });
            }
            assert_eq!(client.lines("flush_all"), "OK\n");
            assert_eq!(client.lines("get log"), "END\n", "round {round}");
        });
        assert_eq!(client.lines("get log"), "END\n", "round {round}");
    }
}
