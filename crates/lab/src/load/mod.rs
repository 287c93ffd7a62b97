//! Load on any memcached server: clients that ask for random keys, each as soon as it has its answers.

mod client;
mod figures;

pub use figures::LoadFigures;

use client::Client;
use mio::{Events, Poll, Token};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Keys `0..keys`, with values of `value_bytes` bytes each (20 at least).
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// How many there are.
    pub keys: u64,
    /// Bytes of a value, which begins with its key.
    pub value_bytes: usize,
}

/// The clients, and how they ask.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Connections, served by one thread.
    pub connections: usize,
    /// How each of them asks.
    pub asking: Asking,
    /// Duration of the load.
    pub time: Duration,
    /// Seed of the drawn keys.
    pub seed: u64,
}

/// When a connection sends gets, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Gets sent at once; more when all replies have come.
    InTurns(usize),
    /// Keys of one get; the next when its reply is complete.
    Together(usize),
    /// Gets always in flight: a new one for each reply.
    KeepingUp(usize),
}

impl Asking {
    /// Keys per get.
    fn keys_of_a_get(self) -> usize {
        match self {
            Asking::Together(keys) => keys,
            Asking::InTurns(_) | Asking::KeepingUp(_) => 1,
        }
    }

    /// Keys in flight at once.
    pub fn gets(self) -> usize {
        match self {
            Asking::InTurns(gets) | Asking::Together(gets) | Asking::KeepingUp(gets) => gets,
        }
    }
}

/// Bytes of a key.
const KEY_BYTES: usize = 14;

impl Items {
    /// `key-` and ten digits. The load's own time counts, so it is made without the formatting machinery.
    fn key(key: u64) -> [u8; KEY_BYTES] {
        let mut text = *b"key-0000000000";
        let mut left = key;
        for digit in text[4..].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        debug_assert!(left == 0, "a key has ten digits");
        text
    }

    /// Stores all items, at most `bytes_per_second` of values: some servers need time to write.
    ///
    /// # Errors
    /// Errors of the connection; a reply that is not `STORED`.
    pub fn fill(&self, server: SocketAddr, bytes_per_second: f64) -> io::Result<()> {
        const AT_ONCE: u64 = 64;
        let mut stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        let begun = Instant::now();
        for first in (0..self.keys).step_by(AT_ONCE as usize) {
            let last = (first + AT_ONCE).min(self.keys);
            let mut request = Vec::new();
            for key in (first..last).map(Self::key) {
                let key = String::from_utf8_lossy(&key);
                write!(
                    request,
                    "set {key} 0 0 {}\r\n{key:v<width$}\r\n",
                    self.value_bytes,
                    width = self.value_bytes
                )?;
            }
            stream.write_all(&request)?;
            let mut replies = vec![0; (last - first) as usize * b"STORED\r\n".len()];
            stream.read_exact(&mut replies)?;
            if replies.chunks(8).any(|reply| reply != b"STORED\r\n") {
                let replies = String::from_utf8_lossy(&replies).into_owned();
                return Err(io::Error::other(format!("a set was answered: {replies}")));
            }
            let due = (last as f64 * self.value_bytes as f64) / bytes_per_second;
            let ahead = due - begun.elapsed().as_secs_f64();
            if ahead > 0.001 {
                std::thread::sleep(Duration::from_secs_f64(ahead));
            }
        }
        Ok(())
    }

    /// Asks for uniformly random keys.
    ///
    /// # Errors
    /// Errors of a connection; a reply that is neither the item asked for nor a miss.
    pub fn ask(&self, server: SocketAddr, load: &Load) -> io::Result<LoadFigures> {
        let mut poll = Poll::new()?;
        let mut random = SmallRng::seed_from_u64(load.seed);
        let mut keys = || random.random_range(0..self.keys);
        let mut figures = LoadFigures::default();
        let mut clients = Vec::with_capacity(load.connections);
        for i in 0..load.connections {
            clients.push(Client::connect(server, self.value_bytes, load.asking, poll.registry(), Token(i))?);
        }
        let begun = Instant::now();
        for client in &mut clients {
            client.send(&mut keys)?;
        }
        let mut events = Events::with_capacity(1024);
        while begun.elapsed() < load.time {
            poll.poll(&mut events, Some(Duration::from_secs(10)))?;
            if events.is_empty() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no reply for 10 seconds"));
            }
            for event in &events {
                let client = &mut clients[event.token().0];
                client.receive(&mut figures)?;
                client.send(&mut keys)?;
            }
        }
        figures.finish(begun.elapsed());
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    /// A server that has the even keys, and for one key another's value.
    fn serve(wrong: Option<u64>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // Otherwise the second piece of a reply could wait for the first one's acknowledgement.
                stream.set_nodelay(true).unwrap();
                std::thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    for line in lines.map_while(Result::ok) {
                        let Some(keys) = line.strip_prefix("get ") else {
                            if line.starts_with("key-") {
                                stream.write_all(b"STORED\r\n").unwrap();
                            }
                            continue;
                        };
                        let mut reply = String::new();
                        for key in keys.split(' ') {
                            let number: u64 = key[4..].parse().unwrap();
                            let value = Items::key(number + u64::from(wrong == Some(number)));
                            let value = String::from_utf8_lossy(&value);
                            if number.is_multiple_of(2) {
                                reply += &format!("VALUE {key} 0 30\r\n{value:v<30}\r\n");
                            }
                        }
                        reply += "END\r\n";
                        // In two pieces.
                        stream.write_all(&reply.as_bytes()[..3]).unwrap();
                        stream.write_all(&reply.as_bytes()[3..]).unwrap();
                    }
                });
            }
        });
        address
    }

    fn load(time: u64, asking: Asking) -> Load {
        Load { connections: 3, asking, time: Duration::from_millis(time), seed: 1 }
    }

    #[test]
    fn hits_and_misses_are_told_apart() {
        let items = Items { keys: 100, value_bytes: 30 };
        let server = serve(None);
        items.fill(server, 1e9).unwrap();
        for asking in [Asking::InTurns(4), Asking::Together(4), Asking::KeepingUp(4)] {
            let ask = |time| {
                let load = load(time, asking);
                let figures = items.ask(server, &load).unwrap();
                (figures.operations_per_second() * load.time.as_secs_f64(), figures)
            };
            let (mut gets, mut figures) = ask(2000);
            if gets <= 1.0 {
                // A slow machine takes longer.
                (gets, figures) = ask(60_000);
            }
            assert!(gets > 1.0, "{gets}");
            // Five standard deviations of that many coin tosses.
            let allowed = 2.5 / gets.sqrt();
            assert!((figures.hit_ratio() - 0.5).abs() <= allowed, "{} of {gets}", figures.hit_ratio());
            assert!(figures.percentile_us(0.5) <= figures.percentile_us(0.99));
        }
    }

    #[test]
    fn a_value_of_another_key_is_an_error() {
        for asking in [Asking::InTurns(4), Asking::Together(4)] {
            let error =
                Items { keys: 20, value_bytes: 30 }.ask(serve(Some(4)), &load(60_000, asking)).unwrap_err();
            assert!(error.to_string().contains("asked for key-0000000004"), "{error}");
        }
    }
}
