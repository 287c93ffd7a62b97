//! The bytes of a connection: as they are, or through TLS.

use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// A client's connection over a stream that does not block.
#[derive(Debug)]
pub struct MaybeTlsStream<S> {
    /// The stream, for everything except its bytes: events, addresses.
    pub stream: S,
    tls: Option<Box<ServerConnection>>,
    /// Bytes sent, including TLS's own.
    sent: u64,
}

impl<S: Read + Write> MaybeTlsStream<S> {
    /// Bytes as they are.
    pub fn new(stream: S) -> Self {
        Self { stream, tls: None, sent: 0 }
    }

    /// Begins TLS: the next byte is the client's hello.
    ///
    /// # Errors
    /// The configuration is unusable.
    pub fn encrypt(&mut self, configuration: &Arc<ServerConfig>) -> Result<(), rustls::Error> {
        self.tls = Some(Box::new(ServerConnection::new(Arc::clone(configuration))?));
        Ok(())
    }

    /// Whether TLS is spoken: it may then hold received bytes that the stream does not report, and a read that does not
    /// fill its buffer need not have read everything.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Bytes sent so far: bytes before them were taken by the client.
    pub fn bytes_sent(&self) -> u64 {
        self.sent
    }

    /// Whether written bytes wait for the client to take them.
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends the bytes that TLS holds back.
    ///
    /// # Errors
    /// `WouldBlock` if the client does not take all of them now, and those of the stream.
    pub fn send(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                self.sent += tls.write_tls(&mut self.stream)? as u64;
            }
        }
        Ok(())
    }

    /// Sends TLS's closing alert, if TLS is spoken.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // If it cannot be sent, the client sees the end without it.
            let _ = self.send();
        }
    }

    /// Reads; 0: the client sends no more.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has come, and those of the stream and of TLS.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else { return self.stream.read(buffer) };
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A client that disconnects without TLS's closing alert has disconnected all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let came = tls.read_tls(&mut self.stream);
            let processed = tls.process_new_packets().map_err(io::Error::other);
            // If there is an alert to send, it tells the client the error.
            match self.send() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            processed?;
            if came? == 0 {
                return Ok(0);
            }
        }
    }

    /// Writes as many bytes as the client, or TLS, takes.
    ///
    /// # Errors
    /// `WouldBlock` if that is none, and those of the stream and of TLS.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tls.is_none() {
            let len = self.stream.write(bytes)?;
            self.sent += len as u64;
            return Ok(len);
        }
        // Held-back bytes go first, so that no more than TLS's own buffer is held back.
        self.send()?;
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let written = tls.writer().write(bytes)?;
        match self.send() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(written),
        }
    }
}
