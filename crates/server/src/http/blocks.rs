//! ClickHouse's compressed blocks, `compress=1` and `decompress=1` in the URL: a checksum, the method, both sizes,
//! and LZ4.

use std::io::{self, Write};

use cityhash_rs::cityhash_102_128;

use crate::limits::{BLOCK_BYTES, BLOCK_BYTES_MAX};

const CHECKSUM: usize = 16;
/// Method, compressed size (with this header), size.
const HEADER: usize = 9;
const LZ4: u8 = 0x82;
const NONE: u8 = 0x02;

/// Compresses the bytes written to it.
pub struct Compressor<W> {
    gathered: Vec<u8>,
    out: W,
}

impl<W: Write> Compressor<W> {
    pub fn new(out: W) -> Self {
        Self { gathered: Vec::new(), out }
    }

    /// Where blocks are written.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    fn block(&mut self) -> io::Result<()> {
        let most = lz4_flex::block::get_maximum_output_size(self.gathered.len());
        let mut block = vec![0; CHECKSUM + HEADER + most];
        let data = &mut block[CHECKSUM + HEADER..];
        let len = lz4_flex::block::compress_into(&self.gathered, data).map_err(io::Error::other)?;
        block.truncate(CHECKSUM + HEADER + len);
        block[CHECKSUM] = LZ4;
        block[CHECKSUM + 1..][..4].copy_from_slice(&size(HEADER + len)?);
        block[CHECKSUM + 5..][..4].copy_from_slice(&size(self.gathered.len())?);
        let sum = checksum(&block[CHECKSUM..]);
        block[..CHECKSUM].copy_from_slice(&sum);
        self.gathered.clear();
        self.out.write_all(&block)
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK_BYTES - self.gathered.len());
        self.gathered.extend_from_slice(&bytes[..taken]);
        if self.gathered.len() == BLOCK_BYTES {
            self.block()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.block()?;
        }
        self.out.flush()
    }
}

fn size(bytes: usize) -> io::Result<[u8; 4]> {
    u32::try_from(bytes).map(u32::to_le_bytes).map_err(io::Error::other)
}

/// ClickHouse swaps the two halves of CityHash's 128 bits.
pub fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    cityhash_102_128(bytes).rotate_right(64).to_le_bytes()
}

/// Why blocks cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Damage {
    /// A block does not match its checksum.
    Checksum,
    /// A block is malformed, or too long.
    Wrong(String),
}

/// The uncompressed length of blocks according to their headers, as far as these can be followed.
pub fn plain_len(mut blocks: &[u8]) -> usize {
    let mut plain = 0_usize;
    while let Some(header) = blocks.get(CHECKSUM..CHECKSUM + HEADER) {
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        plain = plain.saturating_add(number(5) as usize);
        let Some(next) = blocks.get(CHECKSUM + (number(1) as usize).max(HEADER)..) else { break };
        blocks = next;
    }
    plain
}

/// Decompresses blocks.
///
/// # Errors
/// Damaged blocks, and blocks that are together longer than `bytes_max`.
pub fn decompress(mut blocks: &[u8], bytes_max: usize) -> Result<Vec<u8>, Damage> {
    let wrong = |what: &str| Damage::Wrong(format!("Cannot decompress: {what}"));
    let mut plain = Vec::new();
    while !blocks.is_empty() {
        let Some((sum, rest)) = blocks.split_first_chunk::<CHECKSUM>() else {
            return Err(wrong("a block is cut short"));
        };
        let Some((header, _)) = rest.split_first_chunk::<HEADER>() else {
            return Err(wrong("a block is cut short"));
        };
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize
        };
        let (compressed, len) = (number(1), number(5));
        // LZ4 expands at most 255-fold: a block that claims more gets no memory.
        let possible = len <= BLOCK_BYTES_MAX.min(compressed.saturating_mul(255));
        if compressed < HEADER || compressed > rest.len() || !possible {
            return Err(wrong("the sizes of a block make no sense"));
        }
        if plain.len() + len > bytes_max {
            return Err(wrong(&format!("the body holds more than {bytes_max} bytes")));
        }
        let (block, next) = rest.split_at(compressed);
        if checksum(block) != *sum {
            return Err(Damage::Checksum);
        }
        match header[0] {
            NONE if compressed - HEADER == len => plain.extend_from_slice(&block[HEADER..]),
            LZ4 => {
                let data = lz4_flex::block::decompress(&block[HEADER..], len);
                let data = data.map_err(|error| wrong(&error.to_string()))?;
                if data.len() != len {
                    return Err(wrong("a block has another size than it says"));
                }
                plain.extend_from_slice(&data);
            }
            method => return Err(wrong(&format!("method {method:#x} is not known; use LZ4"))),
        }
        blocks = next;
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut compressor = Compressor::new(&mut out);
        compressor.write_all(bytes).unwrap();
        compressor.flush().unwrap();
        out
    }

    #[test]
    fn what_goes_in_comes_out() {
        for len in [0, 1, 1000, BLOCK_BYTES, 3 * BLOCK_BYTES + 17] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * i / 7) as u8).collect();
            let blocks = compressed(&bytes);
            assert_eq!(decompress(&blocks, usize::MAX).unwrap(), bytes);
            assert_eq!(plain_len(&blocks), len);
            assert!(len == 0 || decompress(&blocks, len - 1).is_err());
        }
    }

    #[test]
    fn damage_is_an_error() {
        let blocks = compressed(b"some bytes, some bytes, some bytes");
        for at in 0..blocks.len() {
            let mut damaged = blocks.clone();
            damaged[at] ^= 1;
            assert!(decompress(&damaged, 1 << 20).is_err(), "byte {at}");
            assert!(at == 0 || decompress(&blocks[..at], 1 << 20).is_err(), "cut at {at}");
        }
    }
}
