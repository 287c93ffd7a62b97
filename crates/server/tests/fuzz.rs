//! The fuzz target on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "../src/http/blocks.rs"]
mod blocks;
#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

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
