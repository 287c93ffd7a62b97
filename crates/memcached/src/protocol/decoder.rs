//! Cuts the bytes that a client sends into requests.

use super::request::{Request, WithCas};
use super::words::Words;
use super::{meta, text};
use crate::limits::{GET_BLANKS_MAX, GET_LINE_BYTES_MAX, LINE_BYTES_MAX};

/// The commands that a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may send all commands.
    Granted,
    /// Log in only, by a `set` with `user password` for its value.
    LoginFirst,
}

/// The reasons why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `quit`.
    Quit,
    /// The client speaks memcached's binary protocol, which is not served.
    Binary,
    /// The client speaks HTTP: a browser tricked into sending commands would do so.
    Http,
    /// The client sent a line that is too long.
    LongLine,
}

/// The meaning of the next bytes of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The beginning of a request that is at least this many bytes long.
    Incomplete(usize),
    /// A request.
    Request(Request<'a>, Taken),
    /// Data of a request that was refused.
    Swallow(Taken),
    /// The connection is to end once all requests before have been answered.
    End(Ending),
}

/// The bytes of the input that a step took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Bytes of the step itself.
    pub len: usize,
    /// Bytes that follow and are to be skipped.
    pub swallow: usize,
}

/// The meaning of a line.
pub(super) enum Line<'a> {
    /// A request without data.
    Whole(Request<'a>),
    /// A refused request, whose data follows, of this many bytes (line end included).
    Refused(Request<'a>, usize),
    /// An item whose value follows, of this many bytes, and a line end. The request's data is still empty.
    Item(Request<'a>, usize),
    /// The connection is to end.
    End(Ending),
}

/// The state of one connection's input.
#[derive(Debug)]
pub struct Decoder {
    item_bytes_max: usize,
    access: Access,
    swallow: usize,
    at_beginning: bool,
}

impl Decoder {
    /// The decoder for a client that has just connected.
    pub fn new(item_bytes_max: usize, access: Access) -> Self {
        Self { item_bytes_max, access, swallow: 0, at_beginning: true }
    }

    /// Grants the client access.
    pub fn authenticate(&mut self) {
        self.access = Access::Granted;
    }

    /// Advances behind the bytes that a step took.
    pub fn advance(&mut self, taken: Taken) {
        self.at_beginning = false;
        self.swallow = taken.swallow;
    }

    /// The step that `input` begins with.
    #[cfg(test)]
    pub fn next<'a>(&self, input: &'a [u8]) -> Step<'a> {
        self.next_of(input, memchr::memchr(b'\n', input))
    }

    /// The step that `input` begins with. Its first line ends at `line_end`; `None`: it has not ended yet.
    pub fn next_of<'a>(&self, input: &'a [u8], line_end: Option<usize>) -> Step<'a> {
        if self.swallow > 0 && !input.is_empty() {
            let len = self.swallow.min(input.len());
            return Step::Swallow(Taken { len, swallow: self.swallow - len });
        }
        match input.first() {
            None => return Step::Incomplete(1),
            Some(0x80) if self.at_beginning && self.access == Access::Granted => {
                return Step::End(Ending::Binary);
            }
            Some(_) => {}
        }
        let Some(end) = line_end else { return incomplete(input, self.access) };
        // A line of only a carriage return keeps it, and is an error either way.
        let line = match &input[..end] {
            [line @ .., b'\r'] if !line.is_empty() => line,
            line => line,
        };
        let data = &input[end + 1..];
        let line = match self.access {
            Access::Granted => self.line(line),
            Access::LoginFirst => text::login(&Words::of(line)),
        };
        match line {
            Line::Whole(request) => Step::Request(request, Taken { len: end + 1, swallow: 0 }),
            Line::End(ending) => Step::End(ending),
            Line::Refused(request, swallow) => Step::Request(request, Taken { len: end + 1, swallow }),
            Line::Item(_, len) if data.len() < len + 2 => Step::Incomplete(end + 1 + len + 2),
            Line::Item(request, len) => {
                let request = match (&data[len..len + 2], self.access) {
                    (b"\r\n", _) => with_data(request, &data[..len]),
                    (_, Access::Granted) => text::bad_data(&request),
                    (_, Access::LoginFirst) => Request::Say("CLIENT_ERROR bad command line termination"),
                };
                Step::Request(request, Taken { len: end + 1 + len + 2, swallow: 0 })
            }
        }
    }

    fn line<'a>(&self, line: &'a [u8]) -> Line<'a> {
        // Most requests are of this kind, for which the line need not be cut.
        if let Some(keys) = line.strip_prefix(b"get ") {
            return text::get(keys, WithCas::No);
        }
        let words = Words::of(line);
        match words.as_slice() {
            [] | [[] | [_], ..] => Line::Whole(Request::Say("ERROR")),
            [[b'm', kind], ..] => meta::line(*kind, &words, self.item_bytes_max),
            _ => text::line(&words, self.item_bytes_max),
        }
    }
}

/// The step for a line that has not ended yet: incomplete, or too long.
fn incomplete(input: &[u8], access: Access) -> Step<'_> {
    if input.len() <= LINE_BYTES_MAX {
        return Step::Incomplete(input.len() + 1);
    }
    let blanks = input.iter().take_while(|byte| **byte == b' ').count();
    let command = &input[blanks..];
    let is_get = command.starts_with(b"get ") || command.starts_with(b"gets ");
    // Who may only log in has no long lines to send.
    let may_get = is_get && access == Access::Granted;
    if blanks <= GET_BLANKS_MAX && may_get && input.len() <= GET_LINE_BYTES_MAX {
        Step::Incomplete(input.len() + 1)
    } else {
        Step::End(Ending::LongLine)
    }
}

fn with_data<'a>(request: Request<'a>, data: &'a [u8]) -> Request<'a> {
    match request {
        Request::Put(mut put) => {
            put.data = data;
            Request::Put(put)
        }
        Request::MetaSet(mut put, flags) => {
            put.data = data;
            Request::MetaSet(put, flags)
        }
        Request::Login(_) => Request::Login(data),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Exptime, Mode, Put, Reply};

    fn decoder() -> Decoder {
        Decoder::new(1 << 20, Access::Granted)
    }

    #[test]
    fn a_request_is_whole_or_says_what_it_wants() {
        let input = b"set k 5 60 3 noreply\r\nabc\r\nget k\r\n";
        let put = Put {
            mode: Mode::Set,
            key: b"k"[..].into(),
            flags: 5,
            exptime: Exptime(60),
            cas: 0,
            data: b"abc",
            reply: Reply::Quiet,
        };
        for len in 1..22 {
            assert_eq!(decoder().next(&input[..len]), Step::Incomplete(len + 1));
        }
        for len in 22..27 {
            assert_eq!(decoder().next(&input[..len]), Step::Incomplete(27));
        }
        assert_eq!(decoder().next(input), Step::Request(Request::Put(put), Taken { len: 27, swallow: 0 }));
    }

    #[test]
    fn data_of_what_was_refused_is_swallowed() {
        let mut decoder = Decoder::new(1024, Access::Granted);
        let Step::Request(Request::TooLarge { .. }, taken) = decoder.next(b"set k 0 0 5000\r\nxx") else {
            panic!("an item of 5000 bytes is too large");
        };
        assert_eq!(taken, Taken { len: 16, swallow: 5002 });
        decoder.advance(taken);
        assert_eq!(decoder.next(b""), Step::Incomplete(1));
        assert_eq!(decoder.next(b"xx"), Step::Swallow(Taken { len: 2, swallow: 5000 }));
        decoder.advance(Taken { len: 5000, swallow: 2 });
        assert_eq!(decoder.next(b"\r\nmn\r\n"), Step::Swallow(Taken { len: 2, swallow: 0 }));
    }

    #[test]
    fn what_ends_a_connection() {
        let long = [b'x'; LINE_BYTES_MAX + 1];
        let keys = b"get ".iter().chain(&[b'k'; GET_LINE_BYTES_MAX]).copied().collect::<Vec<u8>>();
        for (input, ending) in [
            (&b"\x80\x00"[..], Ending::Binary),
            (b"quit\r\nget a\r\n", Ending::Quit),
            (b"POST / HTTP/1.1\r\n", Ending::Http),
            (&long, Ending::LongLine),
            (&keys, Ending::LongLine),
        ] {
            assert_eq!(decoder().next(input), Step::End(ending));
        }
        assert_eq!(decoder().next(&keys[..5000]), Step::Incomplete(5001));
        // This byte means the binary protocol only at the beginning of a connection.
        let mut decoder = decoder();
        decoder.advance(Taken { len: 4, swallow: 0 });
        assert_eq!(decoder.next(b"\x80\x00"), Step::Incomplete(3));
    }

    #[test]
    fn who_must_log_in_can_do_nothing_else() {
        let mut decoder = Decoder::new(1 << 20, Access::LoginFirst);
        let refused = Request::Say("CLIENT_ERROR unauthenticated");
        assert_eq!(decoder.next(b"get a\r\n"), Step::Request(refused, Taken { len: 7, swallow: 0 }));
        let login = Step::Request(Request::Login(b"ann x"), Taken { len: 20, swallow: 0 });
        assert_eq!(decoder.next(b"set a 0 0 5\r\nann x\r\nget a\r\n"), login);
        let keys = b"get ".iter().chain(&[b'k'; LINE_BYTES_MAX]).copied().collect::<Vec<u8>>();
        assert_eq!(decoder.next(&keys[..LINE_BYTES_MAX]), Step::Incomplete(LINE_BYTES_MAX + 1));
        assert_eq!(decoder.next(&keys), Step::End(Ending::LongLine));
        decoder.authenticate();
        assert!(matches!(decoder.next(b"get a\r\n"), Step::Request(Request::Get { .. }, _)));
        assert!(matches!(decoder.next(&keys), Step::Incomplete(_)));
    }
}
