//! One connection: requests of several commands, and their replies in order.

use super::content::{Content, value_bytes};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Bytes of the buffer of a read.
const READ_BYTES: usize = 64 << 10;

/// Longest line of a reply.
const LINE_BYTES_MAX: usize = 2048;

/// Longer than any server takes.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    /// Buffer of replies, zeroed once; bytes `at..filled` are not parsed yet.
    replies: Vec<u8>,
    at: usize,
    filled: usize,
}

/// Opens a connection with the options that all connections here have.
pub(super) fn connect(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

impl Connection {
    pub fn new(server: SocketAddr) -> io::Result<Self> {
        let stream = connect(server)?;
        Ok(Self { stream, request: Vec::new(), replies: Vec::new(), at: 0, filled: 0 })
    }

    /// Adds `get` or `delete` to the request.
    pub fn ask(&mut self, command: &str, key: &[u8]) {
        self.request.extend_from_slice(command.as_bytes());
        self.request.push(b' ');
        self.request.extend_from_slice(key);
        self.request.extend_from_slice(b"\r\n");
    }

    /// Adds `set` or `add`.
    pub fn store(&mut self, command: &str, key: &[u8], value: &[u8]) {
        self.request.extend_from_slice(command.as_bytes());
        self.request.push(b' ');
        self.request.extend_from_slice(key);
        write!(self.request, " 0 0 {}\r\n", value.len()).expect("a vector takes it");
        self.request.extend_from_slice(value);
        self.request.extend_from_slice(b"\r\n");
    }

    /// Sends the request.
    pub fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.request)?;
        self.request.clear();
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.at == self.filled {
            (self.at, self.filled) = (0, 0);
        }
        if self.replies.len() < self.filled + READ_BYTES {
            self.replies.resize(self.filled + READ_BYTES, 0);
        }
        match self.stream.read(&mut self.replies[self.filled..]) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(len) => {
                self.filled += len;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next line of replies, without its end.
    pub fn line(&mut self) -> io::Result<&[u8]> {
        let mut searched = 0;
        loop {
            let rest = &self.replies[self.at..self.filled];
            if let Some(end) = rest[searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.at..self.at + searched + end;
                self.at = line.end + 1;
                let line = &self.replies[line];
                return Ok(line.strip_suffix(b"\r").unwrap_or(line));
            }
            searched = rest.len();
            if searched > LINE_BYTES_MAX {
                return Err(io::Error::other("a reply without an end of line"));
            }
            self.fill()?;
        }
    }

    fn bytes(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.filled - self.at < len {
            self.fill()?;
        }
        self.at += len;
        Ok(&self.replies[self.at - len..self.at])
    }

    /// Reads the reply to a `get`, and returns whether the object was found. A value other than the one stored last is
    /// an error, as is any value if nothing was stored since the last deletion (`stored` is `None`).
    pub fn found(&mut self, content: &Content, key: u32, stored: Option<(u32, u32)>) -> io::Result<bool> {
        let line = self.line()?;
        if line == b"END" {
            return Ok(false);
        }
        let name = content.key(key);
        let text = String::from_utf8_lossy(&name);
        let Some((version, bytes)) = stored else {
            return Err(io::Error::other(format!(
                "{text}: nothing was stored, but the reply is {:?}",
                String::from_utf8_lossy(line)
            )));
        };
        let expected = format!("VALUE {text} 0 {}", value_bytes(bytes));
        if line != expected.as_bytes() {
            return Err(io::Error::other(format!(
                "{expected:?} is to come, but the reply is {:?}",
                String::from_utf8_lossy(line)
            )));
        }
        let value = content.value(key, version, bytes);
        let reply = self.bytes(value.len() + b"\r\nEND\r\n".len())?;
        if &reply[..value.len()] != value || &reply[value.len()..] != b"\r\nEND\r\n" {
            return Err(io::Error::other(format!("{text}: the value is not the one that was stored last")));
        }
        Ok(true)
    }
}
