//! See `granary_dict::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    granary_dict::fuzzing::text(bytes);
});
