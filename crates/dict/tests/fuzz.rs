//! The fuzz targets on stable: the corpus of `fuzz/corpus` and seeded mutations of it.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

use granary_dict::{fuzzing, parse_create, parse_xml};
use std::path::{Path, PathBuf};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name)
}

/// The corpus itself is read, so that the mutations start from something.
fn each(name: &str, check: impl Fn(&str)) {
    for file in std::fs::read_dir(corpus(name)).unwrap() {
        check(&std::fs::read_to_string(file.unwrap().path()).unwrap());
    }
}

#[test]
fn ddl() {
    each("ddl", |text| drop(parse_create(text).unwrap()));
    mutations::smoke(&corpus("ddl"), 20_000, |bytes| fuzzing::ddl(&String::from_utf8_lossy(bytes)));
}

#[test]
fn xml() {
    each("xml", |text| assert!(!parse_xml(text).unwrap().is_empty()));
    mutations::smoke(&corpus("xml"), 20_000, |bytes| fuzzing::xml(&String::from_utf8_lossy(bytes)));
}

#[test]
fn text() {
    each("text", |text| assert!(fuzzing::text(text.as_bytes()), "{text}"));
    mutations::smoke(&corpus("text"), 20_000, |bytes| {
        fuzzing::text(bytes);
    });
}

#[test]
fn keys() {
    mutations::smoke(&corpus("keys"), 20_000, fuzzing::keys);
}

#[cfg(feature = "full-load")]
#[test]
fn regexp() {
    each("regexp", |text| assert!(fuzzing::regexp(text), "{text}"));
    mutations::smoke(&corpus("regexp"), 20_000, |bytes| {
        fuzzing::regexp(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn yaml() {
    each("yaml", |text| assert!(fuzzing::yaml(text) > 0, "{text}"));
    mutations::smoke(&corpus("yaml"), 20_000, |bytes| {
        fuzzing::yaml(&String::from_utf8_lossy(bytes));
    });
}
