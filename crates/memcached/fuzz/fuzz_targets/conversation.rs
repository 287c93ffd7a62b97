//! See `granary_memcached::fuzzing`.
#![no_main]

use granary_memcached::fuzzing::{Stage, conversation};
use std::cell::RefCell;

thread_local! {
    static STAGE: RefCell<(Stage, tempfile::TempDir)> = {
        let folder = tempfile::tempdir().unwrap();
        RefCell::new((Stage::new(folder.path()), folder))
    };
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| STAGE.with(|stage| conversation(&mut stage.borrow_mut().0, data)));
