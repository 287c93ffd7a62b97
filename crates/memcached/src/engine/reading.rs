//! Reads of many clients at once: all leading `get`, `gets` and plain `mg` of all sessions are one look
//! into the cache.

use super::Engine;
use super::session::{Input, Output, Session};
use crate::commands::{self, Shown};
use crate::item::{Header, Item};
use crate::limits::{BATCH_BYTES_MAX, KEYS_PER_BATCH};
use crate::protocol::{Meta, Numbered, Request, Step, Taken, keys_from, reply};
use crate::store::{Looked, Why};
use granary_cache::Key;
use std::ops::Range;

/// A part of a reply.
enum Part<'a> {
    Key {
        key: &'a [u8],
        numbered: Numbered,
    },
    /// `END`.
    End,
    Meta(Box<Meta<'a>>),
}

/// A part of a reply, and where the request that it answers begins.
struct Piece<'a> {
    session: usize,
    at: usize,
    /// Where its key begins among the keys of the request.
    resume: usize,
    part: Part<'a>,
}

impl Piece<'_> {
    fn key(&self) -> Option<&[u8]> {
        match &self.part {
            Part::Key { key, .. } => Some(key),
            Part::End => None,
            Part::Meta(meta) => Some(&meta.key),
        }
    }
}

/// What was found of a key.
enum Found {
    Hit(Header, Range<usize>),
    Miss(Why),
    /// Its value found no room: it is to be looked up again.
    Later,
}

/// How far the input of a session was answered.
#[derive(Clone, Copy)]
struct Answered {
    len: usize,
    resume: usize,
}

/// A look ahead: `get`, `gets`, `bget` and `mg`, and a few others.
fn may_be_read(rest: &[u8]) -> bool {
    matches!(rest, [b'g' | b'b' | b' ', ..] | [b'm', b'g', ..])
}

/// The pieces of what a session's input begins with.
fn gather<'a>(session: usize, input: &'a Input, pieces: &mut Vec<Piece<'a>>) -> Answered {
    let mut done = Answered { len: 0, resume: input.resume };
    loop {
        if !may_be_read(&input.rest()[done.len..]) || pieces.len() >= KEYS_PER_BATCH {
            return done;
        }
        let at = done.len;
        let (request, len) = match input.next_after(at) {
            Step::Request(request, Taken { len, .. }) => (request, len),
            _ => return done,
        };
        match request {
            Request::Get { keys, numbered } => {
                for (resume, key) in keys_from(keys, done.resume) {
                    if pieces.len() >= KEYS_PER_BATCH {
                        return Answered { len: at, resume };
                    }
                    pieces.push(Piece { session, at, resume, part: Part::Key { key, numbered } });
                }
                pieces.push(Piece { session, at, resume: keys.len(), part: Part::End });
            }
            Request::MetaGet(meta) if commands::is_plain(&meta) => {
                pieces.push(Piece { session, at, resume: 0, part: Part::Meta(Box::new(meta)) });
            }
            _ => return done,
        }
        done = Answered { len: at + len, resume: 0 };
    }
}

impl Engine {
    /// Answers the reads that sessions begin with; whether any was answered.
    pub(super) fn read_many(&mut self, sessions: &mut [Session], now: u32) -> bool {
        if !sessions.iter().any(|session| may_be_read(session.input.rest())) {
            return false;
        }
        let may: Vec<bool> = sessions.iter().map(Session::may_step).collect();
        let mut parts: Vec<(&Input, &mut Output)> =
            sessions.iter_mut().map(|session| (&session.input, &mut session.output)).collect();
        let mut pieces = Vec::new();
        let mut answered: Vec<Answered> = Vec::with_capacity(parts.len());
        for (i, (input, _)) in parts.iter().enumerate() {
            let nothing = Answered { len: 0, resume: input.resume };
            answered.push(if may[i] { gather(i, input, &mut pieces) } else { nothing });
        }
        if pieces.is_empty() {
            return false;
        }
        let keys: Vec<Key<'_>> = pieces.iter().filter_map(|piece| piece.key().map(Key::new)).collect();
        let mut found = self.look_up(&keys, now);
        if matches!(found.first(), Some(Found::Later)) {
            // Long values of others took all the room: the first key has its turn alone.
            self.values.clear();
            found = self.look_up(&keys[..1], now);
            found.resize_with(keys.len(), || Found::Later);
        }
        let (mut next, mut given) = (0, 0);
        let mut stopped = None;
        for piece in &pieces {
            let found = piece.key().map(|_| {
                next += 1;
                (&found[next - 1], keys[next - 1])
            });
            if stopped == Some(piece.session) {
                continue;
            }
            let output = &mut *parts[piece.session].1;
            if !output.has_room() || self.answer(piece, found, now, &mut output.bytes) == Answer::Later {
                stopped = Some(piece.session);
                answered[piece.session] = Answered { len: piece.at, resume: piece.resume };
            } else {
                given += 1;
            }
        }
        for (session, answered) in sessions.iter_mut().zip(answered) {
            if answered.len > 0 {
                session.advance(Taken { len: answered.len, swallow: 0 });
            }
            session.input.resume = answered.resume;
        }
        self.values.clear();
        given > 0
    }

    fn look_up(&mut self, keys: &[Key<'_>], now: u32) -> Vec<Found> {
        let Engine { shared, lane, values, .. } = self;
        let mut found: Vec<Found> = keys.iter().map(|_| Found::Later).collect();
        shared.store.get_many(lane, keys, now, |i, looked| match looked {
            Looked::Miss(why) => found[i] = Found::Miss(why),
            Looked::Hit(Item { header, data }) => {
                if values.is_empty() || values.len() + data.len() <= BATCH_BYTES_MAX {
                    let begin = values.len();
                    values.extend_from_slice(data);
                    found[i] = Found::Hit(header, begin..values.len());
                }
            }
        });
        found
    }

    fn answer(
        &self,
        piece: &Piece<'_>,
        found: Option<(&Found, Key<'_>)>,
        now: u32,
        out: &mut Vec<u8>,
    ) -> Answer {
        let counters = self.counters();
        let Some((found, key)) = found else {
            out.extend_from_slice(b"END\r\n");
            return Answer::Given;
        };
        let item = match found {
            Found::Later => return Answer::Later,
            Found::Hit(header, data) => Some(Item { header: *header, data: &self.values[data.clone()] }),
            Found::Miss(_) => None,
        };
        match (&piece.part, item) {
            (Part::Key { key, numbered }, Some(item)) => {
                let cas = (*numbered == Numbered::Yes).then_some(item.header.cas);
                reply::value(out, key, item.header.flags, cas, item.data);
            }
            (Part::Key { .. } | Part::End, _) => {}
            (Part::Meta(meta), Some(item)) => {
                let begin = out.len();
                let last_read = self.shared.store.last_read(key);
                let header = commands::shown(meta, item, Shown { last_read, now }, out);
                if header != item.header {
                    // Only one client may win a stale item: that is decided under its lock.
                    out.truncate(begin);
                    return Answer::Later;
                }
            }
            (Part::Meta(meta), None) => commands::missed(meta, out),
        }
        counters.cmd_get.add(1);
        match found {
            Found::Miss(why) => self.count_miss(*why),
            _ => {
                counters.get_hits.add(1);
                if !matches!(&piece.part, Part::Meta(meta) if meta.flags.unnoticed) {
                    self.shared.store.note_read(key, now);
                }
            }
        }
        Answer::Given
    }
}

/// Whether a reply was written.
#[derive(PartialEq, Eq)]
enum Answer {
    Given,
    Later,
}
