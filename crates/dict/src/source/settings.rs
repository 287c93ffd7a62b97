//! SETTINGS(..) that ClickHouse heeds when it reads a source, and Granary does not.

use crate::error::{Code, DictError};

/// A setting, and the values with which it changes nothing: ClickHouse's default, in all its spellings.
type Setting = (&'static str, &'static [&'static str]);

const ON: &[&str] = &["1", "true"];
const OFF: &[&str] = &["0", "false"];
/// The harmless values of a setting that is not listed: none is known.
const UNKNOWN: &[&str] = &[];
const NONE: &[&str] = &["", "0"];

/// Prefixes of the settings of formats.
const OF_FORMATS: [&str; 2] = ["format_", "input_format_"];

/// Settings of formats that can be written down as what they are anyway.
const FORMATS: &[Setting] = &[
    ("bool_false_representation", &["false"]),
    ("bool_true_representation", &["true"]),
    ("date_time_input_format", &["best_effort"]),
    ("format_csv_allow_double_quotes", ON),
    ("format_csv_allow_single_quotes", OFF),
    ("format_csv_delimiter", &[","]),
    ("format_csv_null_representation", &["\\N"]),
    ("format_tsv_null_representation", &["\\N"]),
    ("input_format_allow_errors_num", &["0"]),
    ("input_format_allow_errors_ratio", &["0"]),
    ("input_format_csv_allow_variable_number_of_columns", OFF),
    ("input_format_csv_allow_whitespace_or_tab_as_delimiter", OFF),
    ("input_format_csv_empty_as_default", ON),
    ("input_format_csv_skip_first_lines", &["0"]),
    ("input_format_csv_trim_whitespaces", ON),
    ("input_format_csv_use_default_on_bad_values", OFF),
    ("input_format_defaults_for_omitted_fields", ON),
    ("input_format_null_as_default", ON),
    // It affects the speed of reading, not the values.
    ("input_format_parallel_parsing", &["0", "1", "false", "true"]),
    ("input_format_skip_unknown_fields", ON),
    ("input_format_tsv_empty_as_default", OFF),
    ("input_format_tsv_skip_first_lines", &["0"]),
    ("input_format_with_names_use_header", ON),
    ("input_format_with_types_use_header", ON),
];

/// Settings of queries that say which rows there are, or what their values are.
const QUERIES: &[Setting] = &[
    ("additional_result_filter", &[""]),
    ("additional_table_filters", &["", "{}"]),
    ("aggregate_functions_null_for_empty", OFF),
    ("any_join_distinct_right_table_keys", OFF),
    ("cast_ipv4_ipv6_default_on_conversion_error", OFF),
    ("cast_keep_nullable", OFF),
    ("data_type_default_nullable", OFF),
    ("date_time_overflow_behavior", &["ignore"]),
    ("empty_result_for_aggregation_by_empty_set", OFF),
    ("except_default_mode", &["ALL"]),
    ("final", OFF),
    ("group_by_use_nulls", OFF),
    ("intersect_default_mode", &["ALL"]),
    ("join_default_strictness", &["ALL"]),
    (JOIN_USE_NULLS, OFF),
    ("limit", NONE),
    ("offset", NONE),
    ("prefer_column_name_to_alias", OFF),
    ("read_overflow_mode", &["throw"]),
    ("result_overflow_mode", &["throw"]),
    ("session_timezone", &["", "UTC"]),
    ("timeout_overflow_mode", &["throw"]),
    ("transform_null_in", OFF),
    ("union_default_mode", &[""]),
];

/// The one of them that queries of the server's own tables heed.
const JOIN_USE_NULLS: &str = "join_use_nulls";

/// The kind of source that the settings are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsFor {
    /// A ClickHouse, which is sent no settings.
    Clickhouse,
    /// The server's own tables.
    OwnTables,
    /// Another source, or one that is not known yet.
    Other,
}

/// Refuses settings that would change what is read.
///
/// # Errors
/// `NOT_IMPLEMENTED`.
pub(super) fn check(settings: &[(String, String)], asked: SettingsFor) -> Result<(), DictError> {
    settings.iter().try_for_each(|(name, value)| {
        let find = |list: &[Setting]| list.iter().find(|(known, _)| known == name).map(|(_, values)| *values);
        let is_heeded = match asked {
            SettingsFor::Clickhouse => false,
            SettingsFor::OwnTables => name == JOIN_USE_NULLS,
            SettingsFor::Other => true,
        };
        let of_query = find(QUERIES).filter(|_| !is_heeded);
        let of_format = OF_FORMATS.iter().any(|prefix| name.starts_with(prefix)).then_some(UNKNOWN);
        match find(FORMATS).or(of_query).or(of_format) {
            Some(values) if !values.contains(&value.as_str()) => Err(refusal(name, value, values)),
            _ => Ok(()),
        }
    })
}

fn refusal(name: &str, value: &str, values: &[&str]) -> DictError {
    let instead = match values.first() {
        Some(usual) => format!("it can be '{usual}' alone, as it is where nobody says it"),
        None => "leave it out, and have the source answer so that it is not needed".to_string(),
    };
    let text = format!("SETTINGS: {name} = '{value}' would change what is read from the source: {instead}");
    DictError::new(Code::NotImplemented, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_change_values_is_refused() {
        for (name, value, asked, is_refused) in [
            ("format_csv_allow_single_quotes", "0", SettingsFor::Other, false),
            ("format_csv_allow_single_quotes", "1", SettingsFor::Other, true),
            ("format_csv_null_representation", "NULL", SettingsFor::OwnTables, true),
            ("format_csv_null_representation", "\\N", SettingsFor::Clickhouse, false),
            ("format_csv_delimiter", ";", SettingsFor::Other, true),
            ("format_schema", "x", SettingsFor::Other, true),
            ("input_format_nosuch", "1", SettingsFor::Other, true),
            ("date_time_input_format", "basic", SettingsFor::Other, true),
            ("input_format_parallel_parsing", "0", SettingsFor::Other, false),
            ("join_use_nulls", "1", SettingsFor::Clickhouse, true),
            ("join_use_nulls", "false", SettingsFor::Clickhouse, false),
            ("join_use_nulls", "1", SettingsFor::OwnTables, false),
            ("join_use_nulls", "1", SettingsFor::Other, false),
            ("transform_null_in", "1", SettingsFor::OwnTables, true),
            ("max_result_bytes", "1", SettingsFor::OwnTables, false),
            ("x", "y", SettingsFor::Clickhouse, false),
        ] {
            let checked = check(&[(name.into(), value.into())], asked);
            assert_eq!(checked.is_err(), is_refused, "{name} = {value}");
        }
        let error = check(&[("format_csv_delimiter".into(), ";".into())], SettingsFor::Other).unwrap_err();
        assert_eq!(error.code(), 48);
        assert!(error.message().contains("it can be ',' alone"), "{error}");
    }
}
