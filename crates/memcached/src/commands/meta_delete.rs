//! `md`.

use crate::item::{Deadline, Freshness, Token};
use crate::protocol::Meta;
use crate::store::{Change, ChangeContext, Lookup};

/// Deletes an item or marks it as stale, and writes the reply. Returns whether there was one to delete.
pub fn meta_delete(
    meta: &Meta<'_>,
    lookup: Lookup<'_>,
    change_context: &mut ChangeContext<'_>,
    out: &mut Vec<u8>,
) -> (Change, bool) {
    let flags = &meta.flags;
    let (status, change): (&[u8; 2], _) = match lookup {
        // Removes also with flag `I`: the client is told that there is no item, so no older version may come back.
        Lookup::Miss(_) => (b"NF", Change::Remove),
        Lookup::Hit(item) if flags.cas.is_some_and(|cas| cas != item.header.cas) => (b"EX", Change::Leave),
        Lookup::Hit(item) if flags.invalidate => {
            let mut header = item.header;
            if let Some(exptime) = flags.exptime {
                header.deadline = Deadline::of(exptime, change_context.now);
            }
            (header.freshness, header.token) = (Freshness::Stale, Token::Free);
            change_context.set_new_cas(&mut header);
            header.cas = flags.explicit_cas.unwrap_or(header.cas);
            (b"HD", Change::Mark(header))
        }
        Lookup::Hit(_) => (b"HD", Change::Remove),
    };
    if status == b"HD" && flags.quiet {
        return (change, true);
    }
    out.extend_from_slice(status);
    for flag in flags.iter() {
        match flag.letter {
            b'O' => super::opaque(out, flag.token),
            b'k' => super::key(out, &meta.key, flags.key_form),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
    (change, status == b"HD")
}
