//! Maps of each kind.

mod place;

use granary_volume::map::{Map, MapKind};
pub use place::place;

/// A map of each kind, with its name.
pub fn maps(blocks: u64) -> Vec<(&'static str, Box<dyn Map>)> {
    MapKind::ALL.map(|kind| (kind.name(), kind.create(blocks).unwrap())).into()
}
