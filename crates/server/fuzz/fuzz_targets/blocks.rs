//! ClickHouse's compressed blocks: refused or read, and what is read is the same when it is compressed again.
#![no_main]

#[allow(dead_code, reason = "the server uses more of it")]
#[path = "../../src/http/blocks.rs"]
mod blocks;

/// As in the server.
mod limits {
    pub const BLOCK_BYTES: usize = 1 << 20;
    pub const BLOCK_BYTES_MAX: usize = 1 << 30;
}

use std::io::Write;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = blocks::decompress(bytes, 1 << 24);
    let mut out = Vec::new();
    let mut compressor = blocks::Compressor::new(&mut out);
    compressor.write_all(bytes).expect("into memory");
    compressor.flush().expect("into memory");
    assert_eq!(blocks::decompress(&out, usize::MAX).as_deref(), Ok(bytes));
});
