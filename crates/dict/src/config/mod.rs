//! SOURCE(..) and LAYOUT(..): one tree of names and values, whether DDL or XML wrote it.

mod collections;
mod full_load;
mod layout;
mod node;
mod parameter;
mod range;
mod update;
mod values;

pub use collections::{Collection, Collections};
pub use full_load::{FullLoadLayout, KeyAccess, PolygonKey, PolygonName};
pub use layout::{KeyForm, Layout, LayoutKind, SsdSettings};
pub use range::{NullBounds, Overlap, RangeSettings};
pub use update::{Expired, UpdateSettings};

pub(crate) use node::{Node, Value};
pub(crate) use parameter::{Identity, Parameter, Parameters, Printed, ReadText, ValueType};
pub(crate) use values::{Values, shown};

/// Shown in place of a secret.
pub(crate) const HIDDEN: &str = "[HIDDEN]";
