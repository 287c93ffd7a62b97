//! SOURCE(..) and LAYOUT(..): one tree of names and values, whether DDL or XML wrote it.

mod layout;
mod node;
mod source;
mod update;

pub use layout::{KeyForm, Layout, SsdSettings, Storage};
pub use source::{
    ChunkHeader, ClickhouseConfig, Credentials, Encryption, ExecutableConfig, ExecutablePoolConfig,
    Execution, FileConfig, Format, Header, HttpConfig, KeyEcho, MysqlConfig, PostgresConfig, RedisConfig,
    RedisStorage, Select, Server, SourceConfig, SqliteConfig, Updates,
};

pub use update::{Expired, UpdateSettings};

pub(crate) use node::{Node, Value};
pub(crate) use source::CURRENT_DATABASE;
