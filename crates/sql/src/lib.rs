//! Granary's SQL: DataFusion with ClickHouse's dialect, functions, dictionaries and output formats.
//!
//! The one way in is [`Session`]: it cuts text into statements and answers each with a stream of record
//! batches. [`format`] writes such streams as ClickHouse would.

mod catalogue;
mod commands;
mod engine;
mod error;
pub mod format;
mod functions;
pub mod limits;
mod memory;
mod output;
mod own_tables;
mod plan;
mod query;
mod reword;
mod rewrite;
mod rights;
mod session;
mod settings;
mod statement;
mod tables;
mod types;
mod views;

pub use datafusion::arrow;
pub use engine::give_way;
pub use error::{Error, Result};
pub use functions::{int_hash_32, int_hash_64};
pub use limits::STACK_BYTES;
pub use memory::MemoryOptions;
pub use output::{Output, Progress, Written};
pub use rights::{Access, Rights};
pub use session::{Executables, Options, Session};
pub use settings::Settings;
pub use statement::Statement;
pub use tables::files::InputFormat;
