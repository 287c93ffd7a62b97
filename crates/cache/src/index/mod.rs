//! Hash -> block: under 5 bytes an entry. See docs/index.md.

mod bucket;
mod shape;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use shape::{Capacity, Growth};
pub(crate) use table::Table;
