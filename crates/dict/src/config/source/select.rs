//! TABLE, QUERY and WHERE: what a SQL source selects from.

use crate::config::node::{Node, Settings};
use crate::error::DictError;
use crate::limits;

/// What a SQL source selects from. Just one of `table` and `query` is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    /// TABLE, a name that is quoted before it is used. Empty: none, which is said when rows are wanted.
    pub table: Option<String>,
    /// A query of one's own, in which `{condition}` stands for the condition on the keys.
    pub query: Option<String>,
    /// A condition on every row, put in parentheses before it is used.
    pub filter: Option<String>,
    /// How changed rows are told from others.
    pub updates: Option<Updates>,
}

/// UPDATE_FIELD and its companions: how changes are found, so that cached rows do not wait for their LIFETIME.
#[derive(Clone, Debug, PartialEq)]
pub struct Updates {
    /// UPDATE_FIELD, the column that says when a row was changed last, or a number that only grows.
    pub field: String,
    /// UPDATE_LAG: a change may be seen by others so much later than it says.
    pub lag_seconds: u64,
    /// UPDATE_PERIOD: how often it is looked for changes.
    pub period_seconds: u64,
}

/// What the three are called, for the sources that have them.
const UPDATES: [&str; 3] = ["UPDATE_FIELD", "UPDATE_LAG", "UPDATE_PERIOD"];
/// ClickHouse's.
const LAG_SECONDS: u64 = 1;
/// How often ClickHouse looks which of its dictionaries are due.
const PERIOD_SECONDS: u64 = 5;

impl Updates {
    pub(super) fn take(settings: &Settings<'_>) -> Result<Option<Updates>, DictError> {
        let [field, lag, period] = UPDATES;
        let most = limits::TIMEOUT_MS_MAX / 1000;
        let lag_seconds = settings.number(lag, 0, most)?.unwrap_or(LAG_SECONDS);
        let period_seconds = settings.number(period, 1, most)?.unwrap_or(PERIOD_SECONDS);
        let field = settings.text(field)?.filter(|field| !field.is_empty());
        Ok(field.map(|field| Updates { field: field.to_string(), lag_seconds, period_seconds }))
    }

    pub(super) fn put(&self, nodes: &mut Vec<Node>) {
        let [field, lag, period] = UPDATES;
        nodes.push(Node::text(field, &self.field));
        for (name, value, default) in
            [(lag, self.lag_seconds, LAG_SECONDS), (period, self.period_seconds, PERIOD_SECONDS)]
        {
            if value != default {
                nodes.push(Node::text(name, value.to_string()));
            }
        }
    }
}

impl Select {
    pub(super) fn take(settings: &Settings<'_>) -> Result<Select, DictError> {
        let text = |name| -> Result<Option<String>, DictError> {
            Ok(settings.text(name)?.filter(|text| !text.trim().is_empty()).map(str::to_string))
        };
        let query = text("QUERY")?;
        let is_named = settings.text("TABLE")?.is_some() && query.is_none();
        Ok(Select {
            table: text("TABLE")?.or_else(|| is_named.then(String::new)),
            query,
            filter: text("WHERE")?,
            updates: Updates::take(settings)?,
        })
    }

    pub(super) fn put(&self, nodes: &mut Vec<Node>) {
        nodes.extend(self.table.as_ref().map(|table| Node::text("TABLE", table)));
        nodes.extend(self.query.as_ref().map(|query| Node::text("QUERY", query)));
        nodes.extend(self.filter.as_ref().map(|filter| Node::text("WHERE", filter)));
        self.updates.iter().for_each(|updates| updates.put(nodes));
    }

    pub(super) fn describe(&self) -> &str {
        self.table.as_deref().or(self.query.as_deref()).unwrap_or("")
    }

    /// `table, where: x`, as ClickHouse describes its MySQL and ClickHouse sources.
    pub(super) fn describe_with_filter(&self) -> String {
        match &self.filter {
            Some(filter) => format!("{}, where: {filter}", self.describe()),
            None => self.describe().to_string(),
        }
    }

    pub(super) fn validate(&self, source: &str) -> Result<(), DictError> {
        let problem = match (&self.table, &self.query, &self.filter) {
            (Some(_), None, _) | (None, Some(_), None) => return Ok(()),
            (None, None, _) => "TABLE or QUERY is required",
            (Some(_), Some(_), _) => "TABLE and QUERY cannot be given together",
            (None, Some(_), Some(_)) => "WHERE goes into QUERY itself",
        };
        Err(DictError::bad_arguments(format!("SOURCE({source}): {problem}")))
    }
}
