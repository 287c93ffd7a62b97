//! The memcached server and the volumes of the same process, as the dashboard and `/metrics` see them.

use granary_metrics::Latency;
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

/// How long something takes, as counted up to one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyFigure {
    /// The name of what takes so long, such as `read`.
    pub name: &'static str,
    /// From when to when the time is measured, in a sentence.
    pub help: &'static str,
    /// The latencies.
    pub latency: Latency,
}

/// The figures of a volume at one moment.
#[derive(Clone, Debug)]
pub struct VolumeFigures {
    /// The volume's name.
    pub name: String,
    /// Its counters and gauges.
    pub figures: Vec<Figure>,
    /// Its latencies.
    pub latencies: Vec<LatencyFigure>,
}

/// Volumes that are served over NBD beside HTTP.
#[derive(Clone)]
pub struct Volumes {
    /// Where they are served.
    pub address: String,
    /// Their figures now: of each volume the same ones each time.
    pub figures: Arc<dyn Fn() -> Vec<VolumeFigures> + Send + Sync>,
}

impl fmt::Debug for Volumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volumes").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What is shown beside dictionaries.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// The memcached server.
    pub memcached: Option<Memcached>,
    /// The volumes.
    pub volumes: Option<Volumes>,
}
