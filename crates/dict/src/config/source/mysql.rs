//! MYSQL(..).

use super::server::Defaults;
use super::{Kind, Select, Server};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// MYSQL(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' TABLE '..' | QUERY '..' [WHERE '..']); MariaDB too.
#[derive(Clone, Debug, PartialEq)]
pub struct MysqlConfig {
    /// The server; port 3306, user `root` and no database if not given.
    pub server: Server,
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
        super::NO_REPLICAS,
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
        Ok(MysqlConfig { server: Server::take(&settings, &DEFAULTS)?, select: Select::take(&settings)? })
    }
}

impl Kind for MysqlConfig {
    fn name(&self) -> &'static str {
        "MYSQL"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.server.put(&mut nodes, hidden);
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
