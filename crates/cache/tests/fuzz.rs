//! The fuzz targets on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

fn smoke(name: &str, target: fn(&[u8])) {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    mutations::smoke(&corpus, 20_000, target);
}

#[test]
fn records() {
    smoke("records", granary_cache::fuzzing::records);
}

#[test]
fn compressed() {
    smoke("compressed", granary_cache::fuzzing::compressed);
}

#[test]
fn block() {
    smoke("block", granary_cache::framing::fuzzing::block);
}

#[test]
fn summary() {
    smoke("summary", granary_cache::framing::fuzzing::summary);
}
