//! Replies to clients.

use super::request::Reply;

/// Reply if there is no room for an item.
pub const NO_ROOM: &str = "SERVER_ERROR out of memory storing object";
/// Reply if there is no room for a number that is counted up or down.
pub const NO_ROOM_TO_COUNT: &str = "SERVER_ERROR out of memory";

/// Writes a line.
pub fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Writes a line if the client wants a reply.
pub fn answer(out: &mut Vec<u8>, reply: Reply, text: &str) {
    if reply == Reply::Wanted {
        line(out, text);
    }
}

/// Writes a number.
pub fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes an item as in a reply to `get`; with `cas`, as in a reply to `gets`.
pub fn value(out: &mut Vec<u8>, key: &[u8], flags: u32, cas: Option<u64>, data: &[u8]) {
    out.reserve(key.len() + data.len() + 64);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number(out, u64::from(flags));
    out.push(b' ');
    number(out, data.len() as u64);
    if let Some(cas) = cas {
        out.push(b' ');
        number(out, cas);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Writes one statistic.
pub fn stat(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    line(out, &format!("STAT {name} {value}"));
}
