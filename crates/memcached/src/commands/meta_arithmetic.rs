//! `ma`.

use super::arithmetic::{NON_NUMERIC, count};
use crate::item::{Deadline, Header};
use crate::limits::OPAQUE_BYTES_MAX;
use crate::protocol::{Direction, LONG_OPAQUE, Meta, reply};
use crate::store::{Change, ChangeContext, Lookup};

/// Counts an item up or down, or makes one, and writes the reply. Returns whether there was one; `None` if that was
/// refused and counts as neither.
pub fn meta_arithmetic(
    meta: &Meta<'_>,
    direction: Direction,
    lookup: Lookup<'_>,
    change_context: &mut ChangeContext<'_>,
    out: &mut Vec<u8>,
) -> (Change, Option<bool>) {
    let flags = &meta.flags;
    let (change, value, is_found) = match lookup {
        Lookup::Hit(item)
            if !item.data.is_empty() && flags.cas.is_some_and(|cas| cas != 0 && cas != item.header.cas) =>
        {
            return (refuse(meta, b"EX", out), None);
        }
        Lookup::Hit(item) => match count(item, direction, flags.delta.unwrap_or(1), change_context) {
            Ok((change, value)) => (change, value, true),
            Err(_) => {
                reply::line(out, NON_NUMERIC);
                return (Change::Leave, None);
            }
        },
        Lookup::Miss(_) if flags.vivify.is_some() => {
            change_context.data.extend_from_slice(itoa::Buffer::new().format(flags.initial).as_bytes());
            let header = Header { key_form: flags.key_form, ..change_context.header(0, Deadline::NEVER) };
            (Change::Write(header), flags.initial, false)
        }
        Lookup::Miss(_) => return (refuse(meta, b"NF", out), Some(false)),
    };
    let (header, amend): (Header, fn(Header) -> Change) = match change {
        Change::Amend(header) => (header, Change::Amend),
        Change::Write(header) => (header, Change::Write),
        other => return (other, Some(is_found)),
    };
    let header = answer(meta, header, value, is_found, change_context.now, out);
    (amend(header), Some(is_found))
}

/// Writes the reply; flags take effect in the order they come in.
fn answer(
    meta: &Meta<'_>,
    mut header: Header,
    value: u64,
    is_found: bool,
    now: u32,
    out: &mut Vec<u8>,
) -> Header {
    let (begin, flags) = (out.len(), &meta.flags);
    header.cas = flags.explicit_cas.unwrap_or(header.cas);
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value);
    if flags.value {
        out.extend_from_slice(b"VA ");
        reply::number(out, digits.len() as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    for flag in flags.iter() {
        match flag.letter {
            b'c' => super::number(out, b'c', header.cas),
            b't' => super::left(out, header.deadline.left(now)),
            b'T' => header.deadline = flags.exptime.map_or(header.deadline, |t| Deadline::of(t, now)),
            b'N' if !is_found => {
                header.deadline = flags.vivify.map_or(header.deadline, |t| Deadline::of(t, now));
            }
            b'O' if flag.token.len() >= OPAQUE_BYTES_MAX => {
                out.truncate(begin);
                reply::line(out, LONG_OPAQUE);
                return header;
            }
            b'O' => super::opaque(out, flag.token),
            b'k' => super::key(out, &meta.key, flags.key_form),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
    if flags.value {
        reply::line(out, digits);
    }
    if flags.quiet && is_found {
        out.truncate(begin);
    }
    header
}

fn refuse(meta: &Meta<'_>, status: &[u8], out: &mut Vec<u8>) -> Change {
    let begin = out.len();
    out.extend_from_slice(status);
    for flag in meta.flags.iter() {
        match flag.letter {
            b'O' if flag.token.len() >= OPAQUE_BYTES_MAX => {
                out.truncate(begin);
                reply::line(out, LONG_OPAQUE);
                return Change::Leave;
            }
            b'O' => super::opaque(out, flag.token),
            b'k' => super::key(out, &meta.key, meta.flags.key_form),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
    Change::Leave
}
