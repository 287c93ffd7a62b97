//! One connection: gets that are sent, and their replies.

use super::{Asking, Items, KEY_BYTES, LoadFigures};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

/// Bytes that there is room for in each read.
const READ_BYTES: usize = 64 << 10;

const MISS: &[u8] = b"END\r\n";

pub(super) struct Client {
    stream: TcpStream,
    asking: Asking,
    /// Of a hit: what comes before the key, between key and value, and after the value.
    parts: [Vec<u8>; 3],
    value_bytes: usize,
    /// Keys whose replies have not come, and when they were asked for.
    asked: VecDeque<(u64, Instant)>,
    request: Vec<u8>,
    /// Room for replies, zeroed once; those between `at` and `filled` were not looked at.
    replies: Vec<u8>,
    filled: usize,
    at: usize,
}

impl Client {
    pub fn connect(
        server: SocketAddr,
        value_bytes: usize,
        asking: Asking,
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
            asking,
            parts,
            value_bytes,
            asked: VecDeque::new(),
            request: Vec::new(),
            replies: Vec::new(),
            filled: 0,
            at: 0,
        })
    }

    /// Sends as many gets as may be under way, if it is time for more.
    pub fn send(&mut self, keys: &mut impl FnMut() -> u64) -> io::Result<()> {
        let more = self.asking.gets() - self.asked.len();
        let is_time = matches!(self.asking, Asking::KeepingUp(_)) || self.asked.is_empty();
        if more == 0 || !is_time {
            return Ok(());
        }
        self.request.clear();
        let now = Instant::now();
        for _ in 0..more {
            let key = keys();
            self.asked.push_back((key, now));
            for part in [b"get ".as_slice(), &Items::key(key), b"\r\n"] {
                self.request.extend_from_slice(part);
            }
        }
        // Requests are far shorter than a socket's buffer, in which few others are.
        self.stream.write_all(&self.request)
    }

    /// Takes what has come.
    pub fn receive(&mut self, figures: &mut LoadFigures) -> io::Result<()> {
        loop {
            if self.at == self.filled {
                (self.at, self.filled) = (0, 0);
            }
            if self.replies.len() < self.filled + READ_BYTES {
                self.replies.copy_within(self.at..self.filled, 0);
                (self.at, self.filled) = (0, self.filled - self.at);
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
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            self.look(figures)?;
            if self.asked.is_empty() {
                return Ok(());
            }
        }
    }

    /// Looks at the replies that are whole.
    fn look(&mut self, figures: &mut LoadFigures) -> io::Result<()> {
        let [before, between, after] = &self.parts;
        let hit = before.len() + KEY_BYTES + between.len() + self.value_bytes + after.len();
        let now = Instant::now();
        while let Some((key, sent)) = self.asked.front() {
            let rest = &self.replies[self.at..self.filled];
            let is_hit = if rest.starts_with(MISS) {
                self.at += MISS.len();
                false
            } else if rest.len() >= hit && rest.starts_with(before) {
                let (value_at, key) = (before.len() + KEY_BYTES + between.len(), Items::key(*key));
                let whole = rest[before.len()..].starts_with(&key)
                    && rest[value_at..].starts_with(&key)
                    && rest[..hit].ends_with(after);
                if !whole {
                    let [key, reply] = [&key, &rest[..hit.min(200)]].map(String::from_utf8_lossy);
                    return Err(io::Error::other(format!("asked for {key}, got {reply}")));
                }
                self.at += hit;
                true
            } else if rest.len() >= hit || (!rest.is_empty() && !b"VE".contains(&rest[0])) {
                let reply = String::from_utf8_lossy(&rest[..rest.len().min(200)]).into_owned();
                return Err(io::Error::other(format!("no reply to a get: {reply}")));
            } else {
                break;
            };
            figures.add(is_hit, now - *sent);
            self.asked.pop_front();
        }
        Ok(())
    }
}
