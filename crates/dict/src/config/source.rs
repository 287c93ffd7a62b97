//! SOURCE(..): where rows come from.

use super::node::{Node, Settings, Value};
use crate::definition::Structure;
use crate::error::{Code, DictError};

/// A source and its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// A database file.
    Sqlite(SqliteConfig),
    /// A PostgreSQL server.
    Postgres(PostgresConfig),
    /// A program.
    Executable(ExecutableConfig),
}

/// SQLITE(PATH '..' TABLE '..' | QUERY '..' [WHERE '..']).
#[derive(Clone, Debug, PartialEq)]
pub struct SqliteConfig {
    /// PATH, as written; `Environment::resolve` says where it leads.
    pub path: String,
    /// What rows are selected from.
    pub select: Select,
}

/// POSTGRESQL(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' [SCHEMA '..'] TABLE '..' | QUERY '..' [WHERE '..']).
#[derive(Clone, PartialEq)]
pub struct PostgresConfig {
    /// HOST, `localhost` if not given.
    pub host: String,
    /// PORT, 5432 if not given.
    pub port: u16,
    /// USER, `postgres` if not given.
    pub user: String,
    /// PASSWORD; empty: none.
    pub password: String,
    /// DB, `postgres` if not given.
    pub database: String,
    /// SCHEMA; `None`: the server's search path.
    pub schema: Option<String>,
    /// What rows are selected from.
    pub select: Select,
}

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

/// EXECUTABLE(COMMAND '..' FORMAT f ..): a program that reads keys and writes rows.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutableConfig {
    /// COMMAND.
    pub command: String,
    /// FORMAT of keys and rows.
    pub format: Format,
    /// IMPLICIT_KEY.
    pub key_echo: KeyEcho,
    /// SEND_CHUNK_HEADER.
    pub chunk_header: ChunkHeader,
    /// EXECUTE_DIRECT.
    pub execution: Execution,
}

/// How keys and rows are written on a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `TabSeparated`, `TSV`.
    TabSeparated,
    /// `CSV`.
    Csv,
    /// `JSONEachRow`.
    JsonEachRow,
    /// `RowBinary`.
    RowBinary,
}

/// Whether the rows of a program repeat their keys (IMPLICIT_KEY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEcho {
    /// Key columns, then attributes.
    Repeated,
    /// Attributes only, a row for each key, in the keys' order.
    Implicit,
}

/// Whether a line with the number of keys goes before them (SEND_CHUNK_HEADER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkHeader {
    /// Keys alone.
    None,
    /// The number of keys in decimal digits.
    RowCount,
}

/// How a program is started (EXECUTE_DIRECT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// `sh -c command`.
    Shell,
    /// A file below `<data_dir>/user_scripts`, its arguments cut at blanks.
    Direct,
}

const ALLOWED: &str = "SQLITE, POSTGRESQL, EXECUTABLE";

impl SourceConfig {
    /// Reads the one element inside SOURCE(..) or `<source>`.
    pub(crate) fn from_node(node: &Node) -> Result<SourceConfig, DictError> {
        let parameters = node.settings("SOURCE")?;
        let settings = |allowed| Settings::new("SOURCE", &node.name, parameters, allowed);
        match node.name.as_str() {
            "SQLITE" => {
                let settings = settings(&["PATH", "TABLE", "QUERY", "WHERE"])?;
                Ok(SourceConfig::Sqlite(SqliteConfig {
                    path: settings.required("PATH")?.to_string(),
                    select: Select::take(&settings)?,
                }))
            }
            "POSTGRESQL" => {
                let settings = settings(&[
                    "HOST", "PORT", "USER", "PASSWORD", "DB", "SCHEMA", "TABLE", "QUERY", "WHERE",
                ])?;
                let text = |name, default: &str| -> Result<String, DictError> {
                    Ok(settings.text(name)?.unwrap_or(default).to_string())
                };
                Ok(SourceConfig::Postgres(PostgresConfig {
                    host: text("HOST", "localhost")?,
                    port: settings.number("PORT", 1, 65_535)?.unwrap_or(5432) as u16,
                    user: text("USER", "postgres")?,
                    password: text("PASSWORD", "")?,
                    database: text("DB", "postgres")?,
                    schema: settings.text("SCHEMA")?.filter(|s| !s.is_empty()).map(str::to_string),
                    select: Select::take(&settings)?,
                }))
            }
            "EXECUTABLE" => {
                let settings =
                    settings(&["COMMAND", "FORMAT", "IMPLICIT_KEY", "SEND_CHUNK_HEADER", "EXECUTE_DIRECT"])?;
                Ok(SourceConfig::Executable(ExecutableConfig {
                    command: settings.required("COMMAND")?.to_string(),
                    format: Format::parse(settings.required("FORMAT")?)?,
                    key_echo: if settings.flag("IMPLICIT_KEY")? {
                        KeyEcho::Implicit
                    } else {
                        KeyEcho::Repeated
                    },
                    chunk_header: match settings.flag("SEND_CHUNK_HEADER")? {
                        true => ChunkHeader::RowCount,
                        false => ChunkHeader::None,
                    },
                    execution: match settings.flag("EXECUTE_DIRECT")? {
                        true => Execution::Direct,
                        false => Execution::Shell,
                    },
                }))
            }
            other => Err(DictError::new(
                Code::UnknownElementInConfig,
                format!("SOURCE: unknown dictionary source type {other}; allowed are {ALLOWED}"),
            )),
        }
    }

    /// The settings as DDL writes them; `password` stands in place of the real one if given.
    pub(crate) fn to_node(&self, password: Option<&str>) -> Node {
        let mut nodes = Vec::new();
        let name = match self {
            SourceConfig::Sqlite(sqlite) => {
                nodes.push(Node::text("PATH", &sqlite.path));
                sqlite.select.put(&mut nodes);
                "SQLITE"
            }
            SourceConfig::Postgres(postgres) => {
                nodes.push(Node::text("HOST", &postgres.host));
                nodes.push(Node::text("PORT", postgres.port.to_string()));
                nodes.push(Node::text("USER", &postgres.user));
                if !postgres.password.is_empty() {
                    nodes.push(Node::text("PASSWORD", password.unwrap_or(&postgres.password)));
                }
                nodes.push(Node::text("DB", &postgres.database));
                nodes.extend(postgres.schema.as_ref().map(|schema| Node::text("SCHEMA", schema)));
                postgres.select.put(&mut nodes);
                "POSTGRESQL"
            }
            SourceConfig::Executable(executable) => {
                nodes.push(Node::text("COMMAND", &executable.command));
                nodes.push(Node::text("FORMAT", executable.format.name()));
                let flags = [
                    ("IMPLICIT_KEY", executable.key_echo == KeyEcho::Implicit),
                    ("SEND_CHUNK_HEADER", executable.chunk_header == ChunkHeader::RowCount),
                    ("EXECUTE_DIRECT", executable.execution == Execution::Direct),
                ];
                nodes.extend(flags.iter().filter(|(_, set)| *set).map(|(name, _)| Node::text(name, "1")));
                "EXECUTABLE"
            }
        };
        Node { name: name.to_string(), value: Value::Group(nodes) }
    }

    /// What `system.dictionaries` shows as the source; no secrets.
    pub fn describe(&self) -> String {
        match self {
            SourceConfig::Sqlite(sqlite) => format!("SQLite: {}, {}", sqlite.path, sqlite.select.describe()),
            SourceConfig::Postgres(postgres) => {
                format!("PostgreSQL: {}.{}", postgres.database, postgres.select.describe())
            }
            SourceConfig::Executable(executable) => format!("Executable: {}", executable.command),
        }
    }

    /// Checks the source against the columns it has to give.
    pub fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        match self {
            SourceConfig::Sqlite(sqlite) => sqlite.select.validate("SQLITE"),
            SourceConfig::Postgres(postgres) => postgres.select.validate("POSTGRESQL"),
            SourceConfig::Executable(_) => {
                match structure.attributes.iter().find(|attribute| attribute.expression.is_some()) {
                    None => Ok(()),
                    Some(attribute) => Err(DictError::new(
                        Code::UnsupportedMethod,
                        format!(
                            "Dictionary source of type `executable` does not support attribute expressions (attribute {})",
                            attribute.name
                        ),
                    )),
                }
            }
        }
    }
}

impl Select {
    fn take(settings: &Settings<'_>) -> Result<Select, DictError> {
        let text = |name| -> Result<Option<String>, DictError> {
            Ok(settings.text(name)?.filter(|text| !text.trim().is_empty()).map(str::to_string))
        };
        Ok(Select { table: text("TABLE")?, query: text("QUERY")?, filter: text("WHERE")? })
    }

    fn put(&self, nodes: &mut Vec<Node>) {
        nodes.extend(self.table.as_ref().map(|table| Node::text("TABLE", table)));
        nodes.extend(self.query.as_ref().map(|query| Node::text("QUERY", query)));
        nodes.extend(self.filter.as_ref().map(|filter| Node::text("WHERE", filter)));
    }

    fn describe(&self) -> &str {
        self.table.as_deref().or(self.query.as_deref()).unwrap_or("")
    }

    fn validate(&self, source: &str) -> Result<(), DictError> {
        let problem = match (&self.table, &self.query, &self.filter) {
            (Some(_), None, _) | (None, Some(_), None) => return Ok(()),
            (None, None, _) => "TABLE or QUERY is required",
            (Some(_), Some(_), _) => "TABLE and QUERY cannot be given together",
            (None, Some(_), Some(_)) => "WHERE goes into QUERY itself",
        };
        Err(DictError::bad_arguments(format!("SOURCE({source}): {problem}")))
    }
}

impl Format {
    fn parse(name: &str) -> Result<Format, DictError> {
        match name.to_ascii_lowercase().as_str() {
            "tabseparated" | "tsv" => Ok(Format::TabSeparated),
            "csv" => Ok(Format::Csv),
            "jsoneachrow" => Ok(Format::JsonEachRow),
            "rowbinary" => Ok(Format::RowBinary),
            _ => Err(DictError::new(
                Code::UnknownFormat,
                format!(
                    "SOURCE(EXECUTABLE): unknown FORMAT {name}; allowed are TabSeparated, CSV, JSONEachRow, RowBinary"
                ),
            )),
        }
    }

    /// ClickHouse's name.
    pub fn name(self) -> &'static str {
        match self {
            Format::TabSeparated => "TabSeparated",
            Format::Csv => "CSV",
            Format::JsonEachRow => "JSONEachRow",
            Format::RowBinary => "RowBinary",
        }
    }
}

impl std::fmt::Debug for PostgresConfig {
    /// Without the password, which debug output must not leak.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("database", &self.database)
            .field("schema", &self.schema)
            .field("select", &self.select)
            .finish_non_exhaustive()
    }
}
