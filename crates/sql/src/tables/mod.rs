//! Tables that are not dictionaries.

pub mod files;
pub mod keyed_parquet;
pub mod local;
pub mod numbers;
pub mod piped;
pub mod provider;
pub mod scan;
pub mod session_tables;
mod text;
