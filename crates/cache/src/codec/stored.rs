//! A value as it is stored: raw or compressed.
//!
//! A compressed one begins with the number of the dictionary (0: none) and the length of the raw value, both LEB128.
//! The record's flags name the codec.

use crate::limits::COMPRESSED_VALUE_BYTES_MAX;
use std::fmt;
use std::str::FromStr;

/// Bits of a record's flags that name the codec.
pub(crate) const CODEC_MASK: u8 = 0b11_1100;
const CODEC_SHIFT: u32 = 2;

/// The compression of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// They are stored raw.
    #[default]
    None,
    /// LZ4: the quicker one.
    Lz4,
    /// Zstandard: the smaller one.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        })
    }
}

impl FromStr for Compression {
    type Err = UnknownCompression;

    fn from_str(text: &str) -> Result<Self, UnknownCompression> {
        match text.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            _ => Err(UnknownCompression(text.to_owned())),
        }
    }
}

/// There is no such compression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown compression '{0}': give none, lz4 or zstd")]
pub struct UnknownCompression(pub String);

/// The codec of a stored value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Codec {
    #[default]
    None,
    /// Zstandard: all blocks of a frame.
    Zstd,
    /// Zstandard: the data of a frame's only block.
    ZstdBlock,
    Lz4,
    /// A codec that this version does not know.
    Unknown(u8),
}

impl Codec {
    /// The codec's part of a record's flags.
    #[inline]
    pub fn flags(self) -> u8 {
        let number = match self {
            Self::None => 0,
            // 1 and 2 were Zstandard and LZ4 with longer numbers of dictionaries.
            Self::Zstd => 3,
            Self::ZstdBlock => 4,
            Self::Lz4 => 5,
            Self::Unknown(number) => number,
        };
        number << CODEC_SHIFT
    }

    /// The codec that a record's flags name.
    #[inline]
    pub fn of_flags(flags: u8) -> Self {
        match (flags & CODEC_MASK) >> CODEC_SHIFT {
            0 => Self::None,
            3 => Self::Zstd,
            4 => Self::ZstdBlock,
            5 => Self::Lz4,
            number => Self::Unknown(number),
        }
    }
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredValue<'a> {
    pub codec: Codec,
    pub bytes: &'a [u8],
}

/// A value as it is stored, which owns its bytes.
pub struct OwnedValue {
    codec: Codec,
    bytes: Vec<u8>,
}

impl OwnedValue {
    /// The bytes that are stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn as_stored(&self) -> StoredValue<'_> {
        StoredValue { codec: self.codec, bytes: &self.bytes }
    }
}

/// The parts of a compressed value.
pub(super) struct Parts<'a> {
    /// The dictionary; 0: none.
    pub dictionary: u32,
    pub raw_len: usize,
    pub payload: &'a [u8],
}

impl<'a> StoredValue<'a> {
    /// A value stored raw.
    #[inline]
    pub fn raw(bytes: &'a [u8]) -> Self {
        Self { codec: Codec::None, bytes }
    }

    /// A copy.
    pub fn to_owned(self) -> OwnedValue {
        OwnedValue { codec: self.codec, bytes: self.bytes.to_vec() }
    }

    /// The dictionary needed to decompress the value; 0: none.
    pub fn dictionary(&self) -> u32 {
        if self.codec == Codec::None { 0 } else { self.parts().map_or(0, |parts| parts.dictionary) }
    }

    /// `None`: these are no bytes of a compressed value.
    pub(super) fn parts(&self) -> Option<Parts<'a>> {
        let mut rest = self.bytes;
        let dictionary = take_number(&mut rest)?;
        let raw_len = take_number(&mut rest)? as usize;
        // Longer values are never compressed, so invalid bytes cannot cause a larger allocation.
        (raw_len <= COMPRESSED_VALUE_BYTES_MAX).then_some(Parts { dictionary, raw_len, payload: rest })
    }
}

/// Writes the head of a compressed value.
pub(super) fn write_head(dictionary: u32, raw_len: usize, out: &mut Vec<u8>) {
    for mut number in [dictionary, raw_len as u32] {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }
}

/// Takes a number (LEB128) off the front of `bytes`; `None`: it is incomplete, or has more than 32 bits.
fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if *byte < 0x80 {
            return u32::try_from(number).ok();
        }
    }
    None
}
