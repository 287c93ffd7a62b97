//! Cuts reads into the parts of their replies, once: reads that wait for the device are kept as positions in the input.

use super::input::{Cursor, Input, may_be_read};
use super::parked::{InRequest, ParkedText, bytes_at, place_of};
use crate::commands;
use crate::protocol::{Meta, MetaFlags, Request, Step, WithCas, keys_from};
use std::borrow::Cow;

/// A part of a reply.
#[derive(Debug, PartialEq)]
pub(super) enum Part<'a> {
    Key {
        key: &'a [u8],
        with_cas: WithCas,
    },
    /// `END`.
    End,
    Meta(Box<Meta<'a>>),
}

/// A part of a reply, and where the request that it answers begins.
#[derive(Debug, PartialEq)]
pub(super) struct Piece<'a> {
    pub at: usize,
    /// The beginning of this part's key among the keys of the request.
    pub resume: usize,
    pub part: Part<'a>,
}

impl Piece<'_> {
    /// The key that is looked up for this piece.
    pub fn key(&self) -> Option<&[u8]> {
        match &self.part {
            Part::Key { key, .. } => Some(key),
            Part::End => None,
            Part::Meta(meta) => Some(&meta.key),
        }
    }
}

/// Gathers the pieces of the reads that a session's input continues with, of at most `keys_max` keys.
pub(super) fn gather<'a>(
    input: &'a Input,
    from: Cursor,
    keys_max: usize,
    pieces: &mut Vec<Piece<'a>>,
) -> Cursor {
    let mut done = from;
    let mut gathered = 0;
    loop {
        if !may_be_read(&input.rest()[done.len..]) || gathered >= keys_max {
            return done;
        }
        let at = done.len;
        let Step::Request(request, taken) = input.next_after(at) else { return done };
        match request {
            Request::Get { keys, with_cas } => {
                for (resume, key) in keys_from(keys, done.resume) {
                    if gathered >= keys_max {
                        input.remember_get(at, keys, with_cas, taken);
                        return Cursor { len: at, resume };
                    }
                    gathered += 1;
                    pieces.push(Piece { at, resume, part: Part::Key { key, with_cas } });
                }
                pieces.push(Piece { at, resume: keys.len(), part: Part::End });
            }
            Request::MetaGet(meta) if commands::is_plain(&meta) => {
                gathered += 1;
                pieces.push(Piece { at, resume: 0, part: Part::Meta(Box::new(meta)) });
            }
            _ => return done,
        }
        done = Cursor { len: at + taken.len, resume: 0 };
    }
}

/// The pieces of reads that wait for the device. Their bytes stay in the input, which only grows behind them.
#[derive(Debug, Default)]
pub(super) struct ParkedPieces {
    pieces: Vec<ParkedPiece>,
    /// The number of pieces that were given.
    given: usize,
    /// The end of the pieces in the input, in bytes since the session began.
    end: u64,
    /// The next key in the request that begins at `end`.
    end_resume: usize,
}

/// A piece that does not borrow the input.
#[derive(Debug)]
struct ParkedPiece {
    /// The beginning of the request, in bytes since the session began.
    at: u64,
    resume: u32,
    part: ParkedPart,
}

#[derive(Debug)]
enum ParkedPart {
    Key { key: InRequest, with_cas: WithCas },
    End,
    Meta(Box<ParkedMeta>),
}

#[derive(Debug)]
struct ParkedMeta {
    key: ParkedText,
    /// The flags with empty text.
    flags: MetaFlags<'static>,
    text: ParkedText,
}

impl ParkedPieces {
    /// Keeps pieces that were gathered from an input, up to this cursor.
    pub fn keep(&mut self, input: &Input, pieces: &[Piece<'_>], end: Cursor) {
        let rest = input.rest();
        let kept = pieces.iter().map(|Piece { at, resume, part }| {
            let request = &rest[*at..];
            let part = match part {
                Part::Key { key, with_cas } => {
                    ParkedPart::Key { key: place_of(key, request), with_cas: *with_cas }
                }
                Part::End => ParkedPart::End,
                Part::Meta(meta) => ParkedPart::Meta(Box::new(ParkedMeta {
                    key: ParkedText::new(&meta.key, request),
                    flags: meta.flags.with_text(b""),
                    text: ParkedText::new(meta.flags.text, request),
                })),
            };
            ParkedPiece { at: input.position() + *at as u64, resume: *resume as u32, part }
        });
        self.pieces.extend(kept);
        (self.end, self.end_resume) = (input.position() + end.len as u64, end.resume);
    }

    /// The next pieces, of `keys` keys, and the cursor behind them in the input.
    pub fn next<'a>(&'a self, input: &'a Input, keys: usize) -> (Vec<Piece<'a>>, Cursor) {
        let rest = &self.pieces[self.given..];
        // The end of a reply goes with the last of its keys.
        let mut left = keys;
        let count = rest.iter().position(|piece| match piece.part {
            ParkedPart::End => false,
            _ if left == 0 => true,
            _ => {
                left -= 1;
                false
            }
        });
        let next = &rest[..count.unwrap_or(rest.len())];
        let from = |at: u64| (at - input.position()) as usize;
        let pieces = next.iter().map(|piece| {
            let at = from(piece.at);
            let request = &input.rest()[at..];
            let part = match &piece.part {
                ParkedPart::Key { key, with_cas } => {
                    Part::Key { key: bytes_at(request, key), with_cas: *with_cas }
                }
                ParkedPart::End => Part::End,
                ParkedPart::Meta(meta) => Part::Meta(Box::new(Meta {
                    key: Cow::Borrowed(meta.key.bytes(request)),
                    flags: meta.flags.with_text(meta.text.bytes(request)),
                })),
            };
            Piece { at, resume: piece.resume as usize, part }
        });
        let end = match rest.get(next.len()) {
            Some(ParkedPiece { at, resume, .. }) => {
                let is_begun = next.last().is_some_and(|last| last.at == *at);
                Cursor { len: from(*at), resume: if is_begun { *resume as usize } else { 0 } }
            }
            None => Cursor { len: from(self.end), resume: self.end_resume },
        };
        (pieces.collect(), end)
    }

    /// Notes that `count` more pieces were given.
    pub fn give(&mut self, count: usize) {
        self.given += count;
    }

    /// Drops all pieces.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.given = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::Session;
    use super::*;
    use crate::protocol::Access;

    /// However many keys are answered at once, the kept pieces are those that parsing the input again would yield.
    #[test]
    fn what_is_kept_is_what_was_sent() {
        const READS: [&str; 9] = [
            "get a\r\n",
            "gets  bb ccc  dddd \r\n",
            "get a a a a a a a a\r\n",
            "mg a\r\n",
            "mg key v k q Oopaque t c\r\n",
            "mg a2V5IHdpdGggYmxhbmtz b k v\r\n",
            "mg a2V5 v k O1 b s\r\n",
            "mn\r\n",
            "bget x y\r\n",
        ];
        for seed in 0..500 {
            let mut random = fastrand::Rng::with_seed(seed);
            let text: String = (0..random.usize(1..12)).map(|_| READS[random.usize(..READS.len())]).collect();
            let mut session = Session::new(1 << 20, Access::Granted, 0);
            session.receive(b"get before\r\n");
            session.receive(text.as_bytes());
            session.advance_past_reads(Cursor { len: 12, resume: 0 });
            let mut kept = ParkedPieces::default();
            let (mut pieces, mut keys) = (Vec::new(), 0);
            let keys_max = random.usize(1..30);
            let end = gather(&session.input, Cursor::default(), keys_max, &mut pieces);
            keys += pieces.iter().filter(|piece| piece.key().is_some()).count();
            kept.keep(&session.input, &pieces, end);
            while keys > 0 {
                session.receive(b"get behind\r\n");
                let count = random.usize(1..=keys);
                keys -= count;
                let from = Cursor { len: 0, resume: session.input.resume };
                let mut again = Vec::new();
                let cursor = gather(&session.input, from, count, &mut again);
                let next = kept.next(&session.input, count);
                assert_eq!(next, (again, cursor), "{text:?}");
                let given = next.0.len();
                kept.give(given);
                session.advance_past_reads(cursor);
            }
        }
    }
}
