//! TABLE, QUERY and WHERE: what a SQL source selects from; UPDATE_FIELD: what was changed in a source.

use crate::config::{Parameter, Values};
use crate::error::DictError;
use crate::limits;

/// What a SQL source selects from. Exactly one of `table` and `query` is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Select {
    /// A name that is quoted before it is used. Empty: none, which is an error once rows are wanted.
    pub table: Option<String>,
    /// The user's query, in which `{condition}` stands for the condition on the keys.
    pub query: Option<String>,
    /// A condition on every row, put in parentheses before it is used.
    pub filter: Option<String>,
    /// How changed rows are told from others.
    pub updates: Option<Updates>,
}

/// How changes are found, so that cached rows do not wait for their LIFETIME.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Updates {
    /// The column that says when a row was changed last, or a number that only grows.
    pub field: String,
    /// How much later than its time a change may become visible.
    pub lag_seconds: u64,
    /// How often changes are looked for.
    pub period_seconds: u64,
}

impl Updates {
    /// How much earlier than the latest change the next look begins, in seconds. `watermark`: where this one began.
    pub fn lag_after(&self, watermark: Option<&str>) -> u64 {
        match (self.lag_seconds, watermark) {
            // Rows read while the first watermark is looked for may change before it is there.
            (lag @ 1.., None) => lag + limits::FIRST_WATERMARK_SECONDS,
            (lag, _) => lag,
        }
    }
}

pub(super) const TABLE: &str = "TABLE";
pub(super) const QUERY: &str = "QUERY";
const FILTER: &str = "WHERE";
const UPDATE_FIELD: &str = "UPDATE_FIELD";
const UPDATE_LAG: &str = "UPDATE_LAG";
const UPDATE_PERIOD: &str = "UPDATE_PERIOD";
const SECONDS_MAX: u64 = limits::TIMEOUT_MS_MAX / 1000;

/// The parameters of SQL sources.
pub(super) const SELECT: &[Parameter] =
    &[Parameter::text(TABLE), Parameter::text(QUERY), Parameter::text(FILTER)];

/// The parameters of sources that can be asked what was changed.
pub(super) const UPDATES: &[Parameter] = &[
    Parameter::text(UPDATE_FIELD),
    // ClickHouse's default.
    Parameter::number(UPDATE_LAG, 0, SECONDS_MAX).or("1"),
    // How often ClickHouse looks which of its dictionaries are due.
    Parameter::number(UPDATE_PERIOD, 1, SECONDS_MAX).or("5"),
];

/// Drops parameters that are blank, or of no use without another one.
pub(super) fn normalize(values: &mut Values) {
    for name in [QUERY, FILTER] {
        if values.text(name).trim().is_empty() {
            values.remove(name);
        }
    }
    if values.text(TABLE).trim().is_empty() {
        match values.get(QUERY) {
            Some(_) => values.remove(TABLE),
            None => values.set(TABLE, ""),
        }
    }
    if values.text(UPDATE_FIELD).is_empty() {
        [UPDATE_FIELD, UPDATE_LAG, UPDATE_PERIOD].iter().for_each(|name| values.remove(name));
    }
}

pub(super) fn validate(source: &str, values: &Values) -> Result<(), DictError> {
    let problem = match (values.get(TABLE), values.get(QUERY), values.get(FILTER)) {
        (Some(_), None, _) | (None, Some(_), None) => return Ok(()),
        (None, None, _) => "TABLE or QUERY is required",
        (Some(_), Some(_), _) => "TABLE and QUERY cannot be given together",
        (None, Some(_), Some(_)) => "WHERE goes into QUERY itself",
    };
    Err(DictError::bad_arguments(format!("SOURCE({source}): {problem}")))
}

/// The table or the query.
pub(super) fn describe(values: &Values) -> &str {
    values.get(TABLE).or(values.get(QUERY)).unwrap_or_default()
}

/// `table, where: x`, as ClickHouse describes its MySQL and ClickHouse sources.
pub(super) fn describe_with_filter(values: &Values) -> String {
    match values.get(FILTER) {
        Some(filter) => format!("{}, where: {filter}", describe(values)),
        None => describe(values).to_string(),
    }
}

impl Select {
    pub fn of(values: &Values) -> Select {
        let text = |name| values.get(name).map(str::to_string);
        Select { table: text(TABLE), query: text(QUERY), filter: text(FILTER), updates: Updates::of(values) }
    }
}

impl Updates {
    /// `None`: nothing is said of changes.
    pub fn of(values: &Values) -> Option<Updates> {
        Some(Updates {
            field: values.get(UPDATE_FIELD)?.to_string(),
            lag_seconds: values.number(UPDATE_LAG),
            period_seconds: values.number(UPDATE_PERIOD),
        })
    }
}
