//! CLICKHOUSE(..).

use super::server::Defaults;
use super::{Kind, Select, Server};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// CLICKHOUSE(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' TABLE '..' | QUERY '..' [WHERE '..']), over HTTP;
/// without HOST and PORT, and with PORT 9000 of this machine, the tables beside the dictionary.
#[derive(Clone, Debug, PartialEq)]
pub struct ClickhouseConfig {
    /// The server; user and database `default` if not given, port 8123 (8443 if secure) if a host of its own is.
    pub server: Server,
    /// SECURE.
    pub encryption: Encryption,
    /// What rows are selected from.
    pub select: Select,
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// As it is.
    None,
    /// In TLS: the server must have a certificate for the HOST.
    Tls,
}

const PARAMETERS: Parameters = Parameters {
    allowed: &[
        "HOST",
        "PORT",
        "USER",
        "PASSWORD",
        "DB",
        "TABLE",
        "QUERY",
        "WHERE",
        "UPDATE_FIELD",
        "UPDATE_LAG",
        "UPDATE_PERIOD",
        "SECURE",
    ],
    idle: &["INVALIDATE_QUERY"],
    refused: &[("QUOTA_KEY", "is not sent; give the USER a quota")],
};
const DEFAULTS: Defaults = Defaults { port: 8123, user: "default", database: "default" };
/// Where ClickHouse's own tables are for its dictionaries, and Granary's for its own.
const OWN_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const OWN_PORT: u16 = 9000;
/// Stands for the database that the dictionary is in, until that is known.
pub(crate) const CURRENT_DATABASE: &str = "currentDatabase()";
/// ClickHouse's for HTTPS.
const SECURE_PORT: u16 = 8443;
/// Ports of ClickHouse's own protocol, the second one encrypted.
const NATIVE_PORTS: [u16; 2] = [9000, 9440];

impl ClickhouseConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<ClickhouseConfig, DictError> {
        let settings = Settings::of("SOURCE", "CLICKHOUSE", nodes, &PARAMETERS)?;
        let mut server = Server::take(&settings, &DEFAULTS)?;
        if settings.text("PORT")?.is_none() && OWN_HOSTS.contains(&server.host.as_str()) {
            server.port = OWN_PORT;
        }
        if settings.text("DB")?.is_none()
            && server.port == OWN_PORT
            && OWN_HOSTS.contains(&server.host.as_str())
        {
            server.database = CURRENT_DATABASE.to_string();
        }
        let encryption = if settings.flag("SECURE")? { Encryption::Tls } else { Encryption::None };
        if encryption == Encryption::Tls && settings.text("PORT")?.is_none() {
            server.port = SECURE_PORT;
        }
        let config = ClickhouseConfig { server, encryption, select: Select::take(&settings)? };
        let server = &config.server;
        if NATIVE_PORTS.contains(&server.port) && !config.is_own() {
            let text = "is ClickHouse's native protocol; Granary speaks HTTP with ClickHouse: use PORT 8123, or 8443 with SECURE 1";
            return Err(settings.error(&format!("PORT {}", server.port), text));
        }
        Ok(config)
    }

    /// Whether it names the tables of the very server that the dictionary is in: ClickHouse's port on this
    /// machine, at which Granary does not listen.
    pub fn is_own(&self) -> bool {
        self.server.port == OWN_PORT && OWN_HOSTS.contains(&self.server.host.as_str())
    }
}

impl Kind for ClickhouseConfig {
    fn name(&self) -> &'static str {
        "CLICKHOUSE"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.server.put(&mut nodes, hidden);
        if self.encryption == Encryption::Tls {
            nodes.push(Node::text("SECURE", "1"));
        }
        self.select.put(&mut nodes);
        nodes
    }

    fn describe(&self) -> String {
        format!("ClickHouse: {}.{}", self.server.database, self.select.describe_with_filter())
    }

    fn validate(&self, _structure: &Structure) -> Result<(), DictError> {
        self.select.validate("CLICKHOUSE")
    }
}
