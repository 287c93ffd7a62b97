//! One connection: gets that are sent, and their replies.

use super::{Asking, Items, KEY_BYTES, LoadFigures};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

/// Bytes of the buffer of a read.
const READ_BYTES: usize = 64 << 10;

/// End of the reply to a get.
const END: &[u8] = b"END\r\n";

pub(super) struct Client {
    stream: TcpStream,
    asking: Asking,
    /// Parts of a value's reply: before the key, between key and value, and after the value.
    parts: [Vec<u8>; 3],
    value_bytes: usize,
    /// Keys without a reply yet, and when they were requested.
    asked: VecDeque<(u64, Instant)>,
    request: Vec<u8>,
    /// By key of the reply being parsed: whether it has the key's value.
    found: Vec<bool>,
    /// Buffer of replies, zeroed once; bytes `at..filled` are not parsed yet.
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
        let parts = [b"VALUE ".to_vec(), format!(" 0 {value_bytes}\r\n").into(), b"\r\n".to_vec()];
        Ok(Self {
            stream,
            asking,
            parts,
            value_bytes,
            asked: VecDeque::new(),
            request: Vec::new(),
            found: Vec::new(),
            replies: Vec::new(),
            filled: 0,
            at: 0,
        })
    }

    /// Sends as many gets as may be in flight, if it is time for more.
    pub fn send(&mut self, keys: &mut impl FnMut() -> u64) -> io::Result<()> {
        let more = self.asking.gets() - self.asked.len();
        let is_time = matches!(self.asking, Asking::KeepingUp(_)) || self.asked.is_empty();
        if more == 0 || !is_time {
            return Ok(());
        }
        self.request.clear();
        let now = Instant::now();
        for _ in 0..more / self.asking.keys_of_a_get() {
            self.request.extend_from_slice(b"get");
            for _ in 0..self.asking.keys_of_a_get() {
                let key = keys();
                self.asked.push_back((key, now));
                self.request.push(b' ');
                self.request.extend_from_slice(&Items::key(key));
            }
            self.request.extend_from_slice(b"\r\n");
        }
        // Requests are far shorter than a socket's buffer, and few are in flight.
        self.stream.write_all(&self.request)
    }

    /// Reads what has arrived.
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

    /// Parses the complete replies.
    fn look(&mut self, figures: &mut LoadFigures) -> io::Result<()> {
        let now = Instant::now();
        while !self.asked.is_empty() {
            let Some(end) = self.reply()? else { break };
            self.at = end;
            for (is_hit, (_, sent)) in
                self.found.drain(..).zip(self.asked.drain(..self.asking.keys_of_a_get()))
            {
                figures.add(is_hit, now - sent);
            }
        }
        Ok(())
    }

    /// Parses the reply to the first get and returns its end; `None`: it is incomplete. Values come in the order of the
    /// keys, without those of missing keys.
    fn reply(&mut self) -> io::Result<Option<usize>> {
        let [before, between, after] = &self.parts;
        let value_at = before.len() + KEY_BYTES + between.len();
        let whole = value_at + self.value_bytes + after.len();
        let asked = self.asking.keys_of_a_get();
        self.found.clear();
        let mut at = self.at;
        loop {
            let rest = &self.replies[at..self.filled];
            if rest.starts_with(END) {
                self.found.resize(asked, false);
                return Ok(Some(at + END.len()));
            }
            if rest.len() < whole && (rest.is_empty() || b"VE".contains(&rest[0])) {
                return Ok(None);
            }
            let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
            if rest.len() < whole || !rest.starts_with(before) {
                return Err(io::Error::other(format!("no reply to a get: {}", text(rest))));
            }
            let of = |place: usize| Items::key(self.asked[place].0);
            let is_of = |place: &usize| rest[before.len()..].starts_with(&of(*place));
            let place = (self.found.len()..asked).find(is_of);
            let is_right = |place| rest[value_at..].starts_with(&of(place)) && rest[..whole].ends_with(after);
            let Some(place) = place.filter(|place| is_right(*place)) else {
                let key = of(place.unwrap_or(self.found.len().min(asked - 1)));
                return Err(io::Error::other(format!("asked for {}, got {}", text(&key), text(rest))));
            };
            self.found.resize(place, false);
            self.found.push(true);
            at += whole;
        }
    }
}
