//! The memcached server of the same process, as the dashboard and `/metrics` see it.

use std::fmt;
use std::sync::Arc;

/// Whether a figure only rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It does, until it begins anew.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// A figure at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The name, such as `get_hits`.
    pub name: &'static str,
    /// Whether it only rises.
    pub kind: Kind,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// How much it is.
    pub value: u64,
}

/// A memcached server that runs beside HTTP.
#[derive(Clone)]
pub struct Memcached {
    /// Where it listens.
    pub address: String,
    /// Its figures now: each time the same ones, or none once it has stopped.
    pub figures: Arc<dyn Fn() -> Vec<Figure> + Send + Sync>,
}

impl fmt::Debug for Memcached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memcached").field("address", &self.address).finish_non_exhaustive()
    }
}
