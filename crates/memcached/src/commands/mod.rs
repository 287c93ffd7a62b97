//! The effects of requests on an item: pure functions of the item that is there, which return the change to make.

mod arithmetic;
mod dump;
mod meta_arithmetic;
mod meta_delete;
mod meta_get;
mod meta_set;
mod put;

pub use arithmetic::{NON_NUMERIC, count};
pub use dump::{metadata, request_for};
pub use meta_arithmetic::meta_arithmetic;
pub use meta_delete::meta_delete;
pub use meta_get::{Shown, debug, is_plain, meta_get, missed, shown};
pub use meta_set::meta_set;
pub use put::{StoreOutcome, Terms, put};

use crate::protocol::{KeyForm, base64, reply};

/// Appends the flag `k` of a reply.
fn key(out: &mut Vec<u8>, key: &[u8], form: KeyForm) {
    out.extend_from_slice(b" k");
    match form {
        KeyForm::Text => out.extend_from_slice(key),
        KeyForm::Binary => {
            base64::encode(key, out);
            out.extend_from_slice(b" b");
        }
    }
}

/// Appends the flag `O` of a reply.
fn opaque(out: &mut Vec<u8>, token: &[u8]) {
    out.extend_from_slice(b" O");
    out.extend_from_slice(token);
}

/// Appends a flag with a number.
fn number(out: &mut Vec<u8>, letter: u8, number: u64) {
    out.extend_from_slice(&[b' ', letter]);
    reply::number(out, number);
}

/// Appends the flag `t`: seconds until the item ends.
fn left(out: &mut Vec<u8>, seconds: Option<u32>) {
    match seconds {
        Some(seconds) => number(out, b't', u64::from(seconds)),
        None => out.extend_from_slice(b" t-1"),
    }
}
