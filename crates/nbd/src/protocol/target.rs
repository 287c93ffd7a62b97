//! The chosen export of a connection, with its properties at that time.

use super::wire;
use crate::export::Export;
use crate::limits::{MINIMUM_BLOCK_MAX, PAYLOAD_BYTES_MAX};

/// An export's properties, reported to the client once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub size: u64,
    pub read_only: bool,
    pub minimum_block: u32,
    pub preferred_block: u32,
    /// Structured replies were negotiated.
    pub structured: bool,
    /// The context `base:allocation` was selected.
    pub allocation: bool,
}

impl Target {
    /// # Panics
    /// If the export's block sizes violate the rules of [`Export`].
    pub fn new(export: &dyn Export, structured: bool, allocation: bool) -> Self {
        let (minimum_block, preferred_block) = (export.minimum_block(), export.preferred_block());
        assert!(minimum_block.is_power_of_two() && minimum_block <= MINIMUM_BLOCK_MAX);
        assert!(preferred_block.is_power_of_two() && preferred_block >= minimum_block.max(512));
        assert!(preferred_block <= PAYLOAD_BYTES_MAX);
        let size = export.size();
        Self { size, read_only: export.read_only(), minimum_block, preferred_block, structured, allocation }
    }

    /// The transmission flags.
    pub fn flags(&self) -> u16 {
        let mut flags =
            wire::HAS_FLAGS | wire::SEND_FLUSH | wire::SEND_FUA | wire::CAN_MULTI_CONN | wire::SEND_CACHE;
        flags |= match self.read_only {
            true => wire::READ_ONLY,
            false => wire::SEND_TRIM | wire::SEND_WRITE_ZEROES | wire::SEND_FAST_ZERO,
        };
        if self.structured {
            flags |= wire::SEND_DF;
        }
        flags
    }
}
