//! MYSQL(..).

use super::server::Defaults;
use super::{Kind, Replica, Select, Server};
use crate::config::node::{Node, Parameters, REPLICA, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// MYSQL(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' TABLE '..' | QUERY '..' [WHERE '..']); MariaDB too.
#[derive(Clone, Debug, PartialEq)]
pub struct MysqlConfig {
    /// The server; port 3306, user `root` and no database if not given.
    pub server: Server,
    /// REPLICA(HOST '..' PORT n USER '..' PASSWORD '..' PRIORITY n), if there are any: they are asked, and not the server.
    pub replicas: Vec<Replica>,
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
        "TABLE",
        "QUERY",
        "WHERE",
        "UPDATE_FIELD",
        "UPDATE_LAG",
        "UPDATE_PERIOD",
        REPLICA,
    ],
    idle: &[
        "INVALIDATE_QUERY",
        "DONT_CHECK_UPDATE_TIME",
        "PRIORITY",
        "BACKGROUND_RECONNECT",
        "CLOSE_CONNECTION",
        "SHARE_CONNECTION",
        "FAIL_ON_CONNECTION_LOSS",
        "OPT_RECONNECT",
        "ENABLE_LOCAL_INFILE",
        "CONNECT_TIMEOUT",
        "MYSQL_CONNECT_TIMEOUT",
        "RW_TIMEOUT",
        "MYSQL_RW_TIMEOUT",
    ],
    refused: &[
        ("SOCKET", "is not read here; give HOST and PORT"),
        ("SSL_MODE", NO_TLS),
        ("SSL_CA", NO_TLS),
        ("SSL_CERT", NO_TLS),
        ("SSL_KEY", NO_TLS),
    ],
};
const NO_TLS: &str = "is not read here: connections to MySQL are not encrypted; use a tunnel";
const DEFAULTS: Defaults = Defaults { port: 3306, user: "root", database: "" };

impl MysqlConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<MysqlConfig, DictError> {
        let settings = Settings::of("SOURCE", "MYSQL", nodes, &PARAMETERS)?;
        let server = Server::take(&settings, &DEFAULTS)?;
        let replicas = server.take_replicas(&settings)?;
        Ok(MysqlConfig { server, replicas, select: Select::take(&settings)? })
    }

    /// The same with each of its servers, in the order in which they are asked.
    pub(crate) fn each(&self) -> Vec<MysqlConfig> {
        let of = |server| MysqlConfig { server, ..self.clone() };
        self.server.all(&self.replicas).into_iter().map(of).collect()
    }

    /// The same servers, asked as nobody.
    pub(super) fn anonymous(&self) -> MysqlConfig {
        let replicas = self.replicas.iter().map(Replica::anonymous).collect();
        MysqlConfig { server: self.server.anonymous(), replicas, ..self.clone() }
    }
}

impl Kind for MysqlConfig {
    fn name(&self) -> &'static str {
        "MYSQL"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.server.put(&mut nodes, hidden);
        self.server.put_replicas(&self.replicas, &mut nodes, hidden);
        self.select.put(&mut nodes);
        nodes
    }

    fn describe(&self) -> String {
        format!("MySQL: {}.{}", self.server.database, self.select.describe_with_filter())
    }

    fn validate(&self, _structure: &Structure) -> Result<(), DictError> {
        self.select.validate("MYSQL")
    }
}
