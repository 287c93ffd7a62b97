//! The classic text commands.

use super::decoder::{Ending, Line};
use super::number::{signed_32, unsigned, unsigned_32};
use super::request::{Direction, DumpForm, Exptime, Group, Mode, OnTooLarge, Put, Reply, Request, WithCas};
use super::words::{Words, split};
use crate::limits::{ITEM_FLAGS_BYTES, ITEM_OVERHEAD_BYTES, KEY_BYTES_MAX};
use std::borrow::Cow;

pub(super) const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
const BAD_DELETE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
pub(crate) const BAD_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";
const BAD_DATA: &str = "CLIENT_ERROR bad data chunk";

fn say<'a>(line: &'static str) -> Line<'a> {
    Line::Whole(Request::Say(line))
}

fn error<'a>() -> Line<'a> {
    say("ERROR")
}

/// Whether the client waits for a reply. A client that does not wait gets no errors either.
fn reply_of(words: &[&[u8]]) -> Reply {
    if words.last() == Some(&&b"noreply"[..]) { Reply::Quiet } else { Reply::Wanted }
}

fn answer<'a>(reply: Reply, line: &'static str) -> Line<'a> {
    match reply {
        Reply::Wanted => say(line),
        Reply::Quiet => Line::Whole(Request::Nothing),
    }
}

/// Whether memcached would take an item of this size.
pub(super) fn fits(key: usize, flags: u32, data: usize, item_bytes_max: usize) -> bool {
    let flags = if flags == 0 { 0 } else { ITEM_FLAGS_BYTES };
    ITEM_OVERHEAD_BYTES + key + flags + data <= item_bytes_max
}

/// Parses a line of at least one word, of two letters or more.
pub(super) fn line<'a>(words: &Words<'a>, item_bytes_max: usize) -> Line<'a> {
    let all = words.as_slice();
    let known = all.len();
    match (all[0], known) {
        (b"get" | b"bget", 2..) => get(words.after(0), WithCas::No),
        (b"gets", 2..) => get(words.after(0), WithCas::Yes),
        (b"gat", 2..) => gat(words, WithCas::No),
        (b"gats", 2..) => gat(words, WithCas::Yes),
        (b"set", 5 | 6) => put(Mode::Set, all, item_bytes_max),
        (b"add", 5 | 6) => put(Mode::Add, all, item_bytes_max),
        (b"replace", 5 | 6) => put(Mode::Replace, all, item_bytes_max),
        (b"append", 5 | 6) => put(Mode::Append, all, item_bytes_max),
        (b"prepend", 5 | 6) => put(Mode::Prepend, all, item_bytes_max),
        (b"cas", 6 | 7) => put(Mode::Cas, all, item_bytes_max),
        (b"incr", 3 | 4) => arithmetic(all, Direction::Up),
        (b"decr", 3 | 4) => arithmetic(all, Direction::Down),
        (b"touch", 3 | 4) => touch(all),
        (b"delete", 2..=4) => delete(all),
        (b"flush_all", 1..=3) => flush(all),
        (b"stats", _) => stats(all),
        (b"version", _) => say(concat!("VERSION 1.6.18-granary-", env!("CARGO_PKG_VERSION"))),
        (b"quit", _) => Line::End(Ending::Quit),
        (b"verbosity", 2 | 3) => match unsigned_32(all[1]) {
            None => answer(reply_of(all), BAD_LINE),
            Some(_) => answer(reply_of(all), "OK"),
        },
        (b"shutdown", _) => say("ERROR: shutdown not enabled"),
        (b"cache_memlimit", 2 | 3) => memory_limit(all),
        (b"slabs", 4) if all[1] == b"reassign" => say("CLIENT_ERROR slab reassignment disabled"),
        (b"slabs", 3..) if all[1] == b"automove" => automove(all),
        (b"lru_crawler", 3) if all[1] == b"crawl" => say("CLIENT_ERROR lru crawler disabled"),
        (b"lru_crawler", 3) if all[1] == b"metadump" => dump(all[2], DumpForm::Metadata),
        (b"lru_crawler", 3) if all[1] == b"mgdump" => dump(all[2], DumpForm::Requests),
        (b"watch", _) => answer(reply_of(all), "CLIENT_ERROR watch commands not allowed"),
        _ if all[known - 1].starts_with(b"HTTP/") && !may_be_a_command(all[0]) => Line::End(Ending::Http),
        _ => error(),
    }
}

/// Whether memcached does not look for HTTP behind this word: it is a command, with whatever words behind it, or begins
/// with one of the letters that are compared with a few commands only.
fn may_be_a_command(word: &[u8]) -> bool {
    const OTHERS: [&[u8]; 12] = [
        b"replace",
        b"prepend",
        b"bget",
        b"flush_all",
        b"version",
        b"quit",
        b"lru_crawler",
        b"watch",
        b"verbosity",
        b"lru",
        b"extstore",
        b"refresh_certs",
    ];
    matches!(word[0], b'g' | b's' | b'a' | b'c' | b'i' | b'd' | b't') || OTHERS.contains(&word)
}

/// If a key is too long, the reply is an error that does not tell which, and the values of the other keys are not sent.
pub(super) fn get(keys: &[u8], with_cas: WithCas) -> Line<'_> {
    let keys = keys.split(|byte| *byte == 0).next().unwrap_or(keys);
    let mut longest = None;
    split(keys).for_each(|key| longest = longest.max(Some(key.len())));
    match longest {
        None => error(),
        Some(KEY_TOO_LONG..) => say(BAD_LINE),
        Some(_) => Line::Whole(Request::Get { keys, with_cas }),
    }
}

const KEY_TOO_LONG: usize = KEY_BYTES_MAX + 1;

fn gat<'a>(words: &Words<'a>, with_cas: WithCas) -> Line<'a> {
    let Some(exptime) = signed_32(words.as_slice()[1]) else { return say(BAD_EXPTIME) };
    let keys = words.after(1);
    if split(keys).any(|key| key.len() > KEY_BYTES_MAX) {
        return say(BAD_LINE);
    }
    Line::Whole(Request::Gat { keys, with_cas, exptime: Exptime(exptime) })
}

fn put<'a>(mode: Mode, words: &[&'a [u8]], item_bytes_max: usize) -> Line<'a> {
    let reply = reply_of(words);
    let key = words[1];
    let numbers = (unsigned_32(words[2]), signed_32(words[3]), signed_32(words[4]));
    let (Some(flags), Some(exptime), Some(len)) = numbers else { return answer(reply, BAD_LINE) };
    let cas = if mode == Mode::Cas { unsigned(words[5]) } else { Some(0) };
    let (Some(cas), Ok(len)) = (cas, usize::try_from(len)) else { return answer(reply, BAD_LINE) };
    if key.len() > KEY_BYTES_MAX || len > i32::MAX as usize - 2 {
        return answer(reply, BAD_LINE);
    }
    let key = Cow::Borrowed(key);
    if !fits(key.len(), flags, len, item_bytes_max) {
        let older = if mode == Mode::Set { OnTooLarge::DropOld } else { OnTooLarge::KeepOld };
        return Line::Refused(Request::TooLarge { key, older, reply }, len + 2);
    }
    let put = Put { mode, key, flags, exptime: Exptime(exptime), cas, data: &[], reply };
    Line::Item(Request::Put(put), len)
}

/// The reply to data that does not end where it should.
pub(super) fn bad_data<'a>(request: &Request<'a>) -> Request<'a> {
    match request {
        Request::Put(Put { reply: Reply::Quiet, .. }) => Request::Nothing,
        _ => Request::Say(BAD_DATA),
    }
}

fn arithmetic<'a>(words: &[&'a [u8]], direction: Direction) -> Line<'a> {
    let reply = reply_of(words);
    if words[1].len() > KEY_BYTES_MAX {
        return answer(reply, BAD_LINE);
    }
    match unsigned(words[2]) {
        None => answer(reply, "CLIENT_ERROR invalid numeric delta argument"),
        Some(delta) => Line::Whole(Request::Arithmetic { key: words[1], direction, delta, reply }),
    }
}

fn touch<'a>(words: &[&'a [u8]]) -> Line<'a> {
    let reply = reply_of(words);
    if words[1].len() > KEY_BYTES_MAX {
        return answer(reply, BAD_LINE);
    }
    match signed_32(words[2]) {
        None => answer(reply, BAD_EXPTIME),
        Some(exptime) => Line::Whole(Request::Touch { key: words[1], exptime: Exptime(exptime), reply }),
    }
}

/// Old clients sent a time after the key; 0 is still accepted.
fn delete<'a>(words: &[&'a [u8]]) -> Line<'a> {
    let reply = if words.len() > 2 { reply_of(words) } else { Reply::Wanted };
    let quiet = reply == Reply::Quiet;
    let valid = match words {
        [_, _] => true,
        [_, _, hold] => *hold == b"0" || quiet,
        [_, _, hold, _] => *hold == b"0" && quiet,
        _ => false,
    };
    if !valid {
        return answer(reply, BAD_DELETE);
    }
    if words[1].len() > KEY_BYTES_MAX {
        return answer(reply, BAD_LINE);
    }
    Line::Whole(Request::Delete { key: words[1], reply })
}

fn flush<'a>(words: &[&'a [u8]]) -> Line<'a> {
    let reply = reply_of(words);
    let plain = if reply == Reply::Quiet { 2 } else { 1 };
    if words.len() == plain {
        return Line::Whole(Request::Flush { delay: Some(Exptime(0)), reply });
    }
    Line::Whole(Request::Flush { delay: signed_32(words[1]).map(Exptime), reply })
}

fn stats<'a>(words: &[&'a [u8]]) -> Line<'a> {
    let group = match words {
        [_] => Group::General,
        [_, b"settings", ..] => Group::Settings,
        [_, b"items", ..] => Group::Items,
        [_, b"slabs", ..] => Group::Slabs,
        [_, b"sizes", ..] => Group::Sizes,
        [_, b"granary", ..] => Group::Granary,
        [_, b"conns", ..] => Group::Connections,
        [_, b"extstore", ..] => Group::Empty,
        [_, b"reset", ..] => return Line::Whole(Request::ResetStats),
        [_, b"detail", b"on" | b"off", ..] => return say("OK"),
        [_, b"detail", b"dump", ..] => Group::Empty,
        [_, b"detail", ..] => return say("CLIENT_ERROR usage: stats detail on|off|dump"),
        [_, b"cachedump", ..] => return say("CLIENT_ERROR stats cachedump not allowed"),
        _ => return error(),
    };
    Line::Whole(Request::Stats(group))
}

/// `slabs automove`: there are no slabs here, so valid arguments are accepted without effect.
fn automove<'a>(words: &[&'a [u8]]) -> Line<'a> {
    let said = match words[2..] {
        [b"ratio", ratio, ..] if float(ratio) => "OK",
        [b"ratio", ..] => "ERROR",
        [level, ..] => match unsigned_32(level) {
            None => BAD_LINE,
            Some(..=2) => "OK",
            Some(_) => "ERROR",
        },
        [] => "ERROR",
    };
    answer(reply_of(words), said)
}

fn float(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// `which`: `all`, `hash`, or numbers of slab classes, of which there is one here.
fn dump(which: &[u8], form: DumpForm) -> Line<'_> {
    const CLASSES: std::ops::Range<u32> = 1..64;
    if which == b"all" || which == b"hash" {
        return Line::Whole(Request::Dump(form));
    }
    let classes: Option<Vec<u32>> = which
        .split(|byte| *byte == b',')
        .filter(|class| !class.is_empty())
        .map(|class| unsigned_32(class).filter(|class| CLASSES.contains(class)))
        .collect();
    match (classes, form) {
        (None, _) => say("BADCLASS invalid class id"),
        (Some(classes), _) if classes.contains(&1) => Line::Whole(Request::Dump(form)),
        (Some(_), DumpForm::Metadata) => say("END"),
        (Some(_), DumpForm::Requests) => say("EN"),
    }
}

fn memory_limit<'a>(words: &[&'a [u8]]) -> Line<'a> {
    let said = match unsigned_32(words[1]) {
        None => "ERROR",
        Some(..8) => "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m",
        Some(1_000_000_001..) => "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes",
        Some(_) => "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
    };
    answer(reply_of(words), said)
}

/// `set foo 0 0 N`: how a client logs in. Key, flags and exptime are ignored.
pub(super) fn login<'a>(words: &Words<'a>) -> Line<'a> {
    let unauthenticated = Request::Say("CLIENT_ERROR unauthenticated");
    match words.as_slice() {
        [b"set", _, _, _, len, ..] => match unsigned_32(len).map(|len| len as usize) {
            Some(len) if len <= crate::limits::LINE_BYTES_MAX => Line::Item(Request::Login(&[]), len),
            _ => Line::Whole(unauthenticated),
        },
        _ => Line::Whole(unauthenticated),
    }
}
