//! The fuzz target on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

#[test]
fn checkpoint() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/checkpoint");
    mutations::smoke(&corpus, 20_000, granary_volume::fuzzing::checkpoint);
}
