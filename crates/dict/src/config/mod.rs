//! SOURCE(..) and LAYOUT(..): one tree of names and values, whether DDL or XML wrote it.

mod layout;
mod node;
mod source;

pub use layout::{Expired, KeyForm, Layout, SsdSettings, Storage, UpdateSettings};
pub use source::{
    ChunkHeader, ExecutableConfig, Execution, Format, KeyEcho, PostgresConfig, Select, SourceConfig,
    SqliteConfig,
};

pub(crate) use node::{Node, Value};
