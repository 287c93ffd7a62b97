//! The figures of the memcached server and the volumes of this process, for the dashboard and `/metrics`.

use granary_metrics::Latency;
use std::fmt;
use std::sync::Arc;

/// Whether a figure only rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, until a restart.
    Counter,
    /// It rises and falls.
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
    /// Its value.
    pub value: u64,
}

/// A memcached server that runs beside HTTP.
#[derive(Clone)]
pub struct Memcached {
    /// Where it listens.
    pub address: String,
    /// Returns its current figures: the same ones each time, or none once it has stopped.
    pub figures: Arc<dyn Fn() -> Vec<Figure> + Send + Sync>,
}

impl fmt::Debug for Memcached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memcached").field("address", &self.address).finish_non_exhaustive()
    }
}

/// How long something takes, counted up to one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyFigure {
    /// The name of what is timed, such as `read`.
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
    /// Returns their current figures: of each volume the same ones each time.
    pub figures: Arc<dyn Fn() -> Vec<VolumeFigures> + Send + Sync>,
}

impl fmt::Debug for Volumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volumes").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Servers of this process that the dashboard shows beside dictionaries.
#[derive(Clone, Debug, Default)]
pub struct SideServers {
    /// The memcached server.
    pub memcached: Option<Memcached>,
    /// The volumes.
    pub volumes: Option<Volumes>,
}
