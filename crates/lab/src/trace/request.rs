//! One request, and a stream of them.

use super::TraceError;
use std::fmt;

/// A client's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read it.
    Get,
    /// Store it, whether it is there or not.
    Set,
    /// Store it if it is not there.
    Add,
    /// Remove it.
    Delete,
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Seconds since a start that depends on the trace.
    pub time: u64,
    /// The key, or a number that stands for it.
    pub key: u64,
    /// Bytes of the key; 0 if the trace does not tell.
    pub key_bytes: u32,
    /// Bytes of the value; 0 for a read whose size the trace does not tell (it missed when it was recorded).
    pub value_bytes: u32,
    /// The operation.
    pub operation: Operation,
    /// Seconds of the object's lifetime once stored; 0 is for ever, or unknown.
    pub ttl: u32,
}

/// How much of a stream of requests is real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Recorded, with the sizes of the objects.
    RealSized,
    /// Keys in recorded order; sizes drawn from a distribution by a hash of the key.
    RealKeys,
    /// Drawn from published statistics.
    Synthetic,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RealSized => "real, sized",
            Self::RealKeys => "real keys, assigned sizes",
            Self::Synthetic => "synthetic",
        })
    }
}

/// Requests, in order. After an error there are no more.
pub struct Trace {
    /// The trace's name in tables.
    pub name: String,
    /// How much of it is real.
    pub label: Label,
    requests: Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>,
}

impl Trace {
    /// A named stream.
    pub fn new(
        name: impl Into<String>,
        label: Label,
        requests: impl Iterator<Item = Result<Request, TraceError>> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), label, requests: Box::new(requests) }
    }
}

impl Iterator for Trace {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.requests.next()
    }
}
