//! Places by number.

use granary_volume::map::Place;

/// The place of block `block` of the log.
pub fn place(block: u32) -> Place {
    Place::of_block(block).unwrap()
}
