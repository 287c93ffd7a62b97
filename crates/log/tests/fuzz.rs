//! The fuzz targets on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "common/mutations.rs"]
mod mutations;

use granary_log::fuzzing;
use std::path::Path;

const ROUNDS: usize = 20_000;

fn smoke(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    mutations::smoke(&corpus, ROUNDS, target);
}

#[test]
fn journal() {
    smoke("journal", fuzzing::journal);
}

#[test]
fn state() {
    smoke("state", fuzzing::state);
}
