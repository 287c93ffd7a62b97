//! What Granary's studies share: workloads, interleaved measurements, peers, tables and plots.

#![forbid(unsafe_code)]

pub mod compression;
mod engine;
mod fio;
#[doc(hidden)]
pub mod fuzzing;
mod load;
mod measure;
mod memory_limit;
pub mod model;
mod peers;
mod plot;
pub mod remote;
mod report;
mod space;
pub mod store;
pub mod trace;
mod workload;

pub use engine::{EngineRun, Reopening, block_reads, reopening, write_until_killed};
pub use fio::{FioFigures, FioJob, FioPattern, FioTarget};
pub use granary_cache::OpenError;
pub use load::{Asking, Items, Load, LoadFigures};
pub use measure::{Samples, interleave};
pub use memory_limit::MemoryLimit;
pub use peers::{ClickHouse, Fio, PeerError, fio_random_reads};
pub use plot::{PlotError, bars};
pub use report::Report;
pub use space::{OBJECT_SIZES, ObjectSize, SpaceUse, space_use};
pub use workload::Skewed;
