//! Lines of a list of all items.

use crate::item::{Deadline, Header, Item};
use crate::protocol::{KeyForm, base64};
use crate::store::Store;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use std::io::Write;

/// `lru_crawler metadump`: an item's metadata. The slab class is always 1.
pub fn metadata(key: &[u8], item: Item<'_>, last_read: Option<u32>, out: &mut Vec<u8>) {
    let Header { deadline, stored_at, cas, flags, .. } = item.header;
    out.extend_from_slice(b"key=");
    encode(key, out);
    let exp = if deadline == Deadline::NEVER { -1 } else { i64::from(deadline.at()) };
    let la = stored_at.max(last_read.unwrap_or(0));
    let fetch = if last_read.is_some() { "yes" } else { "no" };
    let size = Store::item_bytes(key, flags, item.data.len());
    // Writing to a `Vec` does not fail.
    let _ = writeln!(out, " exp={exp} la={la} cas={cas} fetch={fetch} cls=1 size={size}");
}

/// `lru_crawler mgdump`: the request that reads an item.
pub fn request_for(key: &[u8], form: KeyForm, out: &mut Vec<u8>) {
    out.extend_from_slice(b"mg ");
    match form {
        KeyForm::Text => out.extend_from_slice(key),
        KeyForm::Binary => {
            base64::encode(key, out);
            out.extend_from_slice(b" b");
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Percent-encodes a key as in a URI: letters, digits and a few others stay as they are.
fn encode(key: &[u8], out: &mut Vec<u8>) {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encode(key, ENCODED).for_each(|part| out.extend_from_slice(part.as_bytes()));
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_are_encoded_as_in_a_uri() {
        let mut out = Vec::new();
        super::encode(b"a-Z.9_~:/%\xff k", &mut out);
        assert_eq!(out, b"a-Z.9_~%3A%2F%25%FF%20k");
    }
}
