//! Traces of records of a fixed length.

use super::packed::Bytes;
use super::{Request, TraceError};
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

/// Reads records of `N` bytes, and turns them into requests by `parse`.
pub(super) struct Records<const N: usize, P> {
    path: PathBuf,
    bytes: Bytes,
    parse: P,
    offset: u64,
    ended: bool,
}

impl<const N: usize, P: FnMut(&[u8; N]) -> Result<Request, String>> Records<N, P> {
    pub(super) fn new(path: PathBuf, bytes: Bytes, parse: P) -> Self {
        Self { path, bytes, parse, offset: 0, ended: false }
    }

    fn wrong(&self, what: String) -> TraceError {
        TraceError::Record { path: self.path.clone(), offset: self.offset, what }
    }

    /// `None` at the end.
    fn read(&mut self) -> Result<Option<Request>, TraceError> {
        let mut record = [0; N];
        let mut filled = 0;
        while filled < N {
            match self.bytes.read(&mut record[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(self.wrong(format!("{filled} bytes of a record of {N}: cut off"))),
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(TraceError::read(&self.path)(error)),
            }
        }
        let request = (self.parse)(&record).map_err(|what| self.wrong(what))?;
        self.offset += N as u64;
        Ok(Some(request))
    }
}

impl<const N: usize, P: FnMut(&[u8; N]) -> Result<Request, String>> Iterator for Records<N, P> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read().transpose();
        self.ended = !matches!(read, Some(Ok(_)));
        read
    }
}
