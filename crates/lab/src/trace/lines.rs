//! Traces as text: each line stands for one or several requests.

use super::packed::Bytes;
use super::{Request, TraceError};
use std::io::{BufRead, Read};
use std::path::PathBuf;

/// Maximum bytes of a line. Keys of the traced caches have at most 250 bytes.
const LINE_BYTES: u64 = 64 << 10;

/// The content of a line.
pub(super) enum Line {
    /// A heading, or something that is not replayed.
    Nothing,
    /// A request, repeated this many times (at least once).
    Requests(Request, u32),
}

/// Reads lines, and turns them into requests by `parse`.
pub(super) struct Lines<P> {
    path: PathBuf,
    bytes: Bytes,
    parse: P,
    line: u64,
    text: Vec<u8>,
    repeated: Option<(Request, u32)>,
    ended: bool,
}

impl<P: FnMut(&str) -> Result<Line, String>> Lines<P> {
    pub(super) fn new(path: PathBuf, bytes: Bytes, parse: P) -> Self {
        Self { path, bytes, parse, line: 0, text: Vec::new(), repeated: None, ended: false }
    }

    fn wrong(&self, what: impl Into<String>) -> TraceError {
        TraceError::Line { path: self.path.clone(), line: self.line, what: what.into() }
    }

    /// The next line that is not empty; `None` at the end.
    fn read(&mut self) -> Result<Option<Line>, TraceError> {
        loop {
            self.text.clear();
            self.line += 1;
            let mut limited = (&mut self.bytes).take(LINE_BYTES + 1);
            let read = limited.read_until(b'\n', &mut self.text).map_err(TraceError::read(&self.path))?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 > LINE_BYTES {
                return Err(self.wrong(format!("longer than {LINE_BYTES} bytes")));
            }
            let Ok(text) = std::str::from_utf8(&self.text) else {
                return Err(self.wrong("not text"));
            };
            let text = text.trim();
            if !text.is_empty() {
                let parsed = (self.parse)(text);
                return parsed.map(Some).map_err(|what| self.wrong(what));
            }
        }
    }
}

impl<P: FnMut(&str) -> Result<Line, String>> Iterator for Lines<P> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((request, times)) = &mut self.repeated {
                let request = *request;
                *times -= 1;
                if *times == 0 {
                    self.repeated = None;
                }
                return Some(Ok(request));
            }
            if self.ended {
                return None;
            }
            match self.read() {
                Ok(Some(Line::Nothing)) => {}
                Ok(Some(Line::Requests(request, times))) => self.repeated = Some((request, times)),
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// The field `name` of a line, as a number.
pub(super) fn number<N: std::str::FromStr>(text: Option<&str>, name: &str) -> Result<N, String> {
    let text = field(text, name)?;
    text.parse().map_err(|_| format!("{name} is {text:?}, not a number that fits"))
}

/// The field `name` of a line.
pub(super) fn field<'a>(text: Option<&'a str>, name: &str) -> Result<&'a str, String> {
    text.map(str::trim).ok_or_else(|| format!("{name} is missing"))
}

/// Seconds, from a number that may have a fraction.
pub(super) fn seconds(text: Option<&str>, name: &str) -> Result<u64, String> {
    let seconds: f64 = number(text, name)?;
    if !(0.0..1e12).contains(&seconds) {
        return Err(format!("{name} is {seconds}, not a time in seconds"));
    }
    Ok(seconds as u64)
}

/// The number for a key that is text: its value if it is a number, else a hash.
pub(super) fn key(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| twox_hash::XxHash3_64::oneshot(text.as_bytes()))
}
