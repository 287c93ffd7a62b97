//! One connection: a request of several gets, then all of its replies.

use super::{Items, KEY_BYTES};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Bytes that there is room for in each read.
const READ_BYTES: usize = 64 << 10;

const MISS: &[u8] = b"END\r\n";

pub(super) struct Client {
    stream: TcpStream,
    pipeline: usize,
    /// Of a hit: what comes before the key, between key and value, and after the value.
    parts: [Vec<u8>; 3],
    value_bytes: usize,
    asked: Vec<u64>,
    request: Vec<u8>,
    /// Room for replies, zeroed once, of which so many bytes are there.
    replies: Vec<u8>,
    filled: usize,
    /// Replies of the request that were looked at, and where they end.
    answered: usize,
    at: usize,
    hits: u64,
    sent: Instant,
}

/// A request whose replies are all there.
pub(super) struct Answered {
    pub hits: u64,
    pub took: Duration,
}

impl Client {
    pub fn connect(
        server: SocketAddr,
        value_bytes: usize,
        pipeline: usize,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let stream = std::net::TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        let parts = [b"VALUE ".to_vec(), format!(" 0 {value_bytes}\r\n").into(), b"\r\nEND\r\n".to_vec()];
        Ok(Self {
            stream,
            pipeline,
            parts,
            value_bytes,
            asked: Vec::new(),
            request: Vec::new(),
            replies: Vec::new(),
            filled: 0,
            answered: 0,
            at: 0,
            hits: 0,
            sent: Instant::now(),
        })
    }

    /// Sends the next request.
    pub fn send(&mut self, keys: &mut impl FnMut() -> u64) -> io::Result<()> {
        self.asked.clear();
        self.request.clear();
        (self.filled, self.answered, self.at, self.hits) = (0, 0, 0, 0);
        for _ in 0..self.pipeline {
            let key = keys();
            self.asked.push(key);
            write!(self.request, "get {}\r\n", Items::key(key))?;
        }
        self.sent = Instant::now();
        // A request is far shorter than a socket's buffer, which is empty.
        self.stream.write_all(&self.request)
    }

    /// Takes what has come.
    pub fn receive(&mut self) -> io::Result<Option<Answered>> {
        loop {
            if self.replies.len() < self.filled + READ_BYTES {
                self.replies.resize(self.filled + READ_BYTES, 0);
            }
            match self.stream.read(&mut self.replies[self.filled..]) {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the server closed the connection",
                    ));
                }
                Ok(len) => self.filled += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            self.look()?;
            if self.answered == self.pipeline {
                return Ok(Some(Answered { hits: self.hits, took: self.sent.elapsed() }));
            }
        }
        Ok(None)
    }

    /// Looks at the replies that are whole.
    fn look(&mut self) -> io::Result<()> {
        let [before, between, after] = &self.parts;
        let hit = before.len() + KEY_BYTES + between.len() + self.value_bytes + after.len();
        while let Some(key) = self.asked.get(self.answered) {
            let rest = &self.replies[self.at..self.filled];
            if rest.starts_with(MISS) {
                self.at += MISS.len();
            } else if rest.len() >= hit && rest.starts_with(before) {
                let (value_at, key) = (before.len() + KEY_BYTES + between.len(), Items::key(*key));
                let whole = rest[before.len()..].starts_with(key.as_bytes())
                    && rest[value_at..].starts_with(key.as_bytes())
                    && rest[..hit].ends_with(after);
                if !whole {
                    let reply = String::from_utf8_lossy(&rest[..hit.min(200)]).into_owned();
                    return Err(io::Error::other(format!("asked for {key}, got {reply}")));
                }
                self.at += hit;
                self.hits += 1;
            } else if rest.len() >= hit || (!rest.is_empty() && !b"VE".contains(&rest[0])) {
                let reply = String::from_utf8_lossy(&rest[..rest.len().min(200)]).into_owned();
                return Err(io::Error::other(format!("no reply to a get: {reply}")));
            } else {
                break;
            }
            self.answered += 1;
        }
        Ok(())
    }
}
