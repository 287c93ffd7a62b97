//! SOURCE(..) and LAYOUT(..): one tree of names and values, whether DDL or XML wrote it.

mod collections;
mod layout;
mod node;
mod range;
mod source;
mod update;
mod whole;

pub use collections::{Collection, Collections};
pub use layout::{KeyForm, Layout, SsdSettings, Storage};
pub use source::{
    Authorities, ChunkHeader, ClickhouseConfig, Credentials, Encryption, ExecutableConfig,
    ExecutablePoolConfig, Execution, FileConfig, FileFormat, Format, Header, HttpConfig, JsonFormat, JsonRow,
    JsonValues, KeyEcho, MongodbConfig, MongodbPlace, MysqlConfig, NamedSource, PostgresConfig, PostgresTls,
    RedisConfig, RedisStorage, Replica, Select, Server, SourceConfig, SqliteConfig, SslMode, Updates,
    YamlConfig,
};

pub use range::{NullBounds, Overlap, RangeSettings};
pub use update::{Expired, UpdateSettings};
pub use whole::{KeyAccess, PolygonKey, PolygonName, WholeForm};

pub(crate) use node::{Node, Value};
pub(crate) use source::{CURRENT_DATABASE, shown_url};

/// What is shown in place of a secret.
pub(crate) const HIDDEN: &str = "[HIDDEN]";
