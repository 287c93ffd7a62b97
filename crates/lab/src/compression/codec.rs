//! Bytes that each codec stores for values, and its CPU time.

use super::Values;
use crate::{Samples, interleave};
use cpu_time::ThreadTime;
use granary_cache::{Compression, OwnedValue, ValueCodec};
use std::convert::Infallible;

/// Codecs that are compared.
pub const CODECS: [&str; 4] = ["Snappy", "zstd", "zstd, trained", "LZ4, trained"];

/// Bytes of values of a run: some 20 ms of decompression.
const RUN_BYTES: usize = 32 << 20;

/// One codec on the values of one kind.
pub struct CodecFigures {
    /// Bytes that a cache would store.
    pub stored_bytes: usize,
    /// Microseconds of a core for a KiB of values compressed.
    pub encode_us: Samples,
    /// Microseconds of a core for a KiB of values decompressed.
    pub decode_us: Samples,
    /// Bytes of RAM that dictionary and contexts take.
    pub ram_bytes: usize,
}

enum Codec {
    Snappy(Box<snap::raw::Encoder>, snap::raw::Decoder, Vec<u8>),
    Granary(Box<ValueCodec>),
}

enum StoredValue {
    Snappy(Vec<u8>),
    Granary(OwnedValue),
}

impl Codec {
    fn all(values: &Values) -> [Self; 4] {
        let train = || values.train.iter().map(|value| &value[..]);
        [
            Self::Snappy(Box::new(snap::raw::Encoder::new()), snap::raw::Decoder::new(), Vec::new()),
            Self::Granary(Box::new(ValueCodec::untrained(Compression::Zstd))),
            Self::Granary(Box::new(ValueCodec::trained(Compression::Zstd, train()))),
            Self::Granary(Box::new(ValueCodec::trained(Compression::Lz4, train()))),
        ]
    }

    fn stored_len(&mut self, value: &[u8]) -> usize {
        match self {
            Self::Snappy(encoder, _, room) => {
                room.resize(snap::raw::max_compress_len(value.len()).max(room.len()), 0);
                encoder.compress(value, room).expect("there is room")
            }
            Self::Granary(codec) => codec.stored_len(value),
        }
    }

    fn store(&mut self, value: &[u8]) -> StoredValue {
        match self {
            Self::Snappy(encoder, ..) => {
                StoredValue::Snappy(encoder.compress_vec(value).expect("there is room"))
            }
            Self::Granary(codec) => StoredValue::Granary(codec.compress(value)),
        }
    }

    /// The value of a stored record.
    fn load<'a>(&'a mut self, stored: &'a StoredValue) -> &'a [u8] {
        match (self, stored) {
            (Self::Snappy(_, decoder, room), StoredValue::Snappy(bytes)) => {
                let len = snap::raw::decompress_len(bytes).expect("Snappy wrote it");
                room.resize(len.max(room.len()), 0);
                let len = decoder.decompress(bytes, room).expect("Snappy wrote it");
                &room[..len]
            }
            (Self::Granary(codec), StoredValue::Granary(value)) => {
                codec.decompress(value).expect("this codec wrote it")
            }
            _ => unreachable!("each codec gets its own"),
        }
    }
}

/// The bytes that zstd, trained on the values themselves, stores for each, and its RAM.
pub fn stored_by_zstd(values: &[Vec<u8>]) -> (Vec<usize>, u64) {
    let mut codec = ValueCodec::trained(Compression::Zstd, values.iter().map(|value| &value[..]));
    let stored = values.iter().map(|value| codec.stored_len(value)).collect();
    (stored, codec.bytes_allocated() as u64)
}

/// Measures every codec of [`CODECS`], in turns, `rounds` times. Every value is compared after a round trip first.
pub fn measure(values: &Values, rounds: usize) -> Vec<CodecFigures> {
    let mut codecs = Codec::all(values);
    let stored: Vec<Vec<StoredValue>> =
        codecs.iter_mut().map(|codec| values.test.iter().map(|value| codec.store(value)).collect()).collect();
    let raw_bytes = super::bytes(&values.test);
    let passes = RUN_BYTES.div_ceil(raw_bytes.max(1));
    let mut stored_bytes = [0; CODECS.len()];
    for ((codec, stored), bytes) in codecs.iter_mut().zip(&stored).zip(&mut stored_bytes) {
        for (value, stored) in values.test.iter().zip(stored) {
            assert!(codec.load(stored) == value, "a value is another after a round trip");
        }
        *bytes = values.test.iter().map(|value| codec.stored_len(value)).sum();
    }
    let per_kib =
        |start: ThreadTime| start.elapsed().as_secs_f64() * 1e6 / (passes * raw_bytes) as f64 * 1024.0;
    let never = |result: Result<Vec<Samples>, Infallible>| result.unwrap_or_default();
    let encode = never(interleave(rounds, CODECS.len(), |codec| {
        let start = ThreadTime::now();
        for _ in 0..passes {
            for value in &values.test {
                std::hint::black_box(codecs[codec].stored_len(value));
            }
        }
        Ok(per_kib(start))
    }));
    let decode = never(interleave(rounds, CODECS.len(), |codec| {
        let start = ThreadTime::now();
        for _ in 0..passes {
            for value in &stored[codec] {
                std::hint::black_box(codecs[codec].load(value));
            }
        }
        Ok(per_kib(start))
    }));
    let ram = codecs.iter().map(|codec| match codec {
        Codec::Snappy(..) => 0,
        Codec::Granary(codec) => codec.bytes_allocated(),
    });
    let times = encode.into_iter().zip(decode);
    let figures = ram.zip(stored_bytes).zip(times);
    figures
        .map(|((ram_bytes, stored_bytes), (encode_us, decode_us))| CodecFigures {
            stored_bytes,
            encode_us,
            decode_us,
            ram_bytes,
        })
        .collect()
}
