//! See `granary_lab::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| granary_lab::fuzzing::traces(data));
