//! What several tests need.

use granary_volume::map::{FlatMap, Map, Place};

/// A map of each kind, with its name.
pub fn maps(blocks: u64) -> Vec<(&'static str, Box<dyn Map>)> {
    vec![("flat", Box::new(FlatMap::new(blocks).unwrap()))]
}

/// The place of block `block` of the log.
pub fn place(block: u32) -> Place {
    Place::of_block(block).unwrap()
}
