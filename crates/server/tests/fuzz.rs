//! The fuzz targets on stable: the corpora of `fuzz/corpus` and seeded mutations of them.

#[allow(dead_code, reason = "the server uses more of it")]
#[path = "../src/http/blocks.rs"]
mod blocks;
#[path = "../src/http/credentials.rs"]
mod credentials;
#[path = "../fuzz/fuzz_targets/head.rs"]
mod head;
#[path = "../../log/tests/common/mutations.rs"]
mod mutations;
#[path = "../src/http/url.rs"]
mod url;

/// As in the server.
mod limits {
    pub const BLOCK_BYTES: usize = 1 << 20;
    pub const BLOCK_BYTES_MAX: usize = 1 << 30;
}

use std::io::Write;
use std::path::Path;

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut compressor = blocks::Compressor::new(&mut out);
    compressor.write_all(bytes).unwrap();
    compressor.flush().unwrap();
    out
}

#[test]
fn blocks() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/blocks");
    mutations::smoke(&corpus, 20_000, |bytes| {
        let _ = blocks::decompress(bytes, 1 << 24);
        let _ = blocks::plain_len(bytes);
        assert_eq!(blocks::decompress(&compressed(bytes), usize::MAX).as_deref(), Ok(bytes));
        // Damage behind a checksum that is right.
        let mut block = compressed(bytes);
        if let (Some(place), true) = (bytes.first(), block.len() > 26) {
            let place = 16 + usize::from(*place) % (block.len() - 16);
            block[place] ^= 0x11;
            let sum = blocks::checksum(&block[16..]);
            block[..16].copy_from_slice(&sum);
            let _ = blocks::decompress(&block, 1 << 24);
        }
    });
}

#[test]
fn claims() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/claim");
    let (read, refused) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    mutations::smoke(&corpus, 20_000, |bytes| {
        let Some((method, headers, uri)) = head::head(bytes) else { return };
        let claimed = credentials::read_credentials(&method, &headers, &uri);
        let count = if claimed.is_ok() { &read } else { &refused };
        count.set(count.get() + 1);
        // A program sends no headers about pages, and is not refused for one.
        let is_a_program = ["origin", "sec-fetch-site"].iter().all(|name| !headers.contains_key(*name));
        assert!(!is_a_program || claimed != Err(credentials::CredentialsError::OtherPage));
        // The URL does not override the user of a header.
        let unreadable_key = Err(credentials::CredentialsError::NotText("x-clickhouse-key"));
        if claimed != Err(credentials::CredentialsError::OtherPage) && claimed != unreadable_key {
            match headers.get("x-clickhouse-user").map(|user| std::str::from_utf8(user.as_bytes())) {
                None | Some(Ok("")) => {}
                Some(Ok(user)) => assert_eq!(claimed.unwrap().0.as_deref(), Some(user)),
                Some(Err(_)) => {
                    assert_eq!(claimed, Err(credentials::CredentialsError::NotText("x-clickhouse-user")))
                }
            }
        }
    });
    assert!(read.get() > 1000 && refused.get() > 100, "{} read, {} refused", read.get(), refused.get());
}
