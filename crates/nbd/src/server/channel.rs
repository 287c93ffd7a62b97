//! The bytes of a connection: as they are, or through TLS.

use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Non-blocking file descriptors: a socket, or two pipes.
pub(super) struct Wire {
    input: OwnedFd,
    /// Another one than `input`, if there is one.
    output: Option<OwnedFd>,
}

impl Wire {
    /// # Errors
    /// The file descriptors do not become non-blocking.
    pub fn new(input: OwnedFd, output: Option<OwnedFd>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&input, true)?;
        if let Some(output) = &output {
            rustix::io::ioctl_fionbio(output, true)?;
        }
        Ok(Self { input, output })
    }

    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_ref().unwrap_or(&self.input).as_fd()
    }

    /// Says that nothing more will be sent, where it is a socket.
    pub fn shutdown(&mut self) {
        // A pipe is no socket, and a client that has gone needs no telling.
        let _ = rustix::net::shutdown(self.output(), rustix::net::Shutdown::Write);
        self.output = self.output.take().filter(|_| false);
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.input, buffer)?)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.output(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct Channel {
    pub wire: Wire,
    tls: Option<Box<ServerConnection>>,
}

impl Channel {
    pub fn new(wire: Wire) -> Self {
        Self { wire, tls: None }
    }

    /// Begins TLS: the next byte is the client's hello.
    pub fn encrypt(&mut self, configuration: &Arc<ServerConfig>) -> Result<(), rustls::Error> {
        self.tls = Some(Box::new(ServerConnection::new(Arc::clone(configuration))?));
        Ok(())
    }

    /// Whether bytes may have arrived of which the file descriptor does not tell.
    pub fn is_buffered(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether bytes that were written wait for the client to take them.
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends what TLS holds back; `WouldBlock`: the client does not take all of it now.
    pub fn send(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.wire)?;
            }
        }
        Ok(())
    }

    /// Says goodbye in TLS, where that is spoken.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // If there is no room for it, the client sees the end without it.
            let _ = self.send();
        }
    }

    /// Reads; 0: the client sends no more.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.wire.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A client that goes without a word of TLS has gone all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let came = tls.read_tls(&mut self.wire);
            // An alert, where there is one to give, says what is wrong.
            let processed = tls.process_new_packets().map_err(io::Error::other);
            while tls.wants_write() {
                match tls.write_tls(&mut self.wire) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            processed?;
            if came? == 0 {
                return Ok(0);
            }
        }
    }

    /// Writes as much as the client, or TLS, takes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tls.is_none() {
            return self.wire.write(bytes);
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
