//! Memory for some blocks: of the RAM tier's file, where there is one, so that entries and blocks share its pages.

use crate::memory::shared::{Arena, Extent};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Memory for some blocks. What it holds does not outlive the process: flash has it.
pub(super) enum Slab {
    Own(Box<[u8]>),
    /// Without an entry in the file's directory.
    Shared(Extent),
}

impl Slab {
    /// Of so many bytes or some more, in memory of the process's own where the file has no room.
    pub fn new(arena: Option<&Arc<Arena>>, bytes: usize) -> Self {
        match arena.and_then(|arena| arena.take(bytes)) {
            Some(extent) => Self::Shared(extent),
            None => Self::Own(vec![0; bytes].into()),
        }
    }

    /// Gives the memory back.
    pub fn release(self) {
        if let Self::Shared(extent) = self {
            let arena = Arc::clone(extent.arena());
            arena.give_back(extent);
        }
    }
}

impl Deref for Slab {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(extent) => extent,
        }
    }
}

impl DerefMut for Slab {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(extent) => extent,
        }
    }
}
