//! MYSQL(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' [REPLICA(..) ..] TABLE '..' | QUERY '..' [WHERE '..']);
//! MariaDB too.

mod client;
mod errors;
mod keys;

use self::client::Mysql;
use super::SourceFactory;
use super::kind::{Opening, SourceKind};
use super::replicas;
use super::select::{self, SELECT, Select, UPDATES};
use super::server::{self, REPLICA_PARAMETERS, Server};
use crate::config::{Parameter, Parameters, Values};
use crate::error::DictError;

const SERVER: &[Parameter] = &server::parameters("3306", "root", "");
const REPLICAS: &[Parameter] =
    &[server::replicas(&Parameters { ignored: IGNORED_IN_REPLICA, ..REPLICA_PARAMETERS })];
/// ClickHouse's parameters of connections, which a REPLICA may have, too.
const IGNORED_IN_REPLICA: &[&str] = &[
    "ENABLE_COMPRESSION",
    "OPT_RECONNECT",
    "ENABLE_LOCAL_INFILE",
    "CONNECT_TIMEOUT",
    "MYSQL_CONNECT_TIMEOUT",
    "RW_TIMEOUT",
    "MYSQL_RW_TIMEOUT",
];
const NO_TLS: &str = "is not read here: connections to MySQL are not encrypted; use a tunnel";

pub(super) const KIND: SourceKind = SourceKind {
    takes_collections: true,
    complete: server::sort_replicas,
    ignored_of_collections: &["ON_DUPLICATE_CLAUSE", "REPLACE_QUERY", "MYSQL_DATATYPES_SUPPORT_LEVEL"],
    ..SourceKind::new("MYSQL", &[SERVER, REPLICAS, SELECT, UPDATES], describe, open)
        .ignoring(&[
            "INVALIDATE_QUERY",
            "DONT_CHECK_UPDATE_TIME",
            "PRIORITY",
            "BACKGROUND_RECONNECT",
            "CLOSE_CONNECTION",
            "SHARE_CONNECTION",
            "FAIL_ON_CONNECTION_LOSS",
            "ENABLE_COMPRESSION",
            "OPT_RECONNECT",
            "ENABLE_LOCAL_INFILE",
            "CONNECT_TIMEOUT",
            "MYSQL_CONNECT_TIMEOUT",
            "RW_TIMEOUT",
            "MYSQL_RW_TIMEOUT",
            "CONNECTION_POOL_SIZE",
            "CONNECTION_MAX_TRIES",
            "CONNECTION_WAIT_TIMEOUT",
            "CONNECTION_AUTO_CLOSE",
            "READ_WRITE_TIMEOUT",
        ])
        .refusing(&[
            server::NO_ADDRESSES,
            ("SOCKET", "is not read here; give HOST and PORT"),
            ("SSL_MODE", NO_TLS),
            ("SSL_CA", NO_TLS),
            ("SSL_CERT", NO_TLS),
            ("SSL_KEY", NO_TLS),
        ])
};

fn describe(values: &Values) -> String {
    format!("MySQL: {}.{}", values.text("DB"), select::describe_with_filter(values))
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let Opening { structure, timeout, environment, .. } = opening;
    let most = environment.answer_bytes_max;
    let select = Select::of(values);
    let connect = move |one: &Server| Mysql::connect(one, &select, &structure, timeout, most);
    Ok(replicas::first(Server::all(values), connect))
}
