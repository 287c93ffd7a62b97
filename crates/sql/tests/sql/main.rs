//! Sessions, from a text to what an output format makes of the answer. One program: what it has of DataFusion takes a
//! minute to compile.

mod conformance;
mod empty_lambdas;
mod errors;
mod formats;
mod parquet_files;
mod progress;
mod slt;
