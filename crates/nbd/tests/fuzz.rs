//! The fuzz targets on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

use granary_nbd::fuzzing;
use std::path::Path;

fn smoke(name: &str, rounds: usize, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    mutations::smoke(&corpus, rounds, target);
}

#[test]
fn options() {
    smoke("options", 50_000, fuzzing::options);
}

#[test]
fn request() {
    smoke("request", 50_000, fuzzing::request);
}

#[test]
fn conversation() {
    smoke("conversation", 5_000, fuzzing::conversation);
}
