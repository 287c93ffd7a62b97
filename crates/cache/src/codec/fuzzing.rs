//! The decoder of values on any bytes: a value of bounded length or nothing, never a panic; and what is compressed is
//! decompressed. Called by the fuzz target and, with a fixed seed, by the tests.

use super::decode::Decoder;
use super::dictionaries::Dictionaries;
use super::encode::{Encoded, Encoders};
use super::stored::{Codec, Compression, StoredValue};
use crate::limits::COMPRESSED_VALUE_BYTES_MAX;
use std::sync::LazyLock;

static DICTIONARIES: LazyLock<Dictionaries> = LazyLock::new(|| {
    let words = ["name", "city", "street", "country", "Amsterdam", "true", "false", "null"];
    let samples: Vec<String> = (0..400usize)
        .map(|i| {
            let word = |j: usize| words[(i * 7 + j * 3 + i * j) % words.len()];
            format!(
                "{{\"{}\": \"{}\", \"{}\": {i}, \"{}\": \"{}\"}}",
                word(0),
                word(1),
                word(2),
                word(3),
                word(4)
            )
        })
        .collect();
    let sizes: Vec<usize> = samples.iter().map(String::len).collect();
    let mut dictionary = Vec::with_capacity(2048);
    let trained = zstd_safe::train_from_buffer(&mut dictionary, samples.concat().as_bytes(), &sizes);
    trained.expect("these have much in common");
    let dictionaries = Dictionaries::in_memory();
    dictionaries.add(0, dictionary).expect("it is the first");
    dictionaries
});

/// Stored bytes, of which the first is the record's flags.
pub fn stored(data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else { return };
    let mut decoder = Decoder::default();
    let codec = Codec::of_flags(*flags);
    // The bytes as they are, and with the number of the existing dictionary in front.
    let ours = [&[1], bytes].concat();
    for bytes in [bytes, &ours] {
        let stored = StoredValue { codec, bytes };
        if let Some(value) = decoder.decode(stored, &DICTIONARIES) {
            assert!(codec == Codec::None || value.len() <= COMPRESSED_VALUE_BYTES_MAX);
        }
    }
    let encoders = Encoders::default();
    for compression in [Compression::Zstd, Compression::Lz4] {
        for dictionary in [None, DICTIONARIES.current(0)] {
            let mut encoded = Encoded::default();
            let stored = encoders.encode(compression, dictionary, data, &mut encoded);
            assert_eq!(decoder.decode(stored, &DICTIONARIES), Some(data));
            // Cut, it is another value or none.
            if stored.codec != Codec::None {
                let cut = StoredValue { bytes: &stored.bytes[..stored.bytes.len() - 1], ..stored };
                assert_ne!(decoder.decode(cut, &DICTIONARIES), Some(data));
                let unknown = StoredValue { bytes: &[&[9], &stored.bytes[1..]].concat(), ..stored };
                assert_eq!(decoder.decode(unknown, &DICTIONARIES), None, "its dictionary is not there");
            }
        }
    }
}
