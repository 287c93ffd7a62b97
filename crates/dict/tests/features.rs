//! Optional features of the program are there, or are refused by the feature's name.

use granary_dict::parse_create;

const SOURCE: &str = "SQLITE(PATH 'p' TABLE 't')";

/// A feature, whether it is there, and a source and a layout that want it.
const FEATURES: &[(&str, bool, &str, &str)] = &[
    ("mongodb", cfg!(feature = "mongodb"), "MONGODB(DB 'd' COLLECTION 'c')", "CACHE(SIZE_IN_CELLS 1)"),
    (
        "executable-pool",
        cfg!(feature = "executable-pool"),
        "EXECUTABLE_POOL(COMMAND 'c' FORMAT CSV)",
        "CACHE(SIZE_IN_CELLS 1)",
    ),
    ("full-load", cfg!(feature = "full-load"), SOURCE, "FLAT()"),
    ("full-load", cfg!(feature = "full-load"), "NULL()", "FLAT()"),
    ("full-load", cfg!(feature = "full-load"), SOURCE, "HASHED()"),
    ("full-load", cfg!(feature = "full-load"), SOURCE, "COMPLEX_KEY_SPARSE_HASHED(PREALLOCATE 1)"),
];

#[test]
fn what_is_left_out_is_refused_by_name() {
    for (feature, is_there, source, layout) in FEATURES {
        let sql = format!(
            "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE({source}) LAYOUT({layout}) LIFETIME(0)"
        );
        match (is_there, parse_create(&sql)) {
            (true, parsed) => assert!(parsed.is_ok(), "{sql}\n{}", parsed.unwrap_err()),
            (false, parsed) => {
                let error = parsed.expect_err(&sql);
                assert_eq!(error.name(), "SUPPORT_IS_DISABLED", "{error}");
                assert!(error.message().contains(&format!("without the feature `{feature}`")), "{error}");
            }
        }
    }
    let error = parse_create(
        "CREATE DICTIONARY d (id UInt64) PRIMARY KEY id SOURCE(NOSUCH()) LAYOUT(DIRECT()) LIFETIME(0)",
    );
    assert_eq!(error.unwrap_err().name(), "UNKNOWN_ELEMENT_IN_CONFIG");
}
