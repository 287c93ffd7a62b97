//! TABLE, QUERY and WHERE: what a SQL source selects from.

use crate::config::node::{Node, Settings};
use crate::error::DictError;

/// What a SQL source selects from. Just one of `table` and `query` is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    /// TABLE, a name that is quoted before it is used.
    pub table: Option<String>,
    /// A query of one's own, in which `{condition}` stands for the condition on the keys.
    pub query: Option<String>,
    /// A condition on every row, put in parentheses before it is used.
    pub filter: Option<String>,
}

impl Select {
    pub(super) fn take(settings: &Settings<'_>) -> Result<Select, DictError> {
        let text = |name| -> Result<Option<String>, DictError> {
            Ok(settings.text(name)?.filter(|text| !text.trim().is_empty()).map(str::to_string))
        };
        Ok(Select { table: text("TABLE")?, query: text("QUERY")?, filter: text("WHERE")? })
    }

    pub(super) fn put(&self, nodes: &mut Vec<Node>) {
        nodes.extend(self.table.as_ref().map(|table| Node::text("TABLE", table)));
        nodes.extend(self.query.as_ref().map(|query| Node::text("QUERY", query)));
        nodes.extend(self.filter.as_ref().map(|filter| Node::text("WHERE", filter)));
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
