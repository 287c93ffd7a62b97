//! `ms`.

use super::put::{StoreOutcome, Terms, put};
use crate::protocol::{MetaFlags, Put, Reply};
use crate::store::{Change, ChangeContext, Lookup};

/// Stores an item, and writes the reply.
pub fn meta_set(
    item: &Put<'_>,
    flags: &MetaFlags<'_>,
    item_bytes_max: usize,
    lookup: Lookup<'_>,
    change_context: &mut ChangeContext<'_>,
    out: &mut Vec<u8>,
) -> (Change, StoreOutcome) {
    let MetaFlags { key_form, invalidate, explicit_cas, .. } = *flags;
    let terms = Terms { key_form, invalidate, explicit_cas, item_bytes_max };
    let (change, (stored, cas)) = put(item, &terms, lookup, change_context);
    if stored == StoreOutcome::Stored && item.reply == Reply::Quiet {
        return (change, stored);
    }
    out.extend_from_slice(match stored {
        StoreOutcome::Stored => b"HD",
        StoreOutcome::Exists => b"EX",
        StoreOutcome::NotFound => b"NF",
        StoreOutcome::Refused => b"NS",
        StoreOutcome::NoRoom => unreachable!("whether there is room shows when it is put"),
    });
    for flag in flags.iter() {
        match flag.letter {
            b'O' => super::opaque(out, flag.token),
            b'k' => super::key(out, &item.key, key_form),
            b'c' => super::number(out, b'c', cas),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
    (change, stored)
}
