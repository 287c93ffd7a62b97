//! Sessions, from a text to the bytes of an output format. One program: its part of DataFusion compiles for a minute.

mod bounds;
mod conformance;
mod empty_lambdas;
mod errors;
mod formats;
mod parquet_files;
mod progress;
mod slt;
