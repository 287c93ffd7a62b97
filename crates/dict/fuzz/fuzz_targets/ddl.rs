//! Any text is refused, or printed so that it reads the same again.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(read) = granary_dict::parse_create(text) {
        let printed = read.definition.to_sql_with_secrets();
        let again = granary_dict::parse_create(&printed).expect("what is printed is read");
        assert_eq!(again.definition, read.definition);
    }
});
