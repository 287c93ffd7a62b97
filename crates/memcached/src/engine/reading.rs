//! Reads of many clients at once: all leading `get`, `gets` and plain `mg` of all sessions are one look
//! into the cache. A session some of whose keys are on the device waits for these, and is answered then;
//! reads that it asks for meanwhile are begun, and wait behind them. Each request is parsed once (`pieces.rs`).

use super::Engine;
use super::input::{Cursor, Input, may_be_read};
use super::pending::{Queue, ReadState};
use super::pieces::{Part, Piece, gather};
use super::session::{Output, Session};
use crate::commands::{self, Shown};
use crate::item::Item;
use crate::limits::{BATCH_BYTES_MAX, KEYS_PER_BATCH, KEYS_PROBED};
use crate::protocol::{WithCas, reply};
use crate::store::{Fetch, Lookup};
use granary_cache::Key;
use std::ops::Range;

/// The results of the lookups of some keys.
struct Lookups<'a> {
    keys: &'a [Key<'a>],
    found: &'a [ReadState],
    values: &'a [u8],
}

/// A session's number, and how far it has come, taken before its input is read.
struct SessionReads {
    /// The session's own number.
    number: usize,
    begun: Cursor,
    keys_max: usize,
    /// Whether earlier reads of it wait.
    waits: bool,
}

impl SessionReads {
    fn new(session: &Session) -> Self {
        Self {
            number: session.number,
            begun: session.begun(),
            keys_max: session.keys_left().min(session.keys_at_once()),
            waits: session.is_pending(),
        }
    }
}

/// The reads of one session: parts of those of all.
struct ReadRequest {
    session: usize,
    pieces: Range<usize>,
    keys: Range<usize>,
    cursor: Cursor,
    /// The place at which it waits, if it does.
    pending: Option<u32>,
    /// Whether all of it was answered at once.
    is_answered: bool,
    /// The keys that were answered until there was no room for more replies.
    filled_by: Option<usize>,
}

impl Engine {
    /// Looks up the reads that sessions begin with, answers those of which all keys are in RAM, and lets the
    /// others wait; whether there were any.
    pub(super) fn read_many(&mut self, sessions: &mut [Session], now: u32) -> bool {
        if !sessions.iter().any(|session| may_be_read(session.not_begun())) {
            return false;
        }
        let readers: Vec<SessionReads> = sessions.iter().map(SessionReads::new).collect();
        let mut parts: Vec<(&Input, &mut Output)> =
            sessions.iter_mut().map(|session| (&session.input, &mut session.output)).collect();
        let (mut pieces, mut requests) = (Vec::new(), Vec::new());
        self.gather_reads(&parts, &readers, &mut pieces, &mut requests);
        if requests.is_empty() {
            return false;
        }
        let keys: Vec<Key<'_>> =
            pieces.iter().filter_map(|piece| piece.key().map(|key| self.shared.store.key(key))).collect();
        let found = self.look_up(&keys, &readers, &mut requests, now);
        let mut is_progress = false;
        for request in &mut requests {
            let (keys, found) = (&keys[request.keys.clone()], &found[request.keys.clone()]);
            let pieces = &pieces[request.pieces.clone()];
            let (input, output) = &mut parts[request.session];
            if let Some(id) = request.pending {
                self.pending.fill(id, found, &self.values);
                self.pending.store(id, input, pieces, request.cursor);
                is_progress = true;
            } else {
                let found = Lookups { keys, found, values: &self.values };
                is_progress |= self.give_asked(request, pieces, found, now, output);
            }
        }
        for ReadRequest { session, cursor, pending, keys, is_answered, filled_by, .. } in requests {
            sessions[session].take_keys(keys.len());
            if is_answered {
                sessions[session].note_room();
            }
            filled_by.into_iter().for_each(|keys| sessions[session].note_full(keys));
            match pending {
                Some(id) => sessions[session].wait_for(id, cursor),
                None => sessions[session].advance_past_reads(cursor),
            }
        }
        self.values.clear();
        is_progress
    }

    /// Gathers the pieces of what the sessions ask for, and which of them are whose.
    fn gather_reads<'a>(
        &mut self,
        parts: &[(&'a Input, &mut Output)],
        readers: &[SessionReads],
        pieces: &mut Vec<Piece<'a>>,
        requests: &mut Vec<ReadRequest>,
    ) {
        let mut gathered = 0;
        for (session, (reader, (input, _))) in readers.iter().zip(parts).enumerate() {
            let keys_max = reader.keys_max.min(KEYS_PER_BATCH - gathered);
            let first = pieces.len();
            let cursor = gather(input, reader.begun, keys_max, pieces);
            let keys = pieces[first..].iter().filter(|piece| piece.key().is_some()).count();
            // What waits is known by its keys.
            if keys > 0 || (pieces.len() > first && !reader.waits) {
                let (pieces, keys) = (first..pieces.len(), gathered..gathered + keys);
                gathered = keys.end;
                // Behind reads that wait it waits, too.
                let pending = reader.waits.then(|| self.pending.open(reader.number, Queue::Behind));
                requests.push(ReadRequest {
                    session,
                    pieces,
                    keys,
                    cursor,
                    pending,
                    is_answered: false,
                    filled_by: None,
                });
            } else {
                pieces.truncate(first);
            }
        }
    }

    /// Looks up the keys of all sessions. The first key of a session that comes from the device lets the session wait.
    fn look_up(
        &mut self,
        keys: &[Key<'_>],
        readers: &[SessionReads],
        requests: &mut [ReadRequest],
        now: u32,
    ) -> Vec<ReadState> {
        let Engine { shared, context, values, pending, keys_fit, .. } = self;
        let mut found: Vec<ReadState> = keys.iter().map(|_| ReadState::Later).collect();
        let mut ticket = |i: usize| {
            let request = requests.partition_point(|request| request.keys.end <= i);
            let request = &mut requests[request];
            let number = readers[request.session].number;
            let id = *request.pending.get_or_insert_with(|| pending.open(number, Queue::Front));
            pending.await_key(id, i - request.keys.start)
        };
        // Values that find no room are copied in vain: a few keys tell how long those of the others may be.
        let (mut first, mut next) = (0, *keys_fit);
        while first < keys.len() && next > 0 {
            let end = keys.len().min(first + next);
            let ticket = |i| ticket(first + i);
            shared.store.begin_many(context, &keys[first..end], now, ticket, |i, lookup| {
                // The first one finds room always, so that there is progress.
                let bytes_max = if first + i == 0 { usize::MAX } else { BATCH_BYTES_MAX };
                found[first + i] = ReadState::of(lookup, values, bytes_max);
            });
            let mean = values.len() / end + 1;
            next = BATCH_BYTES_MAX.saturating_sub(values.len()) / mean;
            first = end;
        }
        let fitting = found.iter().filter(|found| !matches!(found, ReadState::Later)).count();
        *keys_fit = if fitting < keys.len() { fitting.max(1) } else { 2 * *keys_fit };
        *keys_fit = (*keys_fit).min(KEYS_PROBED);
        found
    }

    /// Answers what a session asks for that waits for nothing; whether anything was answered.
    fn give_asked(
        &self,
        request: &mut ReadRequest,
        pieces: &[Piece<'_>],
        found: Lookups<'_>,
        now: u32,
        output: &mut Output,
    ) -> bool {
        let (given, stopped) = self.give(pieces, found, now, output);
        request.is_answered = stopped.is_none();
        if stopped.is_some() && !output.has_room() {
            request.filled_by = Some(pieces[..given].iter().filter(|piece| piece.key().is_some()).count());
        }
        request.cursor = stopped.unwrap_or(request.cursor);
        given > 0
    }

    /// Answers the reads of sessions that have waited for them, up to the first that still waits.
    pub(super) fn answer_ready(&mut self, sessions: &mut [Session], now: u32) {
        for session in sessions {
            while let Some(id) = session.pending.front().copied() {
                let (found, values) = self.pending.get(id).ready();
                if found.is_empty() {
                    break;
                }
                if let Some(fetch) = session.fetching.take() {
                    self.complete_fetch(session, id, fetch, now);
                    continue;
                }
                let Session { input, output, .. } = session;
                let (pieces, cursor) = self.pending.get(id).pieces(input, found.len());
                let keys: Vec<Key<'_>> = pieces
                    .iter()
                    .filter_map(|piece| piece.key().map(|key| self.shared.store.key(key)))
                    .collect();
                let lookups = Lookups { keys: &keys, found, values };
                let (given, stopped) = self.give(&pieces, lookups, now, output);
                let given = pieces[..given].iter().filter(|piece| piece.key().is_some()).count();
                let lacked_room = stopped.is_some() && matches!(found.get(given), Some(ReadState::Later));
                let (keys, pieces) = (found.len(), pieces.len());
                let (fitting, has_room) = self.pending.fitting(id, given);
                if self.pending.answered(id, keys, pieces) {
                    if stopped.is_none() && has_room {
                        session.note_room();
                    }
                    self.pending.close(id);
                    session.pending.pop_front();
                }
                session.advance_past_reads(stopped.unwrap_or(cursor));
                if stopped.is_some() {
                    if lacked_room {
                        session.note_full(fitting);
                    }
                    // What was begun behind it is begun anew. It is a read that changes something: nobody looks it
                    // up again before that.
                    session.pending.drain(..).for_each(|id| self.pending.cancel(id));
                    self.step(session, now);
                }
            }
        }
    }

    /// Carries out a request whose key has come from the device.
    fn complete_fetch(&mut self, session: &mut Session, id: u32, fetch: Fetch, now: u32) {
        let (found, values) = self.pending.get(id).ready();
        match found {
            [ReadState::Hit(header, data)] => {
                let item = Item { header: *header, data: &values[data.clone()] };
                fetch.complete(Lookup::Hit(item));
            }
            [ReadState::Miss(why)] => fetch.complete(Lookup::Miss(*why)),
            // It found no room, which the only one always does.
            _ => {}
        }
        session.fetched = Some(fetch);
        self.pending.close(id);
        session.pending.pop_front();
        self.step(session, now);
    }

    /// Answers one session's reads as far as they were found and there is room: how many pieces, and where it
    /// stopped.
    fn give(
        &self,
        pieces: &[Piece<'_>],
        Lookups { keys, found, values }: Lookups<'_>,
        now: u32,
        output: &mut Output,
    ) -> (usize, Option<Cursor>) {
        let mut lookups = found.iter().zip(keys);
        for (given, piece) in pieces.iter().enumerate() {
            let found = piece.key().and_then(|_| lookups.next());
            if !output.has_room()
                || self.answer(piece, found, values, now, &mut output.bytes) == PieceReply::Deferred
            {
                return (given, Some(Cursor { len: piece.at, resume: piece.resume }));
            }
        }
        (pieces.len(), None)
    }

    fn answer(
        &self,
        piece: &Piece<'_>,
        found: Option<(&ReadState, &Key<'_>)>,
        values: &[u8],
        now: u32,
        out: &mut Vec<u8>,
    ) -> PieceReply {
        let counters = self.counters();
        let Some((found, &key)) = found else {
            out.extend_from_slice(b"END\r\n");
            return PieceReply::Written;
        };
        let item = match found {
            ReadState::Later | ReadState::Awaited => return PieceReply::Deferred,
            ReadState::Hit(header, data) => Some(Item { header: *header, data: &values[data.clone()] }),
            ReadState::Miss(_) => None,
        };
        match (&piece.part, item) {
            (Part::Key { key, with_cas }, Some(item)) => {
                let cas = (*with_cas == WithCas::Yes).then_some(item.header.cas);
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
                    return PieceReply::Deferred;
                }
            }
            (Part::Meta(meta), None) => commands::missed(meta, out),
        }
        counters.cmd_get.add(1);
        match found {
            ReadState::Miss(why) => self.count_miss(*why),
            _ => {
                counters.get_hits.add(1);
                if !matches!(&piece.part, Part::Meta(meta) if meta.flags.unnoticed) {
                    self.shared.store.note_read(key, now);
                }
            }
        }
        PieceReply::Written
    }
}

/// Whether a reply was written.
#[derive(PartialEq, Eq)]
enum PieceReply {
    Written,
    Deferred,
}
