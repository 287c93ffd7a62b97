//! POSTGRESQL(..).

use super::server::Defaults;
use super::{Kind, PostgresTls, Select, Server};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// POSTGRESQL(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' [SCHEMA '..'] [SSLMODE '..' [SSLROOTCERT '..']]
/// TABLE '..' | QUERY '..' [WHERE '..']).
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresConfig {
    /// The server; port 5432, user and database `postgres` if not given.
    pub server: Server,
    /// SCHEMA; `None`: the server's search path.
    pub schema: Option<String>,
    /// SSLMODE and SSLROOTCERT.
    pub tls: PostgresTls,
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
        "SSLMODE",
        "SSLROOTCERT",
    ],
    idle: &["INVALIDATE_QUERY", "PRIORITY", "BACKGROUND_RECONNECT"],
    refused: &[
        super::NO_REPLICAS,
        ("SSLROOTCERT_PEM", "is not read here: name a file in SSLROOTCERT"),
        ("SSLCERT", NO_CLIENT_CERTIFICATE),
        ("SSLCERT_PEM", NO_CLIENT_CERTIFICATE),
        ("SSLKEY", NO_CLIENT_CERTIFICATE),
        ("SSLKEY_PEM", NO_CLIENT_CERTIFICATE),
    ],
};
const NO_CLIENT_CERTIFICATE: &str =
    "is not read here: no certificate is shown to the server; give a PASSWORD";
const DEFAULTS: Defaults = Defaults { port: 5432, user: "postgres", database: "postgres" };

impl PostgresConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<PostgresConfig, DictError> {
        let settings = Settings::of("SOURCE", "POSTGRESQL", nodes, &PARAMETERS)?;
        Ok(PostgresConfig {
            server: Server::take(&settings, &DEFAULTS)?,
            schema: settings.text("SCHEMA")?.filter(|s| !s.is_empty()).map(str::to_string),
            tls: PostgresTls::take(&settings)?,
            select: Select::take(&settings)?,
        })
    }

    /// The same server, asked as nobody, in whatever way.
    pub(super) fn anonymous(&self) -> PostgresConfig {
        PostgresConfig { server: self.server.anonymous(), tls: PostgresTls::default(), ..self.clone() }
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
        self.tls.put(&mut nodes);
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
