//! The fuzz targets on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

fn smoke(name: &str, target: impl Fn(&[u8])) {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    mutations::smoke(&corpus, 20_000, target);
}

#[test]
fn checkpoint() {
    smoke("checkpoint", granary_volume::fuzzing::checkpoint);
}

#[test]
fn segment() {
    smoke("segment", granary_volume::fuzzing::segment);
}
