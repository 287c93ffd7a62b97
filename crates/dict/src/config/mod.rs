//! SOURCE(..) and LAYOUT(..): one tree of names and values, whether DDL or XML wrote it.

mod layout;
mod node;
mod source;

pub use layout::{Expired, KeyForm, Layout, SsdSettings, Storage, UpdateSettings};
pub use source::{
    ChunkHeader, ClickhouseConfig, Credentials, Encryption, ExecutableConfig, ExecutablePoolConfig,
    Execution, FileConfig, Format, Header, HttpConfig, KeyEcho, MysqlConfig, PostgresConfig, RedisConfig,
    RedisStorage, Select, Server, SourceConfig, SqliteConfig, Updates,
};

pub(crate) use node::{Node, Value};
pub(crate) use source::CURRENT_DATABASE;
