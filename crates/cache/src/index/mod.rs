//! Hash -> block: 4 to 5 bytes an entry of a full cache. See docs/index.md.

mod bits;
mod bucket;
mod collisions;
mod dealing;
mod divisor;
mod placing;
mod shape;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use collisions::CollisionFilter;
pub(crate) use shape::{Capacity, Growth};
pub(crate) use table::Table;
