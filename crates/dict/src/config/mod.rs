//! SOURCE(..) and LAYOUT(..): one tree of names and values, whether DDL or XML wrote it.

mod collections;
mod layout;
mod node;
mod source;
mod update;

pub use collections::{Collection, Collections};
pub use layout::{KeyForm, Layout, SsdSettings, Storage, WholeForm};
pub use source::{
    Authorities, ChunkHeader, ClickhouseConfig, Credentials, Encryption, ExecutableConfig,
    ExecutablePoolConfig, Execution, FileConfig, Format, Header, HttpConfig, KeyEcho, MysqlConfig,
    NamedSource, PostgresConfig, PostgresTls, RedisConfig, RedisStorage, Select, Server, SourceConfig,
    SqliteConfig, SslMode, Updates,
};

pub use update::{Expired, UpdateSettings};

pub(crate) use node::{Node, Value};
pub(crate) use source::CURRENT_DATABASE;
