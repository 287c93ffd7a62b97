//! The fuzz targets on stable: the corpora of `fuzz/corpus` and seeded mutations of them.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

use std::path::{Path, PathBuf};

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

#[test]
fn traces() {
    mutations::smoke(&corpus("traces"), 20_000, granary_lab::fuzzing::traces);
}

#[test]
fn statistics() {
    mutations::smoke(&corpus("statistics"), 20_000, granary_lab::fuzzing::statistics);
}
