//! SOURCE(..): where rows come from.

mod clickhouse;
mod executable;
mod executable_pool;
mod file;
mod format;
mod http;
mod mongodb;
mod mongodb_uri;
mod mysql;
mod named;
mod postgres;
mod redis;
mod select;
mod server;
mod sqlite;
mod tls;
mod yaml;

pub(crate) use clickhouse::CURRENT_DATABASE;
pub use clickhouse::{ClickhouseConfig, Encryption};
pub use executable::{ExecutableConfig, Execution};
pub use executable_pool::ExecutablePoolConfig;
pub use file::{FileConfig, FileFormat};
pub use format::{ChunkHeader, Format, JsonFormat, JsonRow, JsonValues, KeyEcho};
pub(crate) use http::shown_url;
pub use http::{Credentials, Header, HttpConfig};
pub use mongodb::{MongodbConfig, MongodbPlace};
pub use mysql::MysqlConfig;
pub use named::NamedSource;
pub use postgres::PostgresConfig;
pub use redis::{RedisConfig, RedisStorage};
pub use select::{Select, Updates};
use server::Written;
pub use server::{Replica, Server};
pub use sqlite::SqliteConfig;
pub use tls::{Authorities, PostgresTls, SslMode};
pub use yaml::YamlConfig;

use super::collections::Collections;
use super::node::{Node, Value};
use crate::definition::Structure;
use crate::error::{Code, DictError};

/// A source and its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// A database file.
    Sqlite(SqliteConfig),
    /// A PostgreSQL server.
    Postgres(PostgresConfig),
    /// A MySQL or MariaDB server.
    Mysql(MysqlConfig),
    /// A ClickHouse server.
    Clickhouse(ClickhouseConfig),
    /// A server that speaks HTTP.
    Http(HttpConfig),
    /// A Redis server.
    Redis(RedisConfig),
    /// A MongoDB server, or several that have the same.
    Mongodb(MongodbConfig),
    /// A program.
    Executable(ExecutableConfig),
    /// Programs that stay.
    ExecutablePool(ExecutablePoolConfig),
    /// A file of rows.
    File(FileConfig),
    /// A file of regular expressions in each other.
    Yaml(YamlConfig),
    /// One of these, but for what a named collection has.
    Named(NamedSource),
}

const ALLOWED: &str = "SQLITE, POSTGRESQL, MYSQL, CLICKHOUSE, HTTP, REDIS, MONGODB, EXECUTABLE, EXECUTABLE_POOL, FILE, \
     YAMLREGEXPTREE";

/// What each source knows of its own settings.
trait Kind {
    /// As DDL names it.
    fn name(&self) -> &'static str;

    /// The settings as DDL writes them; `hidden` stands in place of secrets if given.
    fn nodes(&self, hidden: Option<&str>) -> Vec<Node>;

    /// What `system.dictionaries` shows as the source; no secrets.
    fn describe(&self) -> String;

    /// Checks the source against the columns it has to give.
    fn validate(&self, structure: &Structure) -> Result<(), DictError>;
}

impl SourceConfig {
    /// Reads the one element inside SOURCE(..) or `<source>`.
    pub(crate) fn from_node(node: &Node) -> Result<SourceConfig, DictError> {
        if let Some(named) = NamedSource::take(node) {
            return Ok(SourceConfig::Named(named));
        }
        let node = node.plainly_named();
        let nodes = node.settings("SOURCE")?;
        match node.name.as_str() {
            "SQLITE" => SqliteConfig::take(nodes).map(SourceConfig::Sqlite),
            "POSTGRESQL" => PostgresConfig::take(nodes).map(SourceConfig::Postgres),
            "MYSQL" => MysqlConfig::take(nodes).map(SourceConfig::Mysql),
            "CLICKHOUSE" => ClickhouseConfig::take(nodes).map(SourceConfig::Clickhouse),
            "HTTP" => HttpConfig::take(nodes).map(SourceConfig::Http),
            "EXECUTABLE" => ExecutableConfig::take(nodes).map(SourceConfig::Executable),
            "REDIS" => RedisConfig::take(nodes).map(SourceConfig::Redis),
            "MONGODB" => MongodbConfig::take(nodes).map(SourceConfig::Mongodb),
            "EXECUTABLE_POOL" => ExecutablePoolConfig::take(nodes).map(SourceConfig::ExecutablePool),
            "FILE" => FileConfig::take(nodes).map(SourceConfig::File),
            "YAMLREGEXPTREE" => YamlConfig::take(nodes).map(SourceConfig::Yaml),
            "NULL" => Err(DictError::new(
                Code::UnsupportedMethod,
                format!("SOURCE: NULL has no rows to ask for by key; use one of {ALLOWED}"),
            )),
            other => Err(DictError::new(
                Code::UnknownElementInConfig,
                format!("SOURCE: unknown dictionary source type {other}; allowed are {ALLOWED}"),
            )),
        }
    }

    fn kind(&self) -> &dyn Kind {
        match self {
            SourceConfig::Sqlite(config) => config,
            SourceConfig::Postgres(config) => config,
            SourceConfig::Mysql(config) => config,
            SourceConfig::Clickhouse(config) => config,
            SourceConfig::Http(config) => config,
            SourceConfig::Redis(config) => config,
            SourceConfig::Mongodb(config) => config,
            SourceConfig::Executable(config) => config,
            SourceConfig::ExecutablePool(config) => config,
            SourceConfig::File(config) => config,
            SourceConfig::Yaml(config) => config,
            SourceConfig::Named(named) => named,
        }
    }

    /// Completes what names a collection.
    ///
    /// # Errors
    /// `NAMED_COLLECTION_DOESNT_EXIST`, and what is wrong with the parameters.
    pub(crate) fn fill(&mut self, collections: &Collections) -> Result<(), DictError> {
        match self {
            SourceConfig::Named(named) => named.fill(collections),
            _ => Ok(()),
        }
    }

    /// The source itself, whoever says its parameters; what is not complete stays what it is.
    pub(crate) fn complete(&self) -> &SourceConfig {
        match self {
            SourceConfig::Named(named) => named.complete().unwrap_or(self),
            _ => self,
        }
    }

    /// The settings as DDL writes them; `hidden` stands in place of secrets if given.
    pub(crate) fn to_node(&self, hidden: Option<&str>) -> Node {
        Node { name: self.kind().name().to_string(), value: Value::Group(self.kind().nodes(hidden)) }
    }

    /// What `system.dictionaries` shows as the source; no secrets.
    pub fn describe(&self) -> String {
        self.kind().describe()
    }

    /// Checks the source against the columns it has to give.
    pub fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        self.kind().validate(structure)
    }

    /// What it reads, if it is asked in SQL.
    pub fn select(&self) -> Option<&Select> {
        match self.complete() {
            SourceConfig::Sqlite(config) => Some(&config.select),
            SourceConfig::Postgres(config) => Some(&config.select),
            SourceConfig::Mysql(config) => Some(&config.select),
            SourceConfig::Clickhouse(config) => Some(&config.select),
            SourceConfig::Http(_)
            | SourceConfig::Redis(_)
            | SourceConfig::Mongodb(_)
            | SourceConfig::Executable(_)
            | SourceConfig::ExecutablePool(_)
            | SourceConfig::File(_)
            | SourceConfig::Yaml(_)
            | SourceConfig::Named(_) => None,
        }
    }

    /// How rows that were changed are told from others, if it says so.
    pub fn updates(&self) -> Option<&Updates> {
        match self.complete() {
            SourceConfig::Mongodb(config) => config.updates.as_ref(),
            _ => self.select()?.updates.as_ref(),
        }
    }

    /// Whether it reads this table of the process that the dictionary is in.
    pub(crate) fn reads_own_table(&self, database: &str, name: &str) -> bool {
        match self.complete() {
            SourceConfig::Clickhouse(config) => {
                config.is_own()
                    && config.server.database == database
                    && config.select.table.as_deref() == Some(name)
            }
            _ => false,
        }
    }

    /// Says which database a source means that names the one its dictionary is in.
    pub(crate) fn settle(&mut self, database: &str) {
        match self {
            SourceConfig::Clickhouse(config) if config.server.database == CURRENT_DATABASE => {
                config.server.database = database.to_string();
            }
            SourceConfig::Named(named) => named.settle(database),
            _ => {}
        }
    }

    /// Has all that its server has written down, also what nobody wrote.
    pub(crate) fn spell_out(&mut self) {
        if let Some(server) = self.server() {
            server.written = Written::ALL;
        }
    }

    /// Has the database written down that a source means which names none: it stays that, wherever the dictionary goes.
    pub(crate) fn pin_database(&mut self) {
        if let Some(server) = self.server() {
            server.written.database = true;
        }
    }

    fn server(&mut self) -> Option<&mut Server> {
        match self {
            SourceConfig::Postgres(config) => Some(&mut config.server),
            SourceConfig::Mysql(config) => Some(&mut config.server),
            SourceConfig::Clickhouse(config) => Some(&mut config.server),
            _ => None,
        }
    }

    /// The same source, asked as nobody: what rows it has does not depend on who asks.
    pub(crate) fn anonymous(&self) -> SourceConfig {
        let mut anonymous = self.complete().clone();
        match &mut anonymous {
            SourceConfig::Postgres(config) => *config = config.anonymous(),
            SourceConfig::Mysql(config) => *config = config.anonymous(),
            SourceConfig::Clickhouse(config) => config.server = config.server.anonymous(),
            SourceConfig::Http(config) => *config = config.anonymous(),
            SourceConfig::Redis(config) => *config = config.anonymous(),
            SourceConfig::Mongodb(config) => *config = config.anonymous(),
            SourceConfig::Sqlite(_)
            | SourceConfig::Executable(_)
            | SourceConfig::ExecutablePool(_)
            | SourceConfig::File(_)
            | SourceConfig::Yaml(_)
            | SourceConfig::Named(_) => {}
        }
        anonymous
    }
}

/// Sources that are not asked in SQL compute nothing.
fn no_expressions(source: &str, structure: &Structure) -> Result<(), DictError> {
    match structure.attributes.iter().find(|attribute| attribute.expression.is_some()) {
        None => Ok(()),
        Some(attribute) => Err(DictError::new(
            Code::UnsupportedMethod,
            format!(
                "Dictionary source of type `{source}` does not support attribute expressions (attribute {})",
                attribute.name
            ),
        )),
    }
}
