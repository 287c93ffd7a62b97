//! Load on a memcached server: `load ADDRESS CONNECTIONS PIPELINE SECONDS KEYS VALUE_BYTES SETS_PERCENT`. Stores all
//! keys first. Each connection has a thread, which sends PIPELINE requests at once and waits for all replies.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Sends requests and waits for the ends of all replies; returns how many values came.
fn round(stream: &mut TcpStream, request: &[u8], gets: usize, sets: usize, buffer: &mut [u8]) -> usize {
    stream.write_all(request).unwrap();
    let (mut ends, mut stored, mut values) = (0, 0, 0);
    let mut line = Vec::new();
    while ends < gets || stored < sets {
        let len = stream.read(buffer).unwrap();
        assert!(len > 0, "the server is gone");
        // Values consist of letters that no reply begins with, so looking at the beginnings of lines is enough.
        for byte in &buffer[..len] {
            if *byte != b'\n' {
                if line.len() < 2 {
                    line.push(*byte);
                }
                continue;
            }
            match &line[..] {
                b"EN" => ends += 1,
                b"ST" => stored += 1,
                b"VA" => values += 1,
                _ => {}
            }
            line.clear();
        }
    }
    values
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| arguments[i].parse::<u64>().expect("a number");
    let address = arguments[0].clone();
    let (connections, pipeline, seconds) = (number(1), number(2), number(3));
    let (keys, value, sets_percent) = (number(4), "v".repeat(number(5) as usize), number(6));
    let mut stream = TcpStream::connect(&address).unwrap();
    let mut buffer = vec![0; 1 << 16];
    for first in (0..keys).step_by(100) {
        let set = |key| format!("set key-{key} 0 0 {}\r\n{value}\r\n", value.len());
        let request: String = (first..(first + 100).min(keys)).map(set).collect();
        round(&mut stream, request.as_bytes(), 0, (keys - first).min(100) as usize, &mut buffer);
    }
    let begun = Instant::now();
    let threads: Vec<_> = (0..connections)
        .map(|thread| {
            let (address, value) = (address.clone(), value.clone());
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_nodelay(true).unwrap();
                let (mut random, mut buffer) = (Random(thread + 1), vec![0; 1 << 16]);
                let (mut done, mut hits, mut gets_done, mut slowest) = (0, 0, 0, Vec::new());
                while begun.elapsed() < Duration::from_secs(seconds) {
                    let (mut request, mut gets, mut sets) = (Vec::new(), 0, 0);
                    for _ in 0..pipeline {
                        let key = random.below(keys);
                        if random.below(100) < sets_percent {
                            sets += 1;
                            write!(request, "set key-{key} 0 0 {}\r\n{value}\r\n", value.len()).unwrap();
                        } else {
                            gets += 1;
                            write!(request, "get key-{key}\r\n").unwrap();
                        }
                    }
                    let sent = Instant::now();
                    hits += round(&mut stream, &request, gets, sets, &mut buffer);
                    slowest.push(sent.elapsed().as_micros() as u64);
                    (done, gets_done) = (done + pipeline, gets_done + gets);
                }
                (done, hits, gets_done, slowest)
            })
        })
        .collect();
    let (mut done, mut hits, mut gets, mut times) = (0, 0, 0, Vec::new());
    for thread in threads {
        let (d, h, g, t) = thread.join().unwrap();
        (done, hits, gets) = (done + d, hits + h, gets + g);
        times.extend(t);
    }
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    println!(
        "{:.0} operations/s, {:.2} % hits, a round takes {} us (median), {} us (p99)",
        done as f64 / begun.elapsed().as_secs_f64(),
        100.0 * hits as f64 / gets.max(1) as f64,
        at(0.5),
        at(0.99)
    );
}
