//! The meta commands: `mg`, `ms`, `md`, `ma`, `mn`, `me`.

use super::base64;
use super::decoder::Line;
use super::number::{signed_32, unsigned, unsigned_32};
use super::request::{Direction, Exptime, KeyForm, Meta, MetaFlags, Mode, OnTooLarge, Put, Reply, Request};
use super::text::{BAD_LINE, fits};
use super::words::{Words, split};
use crate::limits::{KEY_BYTES_MAX, META_WORDS_MAX, OPAQUE_BYTES_MAX};
use std::borrow::Cow;

const BAD_FLAG: &str = "CLIENT_ERROR invalid or duplicate flag";
const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";
pub(crate) const LONG_OPAQUE: &str = "CLIENT_ERROR opaque token too long";

fn say<'a>(line: &'static str) -> Line<'a> {
    Line::Whole(Request::Say(line))
}

/// Parses a line whose first word is `m` and `kind`.
pub(super) fn line<'a>(kind: u8, words: &Words<'a>, item_bytes_max: usize) -> Line<'a> {
    let read = match (kind, words.as_slice()) {
        (b'n', _) => return say("MN"),
        (b'e', [_, key, ..]) if key.len() <= KEY_BYTES_MAX => debug(key, words.as_slice()),
        (b'e', _) => Err(BAD_LINE),
        (b's', [_, _, ..]) => return set(words, item_bytes_max),
        (b'g' | b'd' | b'a', [_, key, ..]) if key.len() > KEY_BYTES_MAX => Err(BAD_LINE),
        (b'g' | b'd' | b'a', [_, _, ..]) if words.as_slice().len() > META_WORDS_MAX => Err(match kind {
            b'g' => "CLIENT_ERROR options flags are too long",
            _ => "CLIENT_ERROR options flags too long",
        }),
        (b'g', [_, key, ..]) => meta(key, words.after(1)).map(Request::MetaGet),
        (b'd', [_, key, ..]) => meta(key, words.after(1)).map_err(|_| BAD_FLAG).and_then(delete),
        (b'a', [_, key, ..]) => meta(key, words.after(1)).map_err(|_| BAD_FLAG).and_then(arithmetic),
        _ => Err("ERROR"),
    };
    Line::Whole(read.unwrap_or_else(Request::Say))
}

fn debug<'a>(key: &'a [u8], words: &[&'a [u8]]) -> Result<Request<'a>, &'static str> {
    let key = match words {
        [_, _, b"b", ..] => Cow::Owned(base64::decode(key).ok_or(BAD_LINE)?),
        _ => Cow::Borrowed(key),
    };
    Ok(Request::MetaDebug(key))
}

fn meta<'a>(key: &'a [u8], text: &'a [u8]) -> Result<Meta<'a>, &'static str> {
    let flags = flags(text)?;
    let key = decoded(key, flags.key_form)?;
    Ok(Meta { key, flags })
}

fn decoded(key: &[u8], form: KeyForm) -> Result<Cow<'_, [u8]>, &'static str> {
    match form {
        KeyForm::Text => Ok(Cow::Borrowed(key)),
        KeyForm::Binary => base64::decode(key).map(Cow::Owned).ok_or("CLIENT_ERROR error decoding key"),
    }
}

fn delete(meta: Meta<'_>) -> Result<Request<'_>, &'static str> {
    opaque_fits(&meta.flags)?;
    Ok(Request::MetaDelete(meta))
}

fn arithmetic(meta: Meta<'_>) -> Result<Request<'_>, &'static str> {
    let direction = match meta.flags.mode {
        None | Some(b'I' | b'+') => Direction::Up,
        Some(b'D' | b'-') => Direction::Down,
        Some(_) => return Err("CLIENT_ERROR invalid mode for ma M token"),
    };
    Ok(Request::MetaArithmetic(meta, direction))
}

pub(crate) fn opaque_fits(flags: &MetaFlags<'_>) -> Result<(), &'static str> {
    let too_long = flags.iter().any(|flag| flag.letter == b'O' && flag.token.len() >= OPAQUE_BYTES_MAX);
    if too_long { Err(LONG_OPAQUE) } else { Ok(()) }
}

fn set<'a>(words: &Words<'a>, item_bytes_max: usize) -> Line<'a> {
    let all = words.as_slice();
    let (key, Some(len)) = (all[1], all.get(2)) else { return say(BAD_LINE) };
    if key.len() > KEY_BYTES_MAX {
        return say(BAD_LINE);
    }
    if all.len() > META_WORDS_MAX {
        return say("CLIENT_ERROR options flags too long");
    }
    let Some(Ok(len)) = signed_32(len).map(usize::try_from) else { return say(BAD_LINE) };
    if len > i32::MAX as usize - 2 {
        return say(BAD_LINE);
    }
    // From here on the length of the data is known, so the data is skipped whatever else is wrong.
    match item(key, words.after(2)) {
        Err(line) => Line::Refused(Request::Say(line), len + 2),
        Ok((put, _)) if !fits(put.key.len(), put.flags, len, item_bytes_max) => {
            let reply = Reply::Wanted;
            Line::Refused(Request::TooLarge { key: put.key, older: OnTooLarge::DropOld, reply }, len + 2)
        }
        Ok((put, flags)) => Line::Item(Request::MetaSet(put, flags), len),
    }
}

fn item<'a>(key: &'a [u8], text: &'a [u8]) -> Result<(Put<'a>, MetaFlags<'a>), &'static str> {
    let flags = flags(text)?;
    let key = decoded(key, flags.key_form)?;
    let mode = match flags.mode {
        None | Some(b'S') => Mode::Set,
        Some(b'E') => Mode::Add,
        Some(b'A') => Mode::Append,
        Some(b'P') => Mode::Prepend,
        Some(b'R') => Mode::Replace,
        Some(_) => return Err("CLIENT_ERROR invalid mode for ms M token"),
    };
    opaque_fits(&flags)?;
    let mode = match mode {
        Mode::Set | Mode::Replace if flags.cas.is_some() => Mode::Cas,
        mode => mode,
    };
    let put = Put {
        mode,
        key,
        flags: flags.flags,
        exptime: flags.exptime.unwrap_or_default(),
        cas: flags.cas.unwrap_or(0),
        data: &[],
        reply: flags.reply(),
    };
    Ok((put, flags))
}

/// Reads flags. An unknown or repeated flag is an error at once; of several bad tokens the last one determines the
/// error.
fn flags(text: &[u8]) -> Result<MetaFlags<'_>, &'static str> {
    let mut flags = MetaFlags { text, ..MetaFlags::default() };
    let mut seen = [false; 127];
    let mut wrong = None;
    for word in split(text) {
        match seen.get_mut(usize::from(word[0])) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err("CLIENT_ERROR duplicate flag"),
        }
        match flag(&mut flags, word[0], &word[1..]) {
            Ok(()) => {}
            Err(Bad::Letter) => return Err("CLIENT_ERROR invalid flag"),
            Err(Bad::Token(line)) => wrong = Some(line),
            // An earlier error takes precedence.
            Err(Bad::Bits) => wrong = wrong.or(Some(BAD_LINE)),
        }
    }
    wrong.map_or(Ok(flags), Err)
}

/// The ways in which a flag can be wrong.
enum Bad {
    Letter,
    Token(&'static str),
    /// The token of `F`.
    Bits,
}

fn flag(flags: &mut MetaFlags<'_>, letter: u8, token: &[u8]) -> Result<(), Bad> {
    let exptime = || signed_32(token).map(Exptime).ok_or(Bad::Token(BAD_TOKEN));
    let number = |otherwise| unsigned(token).ok_or(Bad::Token(otherwise));
    match letter {
        b'b' => flags.key_form = KeyForm::Binary,
        b'N' => flags.vivify = Some(exptime()?),
        b'T' => flags.exptime = Some(exptime()?),
        b'R' => flags.recache = Some(exptime()?),
        b'v' => flags.value = true,
        b'u' => flags.unnoticed = true,
        b'q' => flags.quiet = true,
        b'I' => flags.invalidate = true,
        b'F' => flags.flags = unsigned_32(token).ok_or(Bad::Bits)?,
        b'C' => flags.cas = Some(number(BAD_TOKEN)?),
        b'E' => flags.explicit_cas = Some(number(BAD_TOKEN)?).filter(|cas| *cas != 0),
        b'M' => match token {
            [mode] => flags.mode = Some(*mode),
            _ => return Err(Bad::Token("CLIENT_ERROR incorrect length for M token")),
        },
        b'J' => flags.initial = number("CLIENT_ERROR invalid numeric initial value")?,
        b'D' => flags.delta = Some(number("CLIENT_ERROR invalid numeric delta value")?),
        b'l' | b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'h' => {}
        _ => return Err(Bad::Letter),
    }
    Ok(())
}
