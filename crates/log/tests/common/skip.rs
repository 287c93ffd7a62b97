//! Reports of tests that cannot do all of their work on this machine.

use std::io::Write;

/// Reports that the absence of `missing` keeps this test from some or all of its work. `make test` lists it at the end.
pub fn skipped(missing: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    println!("skipped: {test}: {missing}");
    if let Some(path) = std::env::var_os("GRANARY_SKIPPED_TESTS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        // One write, so that lines of tests side by side stay apart.
        file.unwrap().write_all(format!("{test}: {missing}\n").as_bytes()).unwrap();
    }
}
