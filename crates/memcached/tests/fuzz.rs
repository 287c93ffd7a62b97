//! The fuzz target on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

use granary_memcached::fuzzing::{Stage, conversation};
use std::cell::RefCell;
use std::path::Path;

#[test]
fn conversations() {
    let folder = tempfile::tempdir().unwrap();
    let stage = RefCell::new(Stage::new(folder.path()));
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/conversation");
    mutations::smoke(&corpus, 10_000, |data| conversation(&mut stage.borrow_mut(), data));
}
