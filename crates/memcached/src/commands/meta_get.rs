//! `mg` and `me`.

use crate::item::{Deadline, Freshness, Header, Item, Token};
use crate::limits::OPAQUE_BYTES_MAX;
use crate::protocol::{LONG_OPAQUE, Meta, opaque_fits, reply};
use crate::store::{Change, ChangeContext, Lookup, Store};

/// The figures that a reply shows beside the item itself.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// The second in which the item was last read; `None`: not since it was written.
    pub last_read: Option<u32>,
    /// The current second.
    pub now: u32,
}

/// Whether a request changes nothing unless the item is stale.
pub fn is_plain(meta: &Meta<'_>) -> bool {
    let flags = &meta.flags;
    flags.vivify.is_none() && flags.exptime.is_none() && flags.recache.is_none()
}

/// Writes the reply to a hit. Returns the header that the item is to have afterwards: a changed one if the request or
/// the item's state asks for it. Flags take effect in the order they come in.
pub fn shown(meta: &Meta<'_>, item: Item<'_>, shown: Shown, out: &mut Vec<u8>) -> Header {
    show(meta, item, Origin::Found, shown, out)
}

/// Whether the item was there before the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Found,
    Made,
}

fn show(meta: &Meta<'_>, item: Item<'_>, origin: Origin, shown: Shown, out: &mut Vec<u8>) -> Header {
    let Shown { last_read, now } = shown;
    let (begin, flags, mut header) = (out.len(), &meta.flags, item.header);
    let mut wins = false;
    if flags.value {
        out.extend_from_slice(b"VA ");
        reply::number(out, item.data.len() as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    for flag in flags.iter() {
        match flag.letter {
            b'T' => header.deadline = flags.exptime.map_or(header.deadline, |t| Deadline::of(t, now)),
            b'N' if origin == Origin::Made => {
                header.deadline = flags.vivify.map_or(header.deadline, |t| Deadline::of(t, now));
                wins = true;
            }
            b'R' => {
                let ends = header.deadline != Deadline::NEVER
                    && flags.recache.is_some_and(|t| header.deadline < Deadline::of(t, now));
                wins |= origin == Origin::Found && header.token == Token::Free && ends;
            }
            b's' => super::number(out, b's', item.data.len() as u64),
            b't' => super::left(out, header.deadline.left(now)),
            b'c' => super::number(out, b'c', header.cas),
            b'f' => super::number(out, b'f', u64::from(header.flags)),
            b'l' => {
                let last = last_read.unwrap_or(0).max(header.stored_at);
                super::number(out, b'l', u64::from(now.saturating_sub(last)));
            }
            b'h' => super::number(out, b'h', u64::from(last_read.is_some())),
            b'O' if flag.token.len() >= OPAQUE_BYTES_MAX => {
                out.truncate(begin);
                reply::line(out, LONG_OPAQUE);
                return header;
            }
            b'O' => super::opaque(out, flag.token),
            b'k' => super::key(out, &meta.key, header.key_form),
            _ => {}
        }
    }
    if header.token == Token::Sent {
        out.extend_from_slice(b" Z");
    }
    if header.freshness == Freshness::Stale {
        out.extend_from_slice(b" X");
        wins |= header.token == Token::Free;
    }
    if wins {
        out.extend_from_slice(b" W");
        header.token = Token::Sent;
    }
    out.extend_from_slice(b"\r\n");
    if flags.value {
        out.extend_from_slice(item.data);
        out.extend_from_slice(b"\r\n");
    }
    header
}

/// Writes the reply to a miss.
pub fn missed(meta: &Meta<'_>, out: &mut Vec<u8>) {
    let flags = &meta.flags;
    if let Err(line) = opaque_fits(flags) {
        return reply::line(out, line);
    }
    if flags.quiet {
        return;
    }
    out.extend_from_slice(b"EN");
    for flag in flags.iter() {
        match flag.letter {
            b'O' => super::opaque(out, flag.token),
            b'k' => super::key(out, &meta.key, flags.key_form),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Executes a request that may change the item, or make one, and writes the reply.
pub fn meta_get(
    meta: &Meta<'_>,
    lookup: Lookup<'_>,
    last_read: Option<u32>,
    change_context: &mut ChangeContext<'_>,
    out: &mut Vec<u8>,
) -> (Change, bool) {
    let now = change_context.now;
    match lookup {
        Lookup::Hit(item) => {
            let header = show(meta, item, Origin::Found, Shown { last_read, now }, out);
            (if header == item.header { Change::Leave } else { Change::Mark(header) }, true)
        }
        Lookup::Miss(_) if meta.flags.vivify.is_some() => {
            let mut header = change_context.header(0, Deadline::NEVER);
            header.cas = meta.flags.explicit_cas.unwrap_or(header.cas);
            header.key_form = meta.flags.key_form;
            let item = Item { header, data: &[] };
            let header = show(meta, item, Origin::Made, Shown { last_read: None, now }, out);
            (Change::Write(header), true)
        }
        Lookup::Miss(_) => {
            missed(meta, out);
            // A touch that ends an item is a delete.
            let ends = meta.flags.exptime.is_some_and(|exptime| Deadline::of(exptime, now).is_past(now));
            (if ends { Change::Remove } else { Change::Leave }, false)
        }
    }
}

/// `me`: an item's metadata. The slab class is always 1.
pub fn debug(key: &[u8], item: Item<'_>, shown: Shown, out: &mut Vec<u8>) {
    let Header { deadline, stored_at, cas, flags, key_form, .. } = item.header;
    out.extend_from_slice(b"ME ");
    match key_form {
        crate::protocol::KeyForm::Text => out.extend_from_slice(key),
        crate::protocol::KeyForm::Binary => crate::protocol::base64::encode(key, out),
    }
    let exp = deadline.left(shown.now).map_or(-1, |left| -i64::from(left));
    let la = shown.now.saturating_sub(shown.last_read.unwrap_or(0).max(stored_at));
    let fetch = if shown.last_read.is_some() { "yes" } else { "no" };
    let size = Store::item_bytes(key, flags, item.data.len());
    reply::line(out, &format!(" exp={exp} la={la} cas={cas} fetch={fetch} cls=1 size={size}"));
}
