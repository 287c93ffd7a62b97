//! Granary's SQL: DataFusion with ClickHouse's dialect, functions, dictionaries and output formats.
//!
//! The one way in is [`Session`]: it takes text, splits it into statements and answers each with a stream of
//! record batches. [`format`] writes such streams as ClickHouse would.

pub mod error;
pub mod format;
pub mod limits;
pub mod types;

pub use datafusion::arrow;
pub use error::{Error, Result};
