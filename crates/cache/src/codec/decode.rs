//! Decompresses values. Invalid bytes give `None`.

use super::dictionaries::Dictionaries;
use super::frame::{self, Content};
use super::stored::{Codec, Parts, StoredValue};
use crate::limits::{DECODED_BYTES_KEPT, LZ4_DICTIONARY_BYTES};
use zstd_safe::DCtx;

/// A decompression context and buffers for a value, used by one thread at a time.
#[derive(Default)]
pub(crate) struct Decoder {
    context: Option<DCtx<'static>>,
    frame: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// The value of stored bytes; `None`: they are invalid, or their dictionary is missing.
    pub(super) fn decode<'a>(
        &'a mut self,
        stored: StoredValue<'a>,
        dictionaries: &Dictionaries,
    ) -> Option<&'a [u8]> {
        if stored.codec == Codec::None {
            return Some(stored.bytes);
        }
        let Parts { dictionary, raw_len, payload } = stored.parts()?;
        let dictionary = match dictionary {
            0 => None,
            id => Some(dictionaries.get(id)?),
        };
        self.value.clear();
        let len = match stored.codec {
            Codec::None | Codec::Unknown(_) => return None,
            Codec::Zstd | Codec::ZstdBlock => {
                if self.context.is_none() {
                    self.context = DCtx::try_create();
                }
                let context = self.context.as_mut()?;
                let content = match stored.codec {
                    Codec::ZstdBlock => Content::Block(payload),
                    _ => Content::Blocks(payload),
                };
                frame::rebuild(content, raw_len, &mut self.frame);
                self.value.reserve(raw_len);
                match &dictionary {
                    Some(dictionary) => {
                        let dictionary = dictionary.for_decoding()?;
                        context.decompress_using_ddict(&mut self.value, &self.frame, dictionary).ok()?
                    }
                    None => context.decompress(&mut self.value, &self.frame).ok()?,
                }
            }
            Codec::Lz4 => {
                self.value.resize(raw_len, 0);
                match &dictionary {
                    Some(dictionary) => {
                        let dictionary = dictionary.tail(LZ4_DICTIONARY_BYTES);
                        lz4_flex::block::decompress_into_with_dict(payload, &mut self.value, dictionary)
                            .ok()?
                    }
                    None => lz4_flex::block::decompress_into(payload, &mut self.value).ok()?,
                }
            }
        };
        (len == raw_len).then_some(&self.value[..])
    }

    /// Frees buffer space that a long value took.
    pub(super) fn shrink(&mut self) {
        for room in [&mut self.frame, &mut self.value] {
            room.clear();
            room.shrink_to(DECODED_BYTES_KEPT);
        }
    }

    /// Bytes of RAM of the context and the buffers.
    pub(super) fn bytes_allocated(&self) -> usize {
        self.context.as_ref().map_or(0, DCtx::sizeof) + self.frame.capacity() + self.value.capacity()
    }
}
