//! SOURCE(..) and LAYOUT(..): one tree of names and values, whether DDL or XML wrote it.

mod collections;
mod layout;
mod node;
mod parameter;
mod range;
mod update;
mod values;
mod whole;

pub use collections::{Collection, Collections};
pub use layout::{KeyForm, Layout, SsdSettings, Storage};
pub use range::{NullBounds, Overlap, RangeSettings};
pub use update::{Expired, UpdateSettings};
pub use whole::{KeyAccess, PolygonKey, PolygonName, WholeForm};

pub(crate) use node::{Node, Value};
pub(crate) use parameter::{Identity, Parameter, Parameters, Printed, ReadText, ValueType};
pub(crate) use values::{Values, shown};

/// What is shown in place of a secret.
pub(crate) const HIDDEN: &str = "[HIDDEN]";
