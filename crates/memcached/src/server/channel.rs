//! The bytes of a connection: as they are, or through TLS.

use super::stream::Stream;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::sync::Arc;

pub(super) struct Channel {
    pub stream: Stream,
    tls: Option<Box<ServerConnection>>,
    /// Bytes that went out, TLS's own among them.
    sent: u64,
}

impl Channel {
    /// # Errors
    /// A configuration that serves nobody.
    pub fn new(stream: Stream, tls: Option<&Arc<ServerConfig>>) -> Result<Self, rustls::Error> {
        let tls = tls.map(|tls| ServerConnection::new(Arc::clone(tls))).transpose()?;
        Ok(Self { stream, tls: tls.map(Box::new), sent: 0 })
    }

    /// Whether a read that does not fill its buffer has read all there was.
    pub fn reads_all(&self) -> bool {
        self.tls.is_none()
    }

    /// How many bytes went out so far: the client took those before.
    pub fn bytes_sent(&self) -> u64 {
        self.sent
    }

    /// Whether bytes that were written wait for the client to take them.
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends what TLS holds back; `WouldBlock`: the client does not take all of it now.
    pub fn send(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                self.sent += tls.write_tls(&mut self.stream)? as u64;
            }
        }
        Ok(())
    }

    /// Reads; 0: the client sends no more.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A client that goes without a word of TLS has gone all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let came = tls.read_tls(&mut self.stream);
            // An alert, where there is one to give, says what is wrong.
            let processed = tls.process_new_packets().map_err(io::Error::other);
            while tls.wants_write() {
                match tls.write_tls(&mut self.stream) {
                    Ok(len) => self.sent += len as u64,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            if came? == 0 {
                return Ok(0);
            }
            processed?;
        }
    }

    /// Writes as much as the client, or TLS, takes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tls.is_none() {
            let len = self.stream.write(bytes)?;
            self.sent += len as u64;
            return Ok(len);
        }
        // What waits goes first, so that no more than TLS's own buffer waits.
        self.send()?;
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let written = tls.writer().write(bytes)?;
        match self.send() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(written),
        }
    }
}
