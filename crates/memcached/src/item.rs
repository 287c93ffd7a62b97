//! An item: what is stored under a key, and its bytes in the cache.
//!
//! A value in the cache is `marks u8 | stored_at u32 | cas u64 | [created_cas u64] | [flags u32] | data`, numbers
//! little-endian; the fields in brackets are there if `marks` says so. The item's deadline is that of the cache's
//! entry.

use crate::limits::RELATIVE_EXPTIME_MAX;
use crate::protocol::{Exptime, KeyForm};

/// The second from which on an item is expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u32);

impl Deadline {
    /// The item never expires.
    pub const NEVER: Deadline = Deadline(0);
    /// A second long ago.
    pub const PAST: Deadline = Deadline(1);

    /// The deadline that an exptime means at `now` (Unix time).
    pub fn of(exptime: Exptime, now: u32) -> Self {
        match exptime.0 {
            0 => Self::NEVER,
            ..0 => Self::PAST,
            1..=RELATIVE_EXPTIME_MAX => Self(now.saturating_add(exptime.0 as u32)),
            // It stays past, however the clock is set later.
            at if at as u32 <= now => Self::PAST,
            at => Self(at as u32),
        }
    }

    /// The deadline as a second of Unix time.
    pub fn at(self) -> u32 {
        self.0
    }

    /// Whether the deadline has come.
    pub fn is_past(self, now: u32) -> bool {
        self != Self::NEVER && self.0 <= now
    }

    /// Seconds that are left; `None`: the item never expires.
    pub fn left(self, now: u32) -> Option<u32> {
        (self != Self::NEVER).then(|| self.0.saturating_sub(now))
    }

    /// The deadline as the cache has it: the last second of the entry.
    pub fn last_second(self) -> u32 {
        if self == Self::NEVER { 0 } else { (self.0 - 1).max(1) }
    }

    /// The deadline of an entry with this last second.
    pub fn after(last_second: u32) -> Self {
        if last_second == 0 { Self::NEVER } else { Self(last_second + 1) }
    }
}

/// Whether an item was marked as outdated, as `md` with `I` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// Not outdated.
    #[default]
    Fresh,
    /// Outdated: the client that gets the win token is to set it anew.
    Stale,
}

/// The win token of a stale item (flags W and Z): free, or given to a client that is to set the item anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Token {
    /// The next client that asks gets the token.
    #[default]
    Free,
    /// A client has the token; others are told so.
    Sent,
}

/// The part of an item beside its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The client's own bits.
    pub flags: u32,
    /// The number that each change of the item replaces: `cas`.
    pub cas: u64,
    /// The number that was next when the item was written: `flush_all` compares it. It differs from `cas` only where a
    /// client chose the `cas` itself.
    pub created_cas: u64,
    /// The second in which the item was written, Unix time.
    pub stored_at: u32,
    /// The second from which on the item is expired.
    pub deadline: Deadline,
    /// Whether it is stale: flag `X`.
    pub freshness: Freshness,
    /// Its win token: flags `W` and `Z`.
    pub token: Token,
    /// The form in which the client wrote the key.
    pub key_form: KeyForm,
}

/// An item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The part beside its data.
    pub header: Header,
    /// Its value.
    pub data: &'a [u8],
}

const STALE: u8 = 1;
const SENT: u8 = 2;
const BINARY: u8 = 4;
const HAS_FLAGS: u8 = 8;
const HAS_CREATED_CAS: u8 = 16;

impl Header {
    /// The header of a new item.
    pub fn new(number: u64, now: u32, flags: u32, deadline: Deadline) -> Self {
        Self {
            flags,
            cas: number,
            created_cas: number,
            stored_at: now,
            deadline,
            freshness: Freshness::Fresh,
            token: Token::Free,
            key_form: KeyForm::Text,
        }
    }

    /// Appends the bytes of the header; the data follows.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mark = |set: bool, mark: u8| if set { mark } else { 0 };
        let has_created_cas = self.created_cas != self.cas;
        out.push(
            mark(self.freshness == Freshness::Stale, STALE)
                | mark(self.token == Token::Sent, SENT)
                | mark(self.key_form == KeyForm::Binary, BINARY)
                | mark(self.flags != 0, HAS_FLAGS)
                | mark(has_created_cas, HAS_CREATED_CAS),
        );
        out.extend_from_slice(&self.stored_at.to_le_bytes());
        out.extend_from_slice(&self.cas.to_le_bytes());
        if has_created_cas {
            out.extend_from_slice(&self.created_cas.to_le_bytes());
        }
        if self.flags != 0 {
            out.extend_from_slice(&self.flags.to_le_bytes());
        }
    }
}

impl<'a> Item<'a> {
    /// Decodes a value of the cache; `None`: these are not the bytes of an item.
    pub fn decode(value: &'a [u8], last_second: u32) -> Option<Self> {
        let (marks, value) = value.split_first()?;
        let (stored_at, value) = value.split_first_chunk::<4>()?;
        let (cas, mut data) = value.split_first_chunk::<8>()?;
        let cas = u64::from_le_bytes(*cas);
        let (mut created_cas, mut flags) = (cas, 0);
        if marks & HAS_CREATED_CAS != 0 {
            let (bytes, rest) = data.split_first_chunk::<8>()?;
            (created_cas, data) = (u64::from_le_bytes(*bytes), rest);
        }
        if marks & HAS_FLAGS != 0 {
            let (bytes, rest) = data.split_first_chunk::<4>()?;
            (flags, data) = (u32::from_le_bytes(*bytes), rest);
        }
        let header = Header {
            flags,
            cas,
            created_cas,
            stored_at: u32::from_le_bytes(*stored_at),
            deadline: Deadline::after(last_second),
            freshness: if marks & STALE != 0 { Freshness::Stale } else { Freshness::Fresh },
            token: if marks & SENT != 0 { Token::Sent } else { Token::Free },
            key_form: if marks & BINARY != 0 { KeyForm::Binary } else { KeyForm::Text },
        };
        Some(Item { header, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_there_and_back() {
        for (flags, created_cas, freshness, token, key_form) in [
            (0, 7, Freshness::Fresh, Token::Free, KeyForm::Text),
            (9, 7, Freshness::Stale, Token::Free, KeyForm::Binary),
            (u32::MAX, 8, Freshness::Fresh, Token::Sent, KeyForm::Text),
        ] {
            let deadline = Deadline::of(Exptime(100), 1_000);
            let header =
                Header { flags, cas: 7, created_cas, stored_at: 5, deadline, freshness, token, key_form };
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            bytes.extend_from_slice(b"data");
            let item = Item::decode(&bytes, deadline.last_second()).unwrap();
            assert_eq!((item.header, item.data), (header, &b"data"[..]));
            for len in 0..bytes.len() - 4 {
                assert_eq!(Item::decode(&bytes[..len], 0), None);
            }
        }
    }

    /// The bytes that docs/format.md describes; a change of them needs another fingerprint.
    #[test]
    fn bytes_as_they_were_in_version_1() {
        let mut header = Header::new(0x0102, 0x5E00_0000, 0, Deadline::NEVER);
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        assert_eq!(bytes, [0, 0, 0, 0, 0x5E, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes.len(), crate::limits::ITEM_HEADER_BYTES);
        (header.flags, header.cas, header.key_form) = (7, 9, KeyForm::Binary);
        (header.freshness, header.token) = (Freshness::Stale, Token::Sent);
        bytes.clear();
        header.encode(&mut bytes);
        let numbers = [9, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0];
        assert_eq!(bytes, [&[31, 0, 0, 0, 0x5E][..], &numbers].concat());
    }

    #[test]
    fn deadlines() {
        let now = 2_000_000_000;
        for (exptime, past, left) in [
            (0, false, None),
            (-1, true, Some(0)),
            (1, false, Some(1)),
            (RELATIVE_EXPTIME_MAX, false, Some(RELATIVE_EXPTIME_MAX as u32)),
            (RELATIVE_EXPTIME_MAX + 1, true, Some(0)),
            (now as i32, true, Some(0)),
            (now as i32 + 5, false, Some(5)),
        ] {
            let deadline = Deadline::of(Exptime(exptime), now);
            assert_eq!((deadline.is_past(now), deadline.left(now)), (past, left), "{exptime}");
        }
        let deadline = Deadline::of(Exptime(5), now);
        assert_eq!(Deadline::after(deadline.last_second()), deadline);
        assert_eq!(Deadline::after(Deadline::NEVER.last_second()), Deadline::NEVER);
        assert!(Deadline::after(Deadline::PAST.last_second()).is_past(now));
    }
}
