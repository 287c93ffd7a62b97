//! The bytes that a client has sent, and the requests that they are cut into, each once.

use super::parked::{ParkedRequest, place_of};
use crate::limits::BUFFER_BYTES_KEPT;
use crate::protocol::{Decoder, Request, Step, Taken, WithCas};
use memchr::memchr;
use std::cell::Cell;
use std::ops::Range;

/// The bytes of a client that no request has taken yet.
#[derive(Debug)]
pub(super) struct Input {
    bytes: Vec<u8>,
    begin: usize,
    /// The number of bytes before those.
    passed: u64,
    decoder: Decoder,
    /// Bytes of keys of the request that comes next which were answered already.
    pub resume: usize,
    /// A `get` of many keys that was cut into words, and of which some keys are to be looked up later.
    known: Cell<Option<KnownGet>>,
    /// The next request, if it has to wait.
    parked: Option<Box<ParkedRequest>>,
    /// A line that has not ended: where it begins, and up to where that is known, in bytes since the session began.
    unended: Cell<(u64, u64)>,
    /// The number of requests, or beginnings of requests, that were parsed.
    #[cfg(test)]
    pub parses: Cell<usize>,
}

/// The place of the keys of a `get`.
#[derive(Clone, Copy, Debug)]
struct KnownGet {
    /// Its beginning, in bytes since the session began.
    at: u64,
    /// The beginning and the end of its keys in it.
    keys: (u32, u32),
    with_cas: WithCas,
    taken: Taken,
}

/// The end of the reads that an input begins with: bytes of whole requests, and of keys of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub len: usize,
    pub resume: usize,
}

/// Whether this begins with `get`, `gets`, `bget` or `mg`, or one of a few others.
pub(super) fn may_be_read(rest: &[u8]) -> bool {
    matches!(rest, [b'g' | b'b' | b' ', ..] | [b'm', b'g', ..])
}

impl Input {
    /// The input of a client that has just connected.
    pub fn new(decoder: Decoder) -> Self {
        Self {
            bytes: Vec::new(),
            begin: 0,
            passed: 0,
            decoder,
            resume: 0,
            known: Cell::new(None),
            parked: None,
            unended: Cell::new((0, 0)),
            #[cfg(test)]
            parses: Cell::new(0),
        }
    }

    /// Takes what the client sent. `wanted`: bytes that the next request has at least.
    pub fn receive(&mut self, bytes: &[u8], wanted: usize) {
        if self.begin > 0 {
            self.bytes.drain(..self.begin);
            self.begin = 0;
        }
        if self.bytes.capacity() < wanted {
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes that no request has taken yet.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// The beginning of the rest, in bytes since the session began.
    pub fn position(&self) -> u64 {
        self.passed
    }

    /// The next step.
    pub fn next(&self) -> Step<'_> {
        self.next_after(0)
    }

    /// The step that begins `skip` bytes further on, after steps that were requests without more.
    pub fn next_after(&self, skip: usize) -> Step<'_> {
        let (rest, at) = (&self.rest()[skip..], self.passed + skip as u64);
        if let Some(parked) = self.parked.as_ref().filter(|parked| parked.at() == at) {
            let (request, taken) = parked.request(rest);
            return Step::Request(request, taken);
        }
        if let Some(KnownGet { keys, with_cas, taken, .. }) = self.known.get().filter(|known| known.at == at)
        {
            let keys = &rest[keys.0 as usize..keys.1 as usize];
            return Step::Request(Request::Get { keys, with_cas }, taken);
        }
        #[cfg(test)]
        self.parses.set(self.parses.get() + 1);
        self.decoder.next_of(rest, self.line_end(skip))
    }

    /// Whether the line of the next request has come.
    pub fn has_line(&self) -> bool {
        self.line_end(0).is_some()
    }

    /// The end of the line that begins `skip` bytes further on. No byte is searched twice: a client may send a long line
    /// byte by byte.
    fn line_end(&self, skip: usize) -> Option<usize> {
        let (rest, at) = (&self.rest()[skip..], self.passed + skip as u64);
        let searched = match self.unended.get() {
            (begin, end) if begin == at => (end - at) as usize,
            _ => 0,
        };
        let found = memchr(b'\n', &rest[searched..]).map(|end| searched + end);
        if found.is_none() {
            self.unended.set((at, at + rest.len() as u64));
        }
        found
    }

    /// Remembers the `get` that begins `skip` bytes further on, which is gone on with: a line of many keys is cut into
    /// words once.
    pub fn remember_get(&self, skip: usize, keys: &[u8], with_cas: WithCas, taken: Taken) {
        let Range { start, end } = place_of(keys, &self.rest()[skip..]);
        let at = self.passed + skip as u64;
        self.known.set(Some(KnownGet { at, keys: (start, end), with_cas, taken }));
    }

    /// The next request in the form to [park](Self::park); `None`: it is parked.
    pub fn to_park(&self, request: &Request<'_>, taken: Taken) -> Option<Box<ParkedRequest>> {
        let is_parked = self.parked.is_some();
        (!is_parked).then(|| Box::new(ParkedRequest::new(self.passed, self.rest(), request, taken)))
    }

    /// Keeps the next request, which has to wait, so that it is not parsed again.
    pub fn park(&mut self, request: Option<Box<ParkedRequest>>) {
        if request.is_some() {
            self.parked = request;
        }
    }

    /// Goes on behind a step.
    pub fn advance(&mut self, taken: Taken) {
        self.begin += taken.len;
        self.passed += taken.len as u64;
        self.resume = 0;
        self.parked = None;
        self.decoder.advance(taken);
    }

    /// Lets the client in.
    pub fn authenticate(&mut self) {
        self.decoder.authenticate();
    }

    /// Gives back what an empty buffer takes beyond the usual.
    pub fn tidy(&mut self) {
        if self.begin == self.bytes.len() {
            self.bytes.clear();
            self.begin = 0;
            if self.bytes.capacity() > BUFFER_BYTES_KEPT {
                self.bytes = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pieces::gather;
    use super::*;
    use crate::protocol::Access;

    fn input(bytes: &[u8]) -> Input {
        let mut input = Input::new(Decoder::new(1 << 20, Access::Granted));
        input.receive(bytes, 0);
        input
    }

    #[test]
    fn a_line_of_many_keys_is_cut_into_words_once() {
        let input = input(b"mn\r\nget a bb  ccc\r\nget d\r\n");
        let mut pieces = Vec::new();
        let from = Cursor { len: 4, resume: 0 };
        let cursor = gather(&input, from, 2, &mut pieces);
        assert_eq!(cursor, Cursor { len: 4, resume: 6 });
        assert!(input.known.get().is_some_and(|known| known.at == 4));
        assert_eq!(input.next_after(4), input.decoder.next(&input.rest()[4..]));
        assert_eq!(input.next(), input.decoder.next(input.rest()));
    }

    /// Requests that may wait, each kind with all that it may have.
    const WAITING: [&str; 16] = [
        "gat 100 a bb  ccc \r\n",
        "gats -1 a\r\n",
        "set k 5 60 3\r\nabc\r\n",
        "cas k 0 0 0 17 noreply\r\n\r\n",
        "append some-key 0 0 4\r\n\r\n\r\n\r\n",
        "delete k noreply\r\n",
        "incr k 7\r\n",
        "decr k 7 noreply\r\n",
        "touch k 9\r\n",
        "mg k v T30 Oopaque\r\n",
        "mg a2V5 b k N30 v\r\n",
        "ms a2V5 3 b F7 T0 k\r\nabc\r\n",
        "md k I T30 q\r\n",
        "ma k MD D3 v\r\n",
        "me a2V5 b\r\n",
        "set large 0 0 2000000\r\n",
    ];

    #[test]
    fn a_request_that_waits_is_parsed_once_and_stays_what_it_is() {
        for text in WAITING {
            let mut input = input(b"mn\r\n");
            input.receive(text.as_bytes(), 0);
            input.advance(Taken { len: 4, swallow: 0 });
            let Step::Request(request, taken) = input.next() else { panic!("{text} is a request") };
            let parked = input.to_park(&request, taken);
            input.park(parked);
            let parses = input.parses.get();
            // Its bytes move, and others come behind them.
            input.receive(b"set other 0 0 1\r\nx\r\n", 0);
            assert_eq!(input.next(), input.decoder.next(input.rest()), "{text}");
            assert_eq!(input.parses.get(), parses, "{text}");
            let Step::Request(request, taken) = input.next() else { panic!("{text} is a request") };
            assert!(input.to_park(&request, taken).is_none(), "{text} is parked");
            input.advance(Taken { swallow: 0, ..taken });
            assert!(matches!(input.next(), Step::Request(Request::Put(put), _) if *put.key == *b"other"));
        }
    }
}
