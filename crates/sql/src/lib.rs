//! Granary's SQL: ClickHouse's dialect over dictionaries and tables, and output formats.
//!
//! The entry point is [`Session`]: it splits text into statements and answers each with a stream of record batches.
//! [`format`] writes such streams as ClickHouse would.

#![forbid(unsafe_code)]

mod catalogue;
mod commands;
mod dictionary_joins;
mod engine;
pub mod format;
mod functions;
pub mod limits;
mod memory;
mod output;
mod own_tables;
mod query;
mod rights;
mod session;
mod session_scope;
mod session_settings;
mod settings;
mod tables;
mod views;

pub use catalogue::FolderLock;
pub use datafusion::arrow;
pub use engine::give_way;
pub use granary_dialect::statement::{Statement, split};
pub use granary_dialect::{Error, Result};
pub use limits::STACK_BYTES;
pub use memory::MemoryOptions;
pub use output::{Output, Progress, Written};
pub use rights::{Access, Rights};
pub use session::{Options, Session};
pub use settings::Settings;
pub use tables::files::InputFormat;
