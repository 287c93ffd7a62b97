//! Any document is refused, or says what DDL could say.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    for definition in granary_dict::parse_xml(text).unwrap_or_default() {
        let printed = definition.to_sql_with_secrets();
        let again = granary_dict::parse_create(&printed).expect("what is printed is read");
        assert_eq!(again.definition, definition);
    }
});
