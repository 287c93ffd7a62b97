//! One dictionary, for Zstandard and LZ4.

use crate::limits::ZSTD_LEVEL;
use std::sync::OnceLock;
use zstd_safe::{CDict, DDict};

/// A dictionary.
pub(super) struct Dictionary {
    /// Its number; never 0.
    pub id: u32,
    /// The number of the application whose values it was trained on.
    pub application: u64,
    bytes: Vec<u8>,
    /// Made when first needed, for the newest dictionary of an application.
    encoding: OnceLock<Option<CDict<'static>>>,
    decoding: OnceLock<Option<DDict<'static>>>,
}

impl Dictionary {
    pub fn new(id: u32, application: u64, bytes: Vec<u8>) -> Self {
        Self { id, application, bytes, encoding: OnceLock::new(), decoding: OnceLock::new() }
    }

    /// The bytes as they were trained.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn for_encoding(&self) -> Option<&CDict<'static>> {
        self.encoding.get_or_init(|| CDict::try_create(&self.bytes, ZSTD_LEVEL)).as_ref()
    }

    pub fn for_decoding(&self) -> Option<&DDict<'static>> {
        self.decoding.get_or_init(|| DDict::try_create(&self.bytes)).as_ref()
    }

    /// The last `len` bytes at most, which contain the most frequent texts.
    pub fn tail(&self, len: usize) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(len)..]
    }

    pub fn bytes_allocated(&self) -> usize {
        let encoding = self.encoding.get().and_then(Option::as_ref).map_or(0, CDict::sizeof);
        let decoding = self.decoding.get().and_then(Option::as_ref).map_or(0, DDict::sizeof);
        self.bytes.capacity() + encoding + decoding
    }
}
