//! See `granary_dict::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| granary_dict::fuzzing::yaml(text));
