//! SQLITE(..).

use super::{Kind, Select};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// SQLITE(PATH '..' TABLE '..' | QUERY '..' [WHERE '..']).
#[derive(Clone, Debug, PartialEq)]
pub struct SqliteConfig {
    /// PATH, as written; `Environment::resolve` says where it leads.
    pub path: String,
    /// What rows are selected from.
    pub select: Select,
}

const PARAMETERS: Parameters = Parameters {
    allowed: &["PATH", "TABLE", "QUERY", "WHERE", "UPDATE_FIELD", "UPDATE_LAG", "UPDATE_PERIOD"],
    idle: &[],
    refused: &[],
};

impl SqliteConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<SqliteConfig, DictError> {
        let settings = Settings::of("SOURCE", "SQLITE", nodes, &PARAMETERS)?;
        Ok(SqliteConfig { path: settings.required("PATH")?.to_string(), select: Select::take(&settings)? })
    }
}

impl Kind for SqliteConfig {
    fn name(&self) -> &'static str {
        "SQLITE"
    }

    fn nodes(&self, _hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = vec![Node::text("PATH", &self.path)];
        self.select.put(&mut nodes);
        nodes
    }

    fn describe(&self) -> String {
        format!("SQLite: {}, {}", self.path, self.select.describe())
    }

    fn validate(&self, _structure: &Structure) -> Result<(), DictError> {
        self.select.validate("SQLITE")
    }
}
