//! POSTGRESQL(..).

use super::server::Defaults;
use super::{Kind, Select, Server};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// POSTGRESQL(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' [SCHEMA '..'] TABLE '..' | QUERY '..' [WHERE '..']).
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresConfig {
    /// The server; port 5432, user and database `postgres` if not given.
    pub server: Server,
    /// SCHEMA; `None`: the server's search path.
    pub schema: Option<String>,
    /// What rows are selected from.
    pub select: Select,
}

const PARAMETERS: Parameters = Parameters {
    allowed: &[
        "HOST",
        "PORT",
        "USER",
        "PASSWORD",
        "DB",
        "SCHEMA",
        "TABLE",
        "QUERY",
        "WHERE",
        "UPDATE_FIELD",
        "UPDATE_LAG",
        "UPDATE_PERIOD",
    ],
    idle: &["INVALIDATE_QUERY", "PRIORITY", "BACKGROUND_RECONNECT"],
    refused: &[super::NO_REPLICAS, super::NO_COLLECTIONS],
};
const DEFAULTS: Defaults = Defaults { port: 5432, user: "postgres", database: "postgres" };

impl PostgresConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<PostgresConfig, DictError> {
        let settings = Settings::of("SOURCE", "POSTGRESQL", nodes, &PARAMETERS)?;
        Ok(PostgresConfig {
            server: Server::take(&settings, &DEFAULTS)?,
            schema: settings.text("SCHEMA")?.filter(|s| !s.is_empty()).map(str::to_string),
            select: Select::take(&settings)?,
        })
    }
}

impl Kind for PostgresConfig {
    fn name(&self) -> &'static str {
        "POSTGRESQL"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.server.put(&mut nodes, hidden);
        nodes.extend(self.schema.as_ref().map(|schema| Node::text("SCHEMA", schema)));
        self.select.put(&mut nodes);
        nodes
    }

    fn describe(&self) -> String {
        format!("PostgreSQL: {}.{}", self.server.database, self.select.describe())
    }

    fn validate(&self, _structure: &Structure) -> Result<(), DictError> {
        self.select.validate("POSTGRESQL")
    }
}
