//! See `granary_nbd::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| granary_nbd::fuzzing::options(data));
