//! See `granary_log::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| granary_log::fuzzing::state(data));
