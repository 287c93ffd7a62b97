//! Settings of a USER that silently truncate results: truncated keys would count as absent.

use crate::error::{Code, DictError};

/// A setting that makes a query stop at a limit as if that were the end, and the limits that it is for.
const MODES: &[(&str, &[&str])] = &[
    ("distinct_overflow_mode", &["max_rows_in_distinct", "max_bytes_in_distinct"]),
    ("group_by_overflow_mode", &["max_rows_to_group_by"]),
    ("join_overflow_mode", &["max_rows_in_join", "max_bytes_in_join"]),
    ("read_overflow_mode", &["max_rows_to_read", "max_bytes_to_read"]),
    ("read_overflow_mode_leaf", &["max_rows_to_read_leaf", "max_bytes_to_read_leaf"]),
    ("result_overflow_mode", &["max_result_rows", "max_result_bytes"]),
    ("set_overflow_mode", &["max_rows_in_set", "max_bytes_in_set"]),
    ("sort_overflow_mode", &["max_rows_to_sort", "max_bytes_to_sort"]),
    ("timeout_overflow_mode", &["max_execution_time", "max_estimated_execution_time"]),
    ("timeout_overflow_mode_leaf", &["max_execution_time_leaf"]),
    ("transfer_overflow_mode", &["max_rows_to_transfer", "max_bytes_to_transfer"]),
];
/// Limits at which a query stops whatever else is set.
const LIMITS: [&str; 2] = ["limit", "offset"];

/// Asks for the settings that [`check`] reads.
pub(super) const QUERY: &str = "SELECT name, value FROM system.settings WHERE changed FORMAT TabSeparated";

/// Refuses a session whose answers may be cut.
///
/// # Errors
/// `NOT_IMPLEMENTED`, with the setting's name.
pub(super) fn check(changed: &str) -> Result<(), DictError> {
    let settings: Vec<(&str, &str)> = changed.lines().filter_map(|line| line.split_once('\t')).collect();
    let find = |name: &str| settings.iter().find(|(known, _)| *known == name);
    let is_limit = |name: &&&str| find(name).is_some_and(|(_, value)| value.parse() != Ok(0.0));
    let stops = |(mode, limits): &(&'static str, &'static [&'static str])| {
        let limit = limits.iter().find(is_limit)?;
        find(mode).filter(|(_, value)| *value != "throw").map(|(mode, value)| (*mode, *value, *limit))
    };
    let text = match (LIMITS.iter().find(is_limit), MODES.iter().find_map(stops)) {
        (Some(limit), _) => (*limit).to_string(),
        (None, Some((mode, value, limit))) => format!("{limit} with {mode} = '{value}'"),
        (None, None) => return Ok(()),
    };
    let text = format!(
        "ClickHouse cuts what the USER reads ({text}), and keys whose rows are cut would seem not to be there: give the \
         USER a profile without that"
    );
    Err(DictError::new(Code::NotImplemented, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cuts_answers_is_refused() {
        for (changed, said) in [
            ("readonly\t1\nmax_result_rows\t5\nload_balancing\trandom\n", None),
            ("max_result_rows\t5\nresult_overflow_mode\tthrow\n", None),
            ("result_overflow_mode\tbreak\nlimit\t0\n", None),
            ("max_rows_to_read\t0\nread_overflow_mode\tbreak\n", None),
            (
                "max_result_rows\t5\nresult_overflow_mode\tbreak\n",
                Some("max_result_rows with result_overflow"),
            ),
            (
                "max_rows_to_group_by\t5\ngroup_by_overflow_mode\tany\n",
                Some("group_by_overflow_mode = 'any'"),
            ),
            ("max_execution_time\t0.5\ntimeout_overflow_mode\tbreak\n", Some("max_execution_time")),
            ("limit\t10\n", Some("(limit)")),
        ] {
            let checked = check(changed);
            match said {
                None => assert_eq!(checked, Ok(()), "{changed}"),
                Some(said) => assert!(checked.unwrap_err().message().contains(said), "{changed}"),
            }
        }
    }
}
