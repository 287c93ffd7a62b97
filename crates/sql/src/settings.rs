//! ClickHouse's settings, and the fixed part of DataFusion's configuration.

use std::num::NonZeroUsize;

use datafusion::prelude::SessionConfig;
use granary_dialect::{Error, Result, similar};

use crate::catalogue::DEFAULT_DATABASE;
use crate::limits::{BLOCK_ROWS_MAX, THREADS_OF_CORE_MAX};

/// Names and values, as text.
pub type Settings = Vec<(String, String)>;

/// A setting that is known.
pub struct Setting {
    pub name: &'static str,
    /// ClickHouse's name of its type.
    pub type_name: &'static str,
    /// The default, as text; for a setting that depends on the machine, the value that 0 means.
    pub default: &'static str,
    pub description: &'static str,
    effect: SettingEffect,
}

/// The effect of a setting here.
enum SettingEffect {
    /// It sets an option of DataFusion.
    Option(&'static str),
    /// Read by statements that are not queries, or by the server.
    ReadElsewhere,
    /// None: clients send it, and what it stands for holds anyway or does not exist here.
    None,
    /// It would change answers, and only these values are accepted.
    Only(&'static [&'static str]),
    /// ClickHouse, too, accepts these values alone.
    FixedByClickHouse(&'static [&'static str]),
}

const fn setting(
    name: &'static str,
    type_name: &'static str,
    default: &'static str,
    effect: SettingEffect,
    description: &'static str,
) -> Setting {
    Setting { name, type_name, default, description, effect }
}

/// Every setting that is accepted.
pub const KNOWN: &[Setting] = &[
    setting(
        "max_threads",
        "MaxThreads",
        "0",
        SettingEffect::Option("datafusion.execution.target_partitions"),
        "Threads of one query; 0: one for each core.",
    ),
    setting(
        "max_block_size",
        "NonZeroUInt64",
        "65536",
        SettingEffect::Option("datafusion.execution.batch_size"),
        "Rows that are worked on at once.",
    ),
    setting(
        "join_use_nulls",
        "Bool",
        "0",
        SettingEffect::Option("granary.join_use_nulls"),
        "Rows without a partner in an outer join have NULLs, not defaults.",
    ),
    setting(
        "max_execution_time",
        "Seconds",
        "0",
        SettingEffect::Option("granary.max_execution_time"),
        "Seconds that a query may take; 0: as long as it wants.",
    ),
    setting(
        "max_result_rows",
        "UInt64",
        "0",
        SettingEffect::Option("granary.max_result_rows"),
        "Rows that a query may answer; 0: any number.",
    ),
    setting(
        "max_result_bytes",
        "UInt64",
        "0",
        SettingEffect::Option("granary.max_result_bytes"),
        "Bytes that a query may answer, as they are in RAM; 0: any number.",
    ),
    setting(
        "max_memory_usage",
        "UInt64",
        "0",
        SettingEffect::Option("granary.max_memory_usage"),
        "Bytes that sorting, grouping and joining may hold in one query; 0: any number.",
    ),
    setting(
        SLEEP,
        "UInt64",
        SLEEP_DEFAULT,
        SettingEffect::Option("granary.function_sleep_max_microseconds_per_block"),
        "Microseconds that sleep and sleepEachRow may take for one block; 0: any number.",
    ),
    setting(
        "asterisk_include_materialized_columns",
        "Bool",
        "0",
        SettingEffect::ReadElsewhere,
        "SELECT * FROM a dictionary has _updated_at, the time at which each entry was got from the source.",
    ),
    setting(
        "check_table_dependencies",
        "Bool",
        "1",
        SettingEffect::ReadElsewhere,
        "A table that a dictionary reads can neither be dropped nor renamed.",
    ),
    setting(
        "http_response_buffer_size",
        "UInt64",
        "0",
        SettingEffect::ReadElsewhere,
        "Bytes of an answer that are held back before it begins; at least 1 MiB. An error before that is the whole answer.",
    ),
    setting(
        "http_wait_end_of_query",
        "Bool",
        "0",
        SettingEffect::ReadElsewhere,
        "An answer begins when its end is known: an error is the whole answer.",
    ),
    nothing("add_http_cors_header", "Bool", "0"),
    nothing("allow_deprecated_database_ordinary", "Bool", "0"),
    frozen("allow_experimental_analyzer", "Bool", &["1", "true"]),
    nothing("allow_experimental_bigint_types", "Bool", "1"),
    nothing("allow_experimental_map_type", "Bool", "1"),
    nothing("allow_suspicious_low_cardinality_types", "Bool", "0"),
    nothing("alter_sync", "UInt64", "1"),
    only("any_join_distinct_right_table_keys", "Bool", &["0", "false"]),
    nothing("async_insert", "Bool", "0"),
    nothing("cancel_http_readonly_queries_on_client_close", "Bool", "1"),
    only("cast_keep_nullable", "Bool", &["0", "false"]),
    only("cast_string_to_date_time_mode", "DateTimeInputFormat", &["best_effort"]),
    nothing("compile_expressions", "Bool", "1"),
    nothing("connect_timeout", "Seconds", "10"),
    only("data_type_default_nullable", "Bool", &["0", "false"]),
    nothing("database_atomic_wait_for_drop_and_detach_synchronously", "Bool", "0"),
    only("date_time_input_format", "DateTimeInputFormat", &["best_effort"]),
    only("date_time_output_format", "DateTimeOutputFormat", &["simple"]),
    nothing("dictionary_use_async_executor", "Bool", "0"),
    only("dictionary_validate_primary_key_type", "Bool", &["0", "false"]),
    nothing("distributed_ddl_output_mode", "DistributedDDLOutputMode", "throw"),
    only("empty_result_for_aggregation_by_empty_set", "Bool", &["0", "false"]),
    frozen("enable_analyzer", "Bool", &["1", "true"]),
    nothing("enable_http_compression", "Bool", "1"),
    only("extremes", "Bool", &["0", "false"]),
    only("final", "Bool", &["0", "false"]),
    only("format_csv_delimiter", "Char", &[","]),
    only("group_by_overflow_mode", "OverflowModeGroupBy", &["throw"]),
    only("group_by_use_nulls", "Bool", &["0", "false"]),
    nothing("http_headers_progress_interval_ms", "UInt64", "100"),
    nothing("http_max_tries", "UInt64", "10"),
    nothing("http_receive_timeout", "Seconds", "30"),
    nothing("http_send_timeout", "Seconds", "30"),
    only("http_write_exception_in_output_format", "Bool", &["0", "false"]),
    nothing("http_zlib_compression_level", "Int64", "3"),
    nothing("idle_connection_timeout", "UInt64", "3600"),
    only("input_format_null_as_default", "Bool", &["1", "true"]),
    nothing("insert_deduplicate", "Bool", "1"),
    nothing("insert_quorum", "UInt64Auto", "0"),
    nothing("join_algorithm", "JoinAlgorithm", "direct,parallel_hash,hash"),
    only("join_default_strictness", "JoinStrictness", &["ALL"]),
    nothing("load_balancing", "LoadBalancing", "random"),
    nothing("log_comment", "String", ""),
    nothing("log_profile_events", "Bool", "1"),
    nothing("log_queries", "Bool", "1"),
    nothing("log_queries_min_type", "LogQueriesType", "QUERY_START"),
    nothing("low_cardinality_allow_in_native_format", "Bool", "1"),
    only("max_ast_depth", "UInt64", &["1000"]),
    nothing("max_bytes_before_external_group_by", "UInt64", "0"),
    nothing("max_bytes_before_external_sort", "UInt64", "0"),
    only("max_bytes_to_read", "UInt64", &["0"]),
    nothing("max_insert_block_size", "NonZeroUInt64", "1048449"),
    nothing("max_insert_threads", "UInt64", "0"),
    nothing("max_network_bandwidth", "UInt64", "0"),
    nothing("max_parallel_replicas", "NonZeroUInt64", "1000"),
    only("max_query_size", "UInt64", &["262144"]),
    nothing("max_reverse_dictionary_lookup_cache_size_bytes", "UInt64", "104857600"),
    only("max_rows_to_group_by", "UInt64", &["0"]),
    only("max_rows_to_read", "UInt64", &["0"]),
    nothing("min_insert_block_size_bytes", "UInt64", "268402944"),
    nothing("min_insert_block_size_rows", "UInt64", "1048449"),
    nothing("mutations_sync", "UInt64", "1"),
    nothing("network_compression_method", "String", "LZ4"),
    nothing("network_zstd_compression_level", "Int64", "1"),
    nothing("optimize_move_to_prewhere", "Bool", "1"),
    nothing("optimize_read_in_order", "Bool", "1"),
    only("output_format_json_quote_64bit_integers", "Bool", &["0", "false"]),
    only("output_format_json_quote_decimals", "Bool", &["0", "false"]),
    only("output_format_json_quote_denormals", "Bool", &["0", "false"]),
    nothing("output_format_native_write_json_as_string", "Bool", "0"),
    only("output_format_pretty_color", "UInt64Auto", &["auto", "0"]),
    only("output_format_write_statistics", "Bool", &["1", "true"]),
    only("prefer_column_name_to_alias", "Bool", &["0", "false"]),
    nothing("prefer_localhost_replica", "Bool", "1"),
    nothing("priority", "UInt64", "0"),
    nothing("query_cache_ttl", "Seconds", "60"),
    only("read_overflow_mode", "OverflowMode", &["throw"]),
    only("readonly", "UInt64", &["0"]),
    nothing("receive_timeout", "Seconds", "300"),
    only("result_overflow_mode", "OverflowMode", &["throw"]),
    nothing("select_sequential_consistency", "UInt64", "0"),
    nothing("send_logs_level", "LogsLevel", "fatal"),
    nothing("send_progress_in_http_headers", "Bool", "0"),
    nothing("send_timeout", "Seconds", "300"),
    only("session_timezone", "Timezone", &["", "UTC", "Etc/UTC", "GMT"]),
    only("short_circuit_function_evaluation", "ShortCircuitFunctionEvaluation", &["enable", "force_enable"]),
    nothing("skip_unavailable_shards", "Bool", "0"),
    nothing("tcp_keep_alive_timeout", "Seconds", "290"),
    nothing("timeout_before_checking_execution_speed", "Seconds", "10"),
    only("timeout_overflow_mode", "OverflowMode", &["throw"]),
    only("transform_null_in", "Bool", &["0", "false"]),
    only("use_client_time_zone", "Bool", &["0", "false"]),
    nothing("use_query_cache", "Bool", "0"),
    nothing("use_skip_indexes", "Bool", "1"),
    nothing("use_uncompressed_cache", "Bool", "0"),
    nothing("wait_for_async_insert", "Bool", "1"),
    nothing("workload", "String", "default"),
];

const fn nothing(name: &'static str, type_name: &'static str, default: &'static str) -> Setting {
    setting(name, type_name, default, SettingEffect::None, "Accepted; changes nothing.")
}

const fn only(name: &'static str, type_name: &'static str, values: &'static [&'static str]) -> Setting {
    setting(
        name,
        type_name,
        values[0],
        SettingEffect::Only(values),
        "Can have the value that it has, and no other.",
    )
}

const fn frozen(name: &'static str, type_name: &'static str, values: &'static [&'static str]) -> Setting {
    setting(
        name,
        type_name,
        values[0],
        SettingEffect::FixedByClickHouse(values),
        "Can have the value that it has, as in ClickHouse.",
    )
}

/// A setting's value: the last in `said`, or its default; `None`: there is no such setting.
pub fn value_of(name: &str, said: &[(String, String)]) -> Option<String> {
    let setting = KNOWN.iter().find(|setting| setting.name == name)?;
    let said = said.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    match said.unwrap_or(setting.default) {
        "0" if name == "max_threads" => Some(cores().to_string()),
        value => Some(value.to_owned()),
    }
}

/// Whether a boolean setting is on.
pub fn is_on(name: &str, said: &[(String, String)]) -> bool {
    value_of(name, said).is_some_and(|value| matches!(value.as_str(), "1" | "true"))
}

/// DataFusion's configuration for planning queries and reading files.
pub fn configuration() -> SessionConfig {
    granary_dialect::plan::configuration().with_default_catalog_and_schema("granary", DEFAULT_DATABASE)
}

/// Whether there is such a setting.
pub fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|known| known.name == name)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Applies SETTINGS or SET to a configuration.
///
/// # Errors
/// UNKNOWN_SETTING, BAD_ARGUMENTS for a value that a setting cannot have, NOT_IMPLEMENTED and
/// SETTING_CONSTRAINT_VIOLATION for one that it cannot have here, or anywhere.
pub fn apply(settings: &[(String, String)], config: &mut SessionConfig) -> Result<()> {
    for (name, value) in settings {
        let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
            let near = similar(name, KNOWN.iter().map(|known| known.name));
            let hint = near.map_or_else(
                || "system.settings has all".to_owned(),
                |near| format!("Maybe you meant {near}"),
            );
            return Err(Error::unknown_setting(format!("Unknown setting '{name}': {hint}")));
        };
        match known.effect {
            SettingEffect::Option(option) => {
                let value = option_value(known, value)?;
                config.options_mut().set(option, &value)?;
            }
            SettingEffect::Only(values) if !values.contains(&value.as_str()) => {
                let allowed: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
                let allowed = allowed.join(", ");
                let message = format!("Setting {name} = '{value}' is not implemented; it can be {allowed}");
                return Err(Error::not_implemented(message));
            }
            SettingEffect::FixedByClickHouse(values) if !values.contains(&value.as_str()) => {
                let message =
                    format!("Setting '{name}' cannot be {value}: it is {} in ClickHouse, too", values[0]);
                return Err(Error::setting_constraint_violation(message));
            }
            SettingEffect::ReadElsewhere => drop(option_value(known, value)?),
            SettingEffect::Only(_) | SettingEffect::FixedByClickHouse(_) | SettingEffect::None => {}
        }
    }
    Ok(())
}

const SLEEP: &str = "function_sleep_max_microseconds_per_block";
const SLEEP_DEFAULT: &str = "3000000";

/// Settings that are limits: 0 means none.
const LIMITS: [&str; 6] =
    ["max_execution_time", "max_memory_usage", "max_result_bytes", "max_result_rows", "max_threads", SLEEP];

/// Refuses limits that are higher than those of `bounds`, or absent where `bounds` has one; sleep is bounded anyway.
///
/// # Errors
/// SETTING_CONSTRAINT_VIOLATION.
pub fn check_limits(settings: &[(String, String)], bounds: &[(String, String)]) -> Result<()> {
    let number = |value: &str| value.parse::<f64>().unwrap_or(0.0);
    for (name, value) in settings.iter().filter(|(name, _)| LIMITS.contains(&name.as_str())) {
        let said = bounds.iter().rev().find(|(bound, _)| bound == name).map(|(_, bound)| bound.as_str());
        let bound = said.or((name == SLEEP).then_some(SLEEP_DEFAULT));
        if let Some(bound) = bound.filter(|bound| number(bound) > 0.0)
            && (number(value) == 0.0 || number(value) > number(bound))
        {
            let message = format!("Setting {name} shouldn't be greater than {bound}");
            return Err(Error::setting_constraint_violation(message));
        }
    }
    Ok(())
}

/// Settings that SET and SETTINGS gave, for display.
#[derive(Debug, Default)]
pub struct ExplicitSettings(pub Settings);

impl ExplicitSettings {
    /// The value of a setting as ClickHouse shows it, if it was given.
    pub fn value(&self, setting: &Setting) -> Option<String> {
        let said = self.0.iter().rev().find(|(name, _)| name == setting.name);
        said.map(|(_, value)| match (setting.type_name, value.as_str()) {
            ("Bool", "true") => "1".to_owned(),
            ("Bool", "false") => "0".to_owned(),
            (_, value) => value.to_owned(),
        })
    }
}

/// A value as DataFusion writes it.
fn option_value(setting: &Setting, value: &str) -> Result<String> {
    let parsed = match setting.type_name {
        "Bool" => match value {
            "0" | "false" => Some("false".to_owned()),
            "1" | "true" => Some("true".to_owned()),
            _ => None,
        },
        // More threads or rows than these are of no use, and take RAM.
        "MaxThreads" => value.parse().ok().map(|n: usize| match n {
            0 => cores().to_string(),
            n => n.min(THREADS_OF_CORE_MAX * cores()).to_string(),
        }),
        "NonZeroUInt64" => {
            let most = if setting.name == "max_block_size" { BLOCK_ROWS_MAX } else { u64::MAX };
            value.parse().ok().filter(|n: &u64| *n > 0).map(|n| n.min(most).to_string())
        }
        "Seconds" => value.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0).map(|s| s.to_string()),
        _ => value.parse().ok().map(|n: u64| n.to_string()),
    };
    parsed.ok_or_else(|| {
        let (name, type_name) = (setting.name, setting.type_name);
        Error::bad_arguments(format!("Setting {name} is a {type_name}: it cannot be {value}"))
    })
}
