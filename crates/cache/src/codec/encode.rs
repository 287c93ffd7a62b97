//! Compresses values.

use super::dictionary::Dictionary;
use super::frame::{self, Content};
use super::stored::{Codec, Compression, StoredValue, write_head};
use crate::limits::{LZ4_DICTIONARY_BYTES, SPARE_ENCODER_BYTES_MAX, SPARE_ENCODERS_MAX, ZSTD_LEVEL};
use granary_log::sync::{Arc, Mutex};
use zstd_safe::CCtx;

/// Buffers for one compressed value.
#[derive(Default)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    frame: Vec<u8>,
}

/// Compression contexts: as many as threads compress at the same time.
#[derive(Default)]
pub(super) struct Encoders {
    spare: Mutex<Vec<CCtx<'static>>>,
}

impl Encoders {
    /// Compresses a value into `encoded`; if that saves less than an eighth, returns it uncompressed.
    pub fn encode<'a>(
        &self,
        compression: Compression,
        dictionary: Option<Arc<Dictionary>>,
        value: &'a [u8],
        encoded: &'a mut Encoded,
    ) -> StoredValue<'a> {
        let dictionary = dictionary.as_deref();
        encoded.bytes.clear();
        write_head(dictionary.map_or(0, |dictionary| dictionary.id), value.len(), &mut encoded.bytes);
        let codec = match compression {
            Compression::None => return StoredValue::raw(value),
            Compression::Zstd => self.zstd(dictionary, value, encoded),
            Compression::Lz4 => lz4(dictionary, value, &mut encoded.bytes).map(|()| Codec::Lz4),
        };
        match codec {
            Some(codec) if encoded.bytes.len() <= value.len() - value.len() / 8 => {
                StoredValue { codec, bytes: &encoded.bytes }
            }
            _ => StoredValue::raw(value),
        }
    }

    fn zstd(&self, dictionary: Option<&Dictionary>, value: &[u8], encoded: &mut Encoded) -> Option<Codec> {
        let spare = self.spare.lock().expect("no panic under the lock").pop();
        let mut context = spare.or_else(CCtx::try_create)?;
        let Encoded { bytes, frame } = encoded;
        frame.clear();
        frame.reserve(zstd_safe::compress_bound(value.len()));
        let compressed = match dictionary {
            Some(dictionary) => context.compress_using_cdict(frame, value, dictionary.for_encoding()?),
            None => context.compress(frame, value, ZSTD_LEVEL),
        };
        // A context that has compressed a long value has large tables.
        if context.sizeof() <= SPARE_ENCODER_BYTES_MAX {
            let mut spare = self.spare.lock().expect("no panic under the lock");
            if spare.len() < SPARE_ENCODERS_MAX {
                spare.push(context);
            }
        }
        compressed.ok()?;
        let (codec, content) = match frame::content(frame)? {
            Content::Block(data) => (Codec::ZstdBlock, data),
            Content::Blocks(blocks) => (Codec::Zstd, blocks),
        };
        bytes.extend_from_slice(content);
        Some(codec)
    }

    /// Bytes of RAM that the contexts take.
    pub fn bytes_allocated(&self) -> usize {
        self.spare.lock().expect("no panic under the lock").iter().map(CCtx::sizeof).sum()
    }
}

fn lz4(dictionary: Option<&Dictionary>, value: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
    let begin = bytes.len();
    bytes.resize(begin + lz4_flex::block::get_maximum_output_size(value.len()), 0);
    let to = &mut bytes[begin..];
    let len = match dictionary {
        // LZ4 reads the dictionary for each value, so it is short.
        Some(dictionary) => {
            lz4_flex::block::compress_into_with_dict(value, to, dictionary.tail(LZ4_DICTIONARY_BYTES))
        }
        None => lz4_flex::block::compress_into(value, to),
    };
    bytes.truncate(begin + len.ok()?);
    Some(())
}
