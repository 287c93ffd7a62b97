//! Hash -> block: under 5 bytes an entry. See docs/index.md.

mod shape;
mod table;

pub(crate) use shape::Capacity;
pub(crate) use table::Table;
