//! See `granary_cache::framing::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| granary_cache::framing::fuzzing::block(data));
