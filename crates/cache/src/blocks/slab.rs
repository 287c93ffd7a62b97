//! Memory for some blocks, from the RAM tier's file if there is one, so that entries and blocks share its pages.

use crate::memory::shared::{Arena, UnitRange};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Memory for some blocks. They need not outlive the process: flash has them.
pub(super) enum Slab {
    Own(Box<[u8]>),
    /// In the file, without an entry in its directory.
    Shared(UnitRange),
}

impl Slab {
    /// A slab of at least `bytes` bytes, in private memory if the file has no room.
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
