//! What compression of values is worth: bytes and time of codecs on real values, and the experiment of the study's
//! seed.

mod codec;
mod page;
mod pages;
mod rocksdb;
mod seed;
mod study;
mod values;
mod verdicts;

pub use codec::stored_by_zstd;
pub use study::{CompressionFindings, CompressionStudy, StudyError};
pub use values::Values;

/// Bytes of values together.
fn bytes(values: &[Vec<u8>]) -> usize {
    values.iter().map(Vec::len).sum()
}
