//! See `granary_volume::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| granary_volume::fuzzing::segment(data));
