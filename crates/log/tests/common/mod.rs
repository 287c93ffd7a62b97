//! A log for tests that gives its blocks no meaning.

#![allow(dead_code, unused_imports, reason = "each test uses its part")]

pub mod options;
pub mod random;
pub mod skip;

use granary_log::{Engine, Framing, Geometry, Io, Log, Options, SealedBlocks, SegmentId, SummarySource};
pub use options::options;
use std::ops::Range;

/// Segments without summaries, of which recovery finds none.
#[derive(Clone, Copy)]
pub struct Unframed;

impl Framing for Unframed {
    type Builder = usize;
    type Summary = (u64, u64);

    fn begin(&self, _: &SegmentId) -> usize {
        0
    }
    fn bytes_allocated(_: &usize) -> usize {
        0
    }
    fn seal(&self, id: &SegmentId, _: &mut usize, _: &mut [u8]) -> SealedBlocks {
        SealedBlocks { data: 0..id.geometry.blocks_per_segment() as usize, summary: 0..0 }
    }
    fn used(&self, _: &Geometry, builder: &usize) -> [Range<usize>; 2] {
        [0..*builder, 0..0]
    }
    fn summarize(&self, id: &SegmentId, _: &usize) -> (u64, u64) {
        (id.sequence, id.first_block)
    }
    fn position(summary: &(u64, u64)) -> (u64, u64) {
        *summary
    }
    fn read(&self, _: &SummarySource<'_>, slots: Range<u64>) -> Vec<Option<(u64, u64)>> {
        slots.map(|_| None).collect()
    }
    fn sequence_of_block(&self, _: &SummarySource<'_>, _: u64, _: &[u8]) -> Option<u64> {
        None
    }
}

pub fn open(options: &Options) -> Result<Log<Unframed>, granary_log::OpenError> {
    Log::open(Unframed, options).map(|(log, _)| log)
}

pub fn engines() -> [Engine; 3] {
    if Io::with_engine(Engine::Ring).engine() != Engine::Ring {
        skip::skipped("no io_uring: its reads are those of the thread pool");
    }
    [Engine::Ring, Engine::Pool, Engine::Plain]
}
