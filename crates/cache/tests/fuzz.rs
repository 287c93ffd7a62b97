//! The fuzz target on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

#[test]
fn records() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/records");
    mutations::smoke(&corpus, 20_000, granary_cache::fuzzing::records);
}
