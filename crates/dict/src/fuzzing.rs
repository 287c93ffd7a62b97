//! Any text is refused or read, never a panic, and what is read prints so that it reads the same
//! again. Called by the fuzz targets and, with a fixed seed, by the tests.

use crate::{parse_create, parse_xml};

/// A CREATE DICTIONARY statement.
pub fn ddl(text: &str) {
    if let Ok(read) = parse_create(text) {
        let printed = read.definition.to_sql_with_secrets();
        let again = parse_create(&printed).expect("what is printed is read");
        assert_eq!(again.definition, read.definition);
    }
}

/// A configuration file: it says what DDL could say.
pub fn xml(text: &str) {
    for definition in parse_xml(text).unwrap_or_default() {
        let printed = definition.to_sql_with_secrets();
        let again = parse_create(&printed).expect("what is printed is read");
        assert_eq!(again.definition, definition);
    }
}
