//! Requests that wait: parsed, and without a borrow of the input. Their texts stay in the input, which only grows
//! behind them.

use crate::protocol::{Request, Taken, Texts};
use std::ops::Range;

/// A range of bytes, counted from the beginning of the request.
pub(super) type InRequest = Range<u32>;

/// The place of `part` in the slice `whole`, of which it is a part.
pub(super) fn place_of(part: &[u8], whole: &[u8]) -> InRequest {
    let begin = part.as_ptr() as usize - whole.as_ptr() as usize;
    begin as u32..(begin + part.len()) as u32
}

/// The bytes at a place of a request.
pub(super) fn bytes_at<'a>(request: &'a [u8], place: &InRequest) -> &'a [u8] {
    &request[place.start as usize..place.end as usize]
}

/// A text of a request: a part of its bytes, or decoded from such a part.
#[derive(Debug)]
pub(super) enum ParkedText {
    AsSent(InRequest),
    Decoded(Box<[u8]>),
}

impl ParkedText {
    /// A text of the request that `whole` begins with.
    pub fn new(text: &[u8], whole: &[u8]) -> Self {
        let bytes = whole.as_ptr_range();
        match text {
            [] => Self::AsSent(0..0),
            text if bytes.contains(&text.as_ptr()) => Self::AsSent(place_of(text, whole)),
            text => Self::Decoded(text.into()),
        }
    }

    /// The text.
    pub fn bytes<'a>(&'a self, request: &'a [u8]) -> &'a [u8] {
        match self {
            Self::AsSent(place) => bytes_at(request, place),
            Self::Decoded(text) => text,
        }
    }
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct ParkedRequest {
    /// Its beginning, in bytes since the session began.
    at: u64,
    /// The request with empty texts.
    request: Request<'static>,
    key: ParkedText,
    flags: ParkedText,
    data: ParkedText,
    taken: Taken,
}

impl ParkedRequest {
    /// The form of `request`, which `whole` begins with.
    pub fn new(at: u64, whole: &[u8], request: &Request<'_>, taken: Taken) -> Self {
        let Texts { key, flags, data } = request.texts();
        Self {
            at,
            request: request.with_texts(Texts::default()),
            key: ParkedText::new(key, whole),
            flags: ParkedText::new(flags, whole),
            data: ParkedText::new(data, whole),
            taken,
        }
    }

    /// The beginning of the request, in bytes since the session began.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The request, which `whole` begins with.
    pub fn request<'a>(&'a self, whole: &'a [u8]) -> (Request<'a>, Taken) {
        let texts = Texts {
            key: self.key.bytes(whole),
            flags: self.flags.bytes(whole),
            data: self.data.bytes(whole),
        };
        (self.request.with_texts(texts), self.taken)
    }
}
