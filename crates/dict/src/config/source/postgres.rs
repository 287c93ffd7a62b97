//! POSTGRESQL(..).

use super::server::Defaults;
use super::{Kind, PostgresTls, Replica, Select, Server};
use crate::config::node::{Node, Parameters, REPLICA, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// POSTGRESQL(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' [SCHEMA '..'] [SSLMODE '..' [SSLROOTCERT '..']]
/// TABLE '..' | QUERY '..' [WHERE '..']).
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresConfig {
    /// The server; port 5432, user and database `postgres` if not given.
    pub server: Server,
    /// REPLICA(HOST '..' PORT n USER '..' PASSWORD '..' PRIORITY n), if there are any: they are asked, and not the server.
    pub replicas: Vec<Replica>,
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
        REPLICA,
        "SSLMODE",
        "SSLROOTCERT",
    ],
    idle: &["INVALIDATE_QUERY", "PRIORITY", "BACKGROUND_RECONNECT"],
    refused: &[
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
        let server = Server::take(&settings, &DEFAULTS)?;
        Ok(PostgresConfig {
            replicas: server.take_replicas(&settings)?,
            server,
            schema: settings.text("SCHEMA")?.filter(|s| !s.is_empty()).map(str::to_string),
            tls: PostgresTls::take(&settings)?,
            select: Select::take(&settings)?,
        })
    }

    /// The same with each of its servers, in the order in which they are asked.
    pub(crate) fn each(&self) -> Vec<PostgresConfig> {
        let of = |server| PostgresConfig { server, ..self.clone() };
        self.server.all(&self.replicas).into_iter().map(of).collect()
    }

    /// The same servers, asked as nobody, in whatever way.
    pub(super) fn anonymous(&self) -> PostgresConfig {
        let replicas = self.replicas.iter().map(Replica::anonymous).collect();
        let tls = PostgresTls::default();
        PostgresConfig { server: self.server.anonymous(), replicas, tls, ..self.clone() }
    }
}

impl Kind for PostgresConfig {
    fn name(&self) -> &'static str {
        "POSTGRESQL"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.server.put(&mut nodes, hidden);
        self.server.put_replicas(&self.replicas, &mut nodes, hidden);
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
