//! The state that one thread keeps between lookups.

use super::long_reads::LongReads;
use super::parallel::Ahead;
use crate::lookup::Workspace;
use granary_log::Engine;

/// The state of one reading thread: a ring with its buffers, and a workspace for small batches.
#[derive(Default)]
pub struct Io {
    pub(crate) reads: granary_log::Io,
    /// The thread's own workspace; `None`: it is in use, or not yet made.
    pub(super) workspace: Option<Box<Workspace>>,
    /// Entries over several blocks that are being read.
    pub(crate) long: LongReads,
    /// Reads of large batches that begin early.
    pub(super) ahead: Ahead,
}

impl Io {
    /// An `Io` with the best engine this machine allows.
    pub fn new() -> Self {
        Self::default()
    }

    /// An `Io` with `engine`, or the next best.
    pub fn with_engine(engine: Engine) -> Self {
        Self { reads: granary_log::Io::with_engine(engine), ..Self::default() }
    }

    /// The engine that reads go through.
    pub fn engine(&mut self) -> Engine {
        self.reads.engine()
    }
}
