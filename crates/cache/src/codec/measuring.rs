//! The codec of a cache without the cache, for studies that measure it.

use super::stored::OwnedValue;
use super::training::TrainingSamples;
use super::{Compression, Decoder, Encoded, OwnCodecs};
use crate::applications::Applications;
use crate::limits::TRAINING_BYTES;

/// The compression of a cache, without the cache.
pub struct ValueCodec {
    codecs: OwnCodecs,
    encoded: Encoded,
    decoder: Decoder,
}

impl ValueCodec {
    /// A codec without a dictionary, as a new cache has it.
    pub fn untrained(compression: Compression) -> Self {
        let codecs = OwnCodecs::in_memory(compression, &Applications::default());
        Self { codecs, encoded: Encoded::default(), decoder: Decoder::default() }
    }

    /// A codec with a dictionary that is trained on as many of these values as a cache trains on.
    pub fn trained<'a>(compression: Compression, values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let this = Self::untrained(compression);
        let mut samples = TrainingSamples::default();
        for value in values {
            if samples.len() >= TRAINING_BYTES {
                break;
            }
            samples.add(value);
        }
        this.codecs.train(0, &samples);
        this
    }

    /// Compresses a value; returns how many bytes a cache would store.
    pub fn stored_len(&mut self, value: &[u8]) -> usize {
        self.codecs.encode(&[], value, &mut self.encoded).bytes.len()
    }

    /// The value as a cache would store it.
    pub fn compress(&mut self, value: &[u8]) -> OwnedValue {
        self.codecs.encode(&[], value, &mut self.encoded).to_owned()
    }

    /// The value of stored bytes, or `None` if they are not this codec's.
    pub fn decompress<'a>(&'a mut self, value: &'a OwnedValue) -> Option<&'a [u8]> {
        self.codecs.decode(value.as_stored(), &mut self.decoder)
    }

    /// Bytes of RAM of dictionary and contexts.
    pub fn bytes_allocated(&self) -> usize {
        self.codecs.bytes_allocated() + self.decoder.bytes_allocated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;

    #[test]
    fn a_long_value_leaves_no_large_context_behind() {
        let mut codec = ValueCodec::untrained(Compression::Zstd);
        let short: Vec<u8> = b"some value ".repeat(30);
        let long: Vec<u8> = (0..1u32 << 18).flat_map(|i| (i % 1000).to_le_bytes()).collect();
        assert!(codec.stored_len(&short) < short.len());
        let before = codec.bytes_allocated();
        assert!(codec.stored_len(&long) < long.len());
        assert!(before > 0 && codec.bytes_allocated() <= before, "{} {before}", codec.bytes_allocated());
    }

    #[test]
    fn a_trained_codec_stores_less_and_gives_the_values_back() {
        let values: Vec<Vec<u8>> = (0..2000u32)
            .map(|i| {
                format!("{{\"id\": {i}, \"name\": \"name of {}\", \"is_active\": true}}", i * 7).into_bytes()
            })
            .collect();
        for compression in [Compression::Zstd, Compression::Lz4] {
            let mut plain = ValueCodec::untrained(compression);
            let mut trained = ValueCodec::trained(compression, values.iter().map(|value| &value[..]));
            let len =
                |codec: &mut ValueCodec| values.iter().map(|value| codec.stored_len(value)).sum::<usize>();
            assert!(len(&mut trained) * 4 < len(&mut plain) * 3, "{compression}");
            for value in &values {
                let stored = trained.compress(value);
                assert_eq!(trained.decompress(&stored), Some(&value[..]));
                assert!(stored.as_stored().codec == Codec::None || plain.decompress(&stored).is_none());
            }
        }
    }
}
