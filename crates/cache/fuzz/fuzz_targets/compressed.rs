//! See `granary_cache::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| granary_cache::fuzzing::compressed(data));
