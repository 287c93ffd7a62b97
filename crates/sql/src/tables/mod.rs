//! Tables that are not dictionaries.

pub mod files;
pub mod numbers;
