//! Request and answer of a measurement's process, in JSON.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Content and place of a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Contents {
    /// The store's folder.
    pub folder: PathBuf,
    /// The number of keys.
    pub keys: u64,
    /// Bytes of each value.
    pub value_bytes: u64,
    /// Whether keys are put in order, not at random.
    pub in_key_order: bool,
    /// Bytes of a block.
    pub block_bytes: u64,
}

impl Contents {
    /// Bytes of keys and values.
    pub fn bytes(&self) -> u64 {
        self.keys * (16 + self.value_bytes)
    }
}

/// How caches are filled before a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarmUp {
    /// Caches begin cold.
    Cold,
    /// By this many operations of the workload.
    Operations(u64),
    /// By one read of each key that the workload may read, in scattered order.
    Pass,
    /// By the operations that will be measured, so that all keys have been read; Granary only.
    Rehearsal,
}

/// One measurement: its workload and caches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reading {
    /// The workload's name.
    pub workload: String,
    /// Bytes of the cache in RAM: the block cache of LevelDB and RocksDB, Granary's RAM tier.
    pub cache_bytes: u64,
    /// Bytes of RocksDB's row cache.
    pub row_cache_bytes: u64,
    /// Percent of Granary's RAM tier for blocks; `None`: it adapts.
    pub blocks_percent: Option<u8>,
    /// Operations per phase.
    pub operations: u64,
    /// How the caches are filled before.
    pub warm_up: WarmUp,
    /// Keys that are known at once and looked up together; 1: one at a time.
    pub keys_at_once: u64,
    /// Maximum seconds of a warm-up, and of a window, in a peer; `None`: unlimited.
    pub seconds_max: Option<u64>,
    /// Separate single reads of the device, spread evenly among the operations; Granary only.
    pub device_reads: u32,
    /// Number of windows of a phase, each reported.
    pub windows: u64,
    /// The seed of the stream of keys.
    pub seed: u64,
}

impl Reading {
    /// Operations between two separate reads of the device; `None`: there are none.
    pub fn operations_per_device_read(&self) -> Option<u64> {
        (self.device_reads > 0).then(|| (self.operations / u64::from(self.device_reads)).max(1))
    }
}

/// A request to Granary's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreRequest {
    /// The store.
    pub contents: Contents,
    /// The measurement; `None`: load the store.
    pub reading: Option<Reading>,
}

/// Results of loading.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// Keys that are in the store.
    pub keys: u64,
    /// Bytes on the device.
    pub disk_bytes: u64,
    /// Seconds that loading took.
    pub seconds: f64,
}

/// A window: microseconds of its operations, reads of the device if they are counted, and bytes read.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Window(pub f64, pub Option<u64>, pub u64);

/// Results of one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// The workload.
    pub name: String,
    /// Operations.
    pub operations: u64,
    /// The mean time of an operation.
    pub mean_us: f64,
    /// The median time; `None`: single operations are not timed.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// The 99th percentile.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// Keys that were found, with the right values.
    pub hits: u64,
    /// Reads of the device, if they are counted.
    pub reads: Option<u64>,
    /// Bytes that the process read from the device.
    pub read_bytes: u64,
    /// The windows.
    pub windows: Vec<Window>,
}

impl Phase {
    /// Reads of the device for each operation; NaN: they are not counted.
    pub fn reads_per_operation(&self) -> f64 {
        self.reads.map_or(f64::NAN, |reads| reads as f64 / self.operations as f64)
    }
}

/// Results of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The workload, or its phases.
    pub phases: Vec<Phase>,
    /// Maximum RAM of the process, in bytes.
    pub memory_bytes: u64,
    /// Granary: the mean time of a separate read of a block from its file, between operations.
    #[serde(default)]
    pub device_us: Option<f64>,
    /// Granary: bytes of the RAM tier used for blocks at the end of each phase.
    #[serde(default)]
    pub block_bytes: Vec<u64>,
}

/// Times of operations.
#[derive(Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Adds a time.
    pub fn push(&mut self, took: std::time::Duration) {
        self.0.push(u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
    }

    /// The median and the 99th percentile in microseconds; `None` without any.
    pub fn percentiles_us(mut self) -> [Option<f64>; 2] {
        self.0.sort_unstable();
        [0.5, 0.99].map(|part| {
            let last = self.0.len().checked_sub(1)?;
            Some(f64::from(self.0[(part * last as f64) as usize]) / 1000.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_driver_is_understood_or_refused() {
        let line = r#"{"phases": [{"name": "zipf", "operations": 4, "mean_us": 2.5, "p50_us": 1, "p99_us": 4.5,
            "hits": 4, "reads": null, "read_bytes": 8192, "windows": [[5, null, 8192], [5.5, 1, 0]]}],
            "memory_bytes": 4096}"#;
        let measured: Measured = serde_json::from_str(line).unwrap();
        assert_eq!((measured.phases[0].windows[1].1, measured.phases[0].p99_us), (Some(1), Some(4.5)));
        assert!(measured.phases[0].reads_per_operation().is_nan());
        assert!(serde_json::from_str::<Measured>(r#"{"phases": []}"#).is_err());
    }
}
