//! See `granary_dict::fuzzing`. Not in ArrowStream: its decoder is another crate's, and panics, which we catch and a
//! fuzzer does not.
#![no_main]

/// The place of ArrowStream among the formats, which is the last.
const FORMATS: u8 = 11;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if bytes.first().is_some_and(|first| first % FORMATS != FORMATS - 1) {
        granary_dict::fuzzing::keys(bytes);
    }
});
