//! Tables that are not dictionaries.

pub mod files;
pub mod given;
pub mod local;
pub mod numbers;
pub mod piped;
mod scan;
mod text;
