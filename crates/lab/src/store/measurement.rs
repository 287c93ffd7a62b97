//! What the process of one measurement is asked and what it prints, in JSON.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a store holds and where it lies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Contents {
    /// The store's folder.
    pub folder: PathBuf,
    /// The number of keys.
    pub keys: u64,
    /// Bytes of each value.
    pub value_bytes: u64,
    /// Whether keys are put in their order, not at random.
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
    /// They begin cold.
    Cold,
    /// So many operations of the workload.
    Operations(u64),
    /// Each key that the workload may read, once, in scattered order.
    Pass,
    /// The very operations that are measured, so that all keys have been read; Granary only.
    Rehearsal,
}

/// One measurement: what is read, and with which caches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reading {
    /// The workload's name.
    pub workload: String,
    /// Bytes of the cache in RAM: the block cache of LevelDB and RocksDB, Granary's RAM tier.
    pub cache_bytes: u64,
    /// Bytes of RocksDB's row cache.
    pub row_cache_bytes: u64,
    /// Granary's RAM tier: percent of it that are for blocks; `None`: it divides itself.
    pub blocks_percent: Option<u8>,
    /// Operations, of each phase.
    pub operations: u64,
    /// What is read before the measurement, many keys at a time.
    pub warm_up: WarmUp,
    /// Keys that are known at once and asked for together; 1: one after the other.
    pub keys_at_once: u64,
    /// The most seconds that a warm-up, and a window, take in a peer; `None`: as long as they take.
    pub seconds_max: Option<u64>,
    /// Single reads of the device by themselves, spread evenly between the operations; Granary only.
    pub device_reads: u32,
    /// Parts of a phase that are reported one by one.
    pub windows: u64,
    /// The seed of the stream of keys.
    pub seed: u64,
}

impl Reading {
    /// After how many operations the device is read once by itself; `None`: it is not.
    pub fn operations_per_device_read(&self) -> Option<u64> {
        (self.device_reads > 0).then(|| (self.operations / u64::from(self.device_reads)).max(1))
    }
}

/// What Granary's process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The store.
    pub contents: Contents,
    /// What to measure; `None`: the store is to be loaded.
    pub reading: Option<Reading>,
}

/// What came of loading.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// Keys that are there.
    pub keys: u64,
    /// Bytes on the device.
    pub disk_bytes: u64,
    /// The time it took.
    pub seconds: f64,
}

/// A part of a phase: microseconds of its operations, reads of the device where they are counted, bytes of these.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Window(pub f64, pub Option<u64>, pub u64);

/// What one workload did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// The workload.
    pub name: String,
    /// Operations.
    pub operations: u64,
    /// The mean time of an operation.
    pub mean_us: f64,
    /// Its median; `None` where single operations are not timed.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// Its 99th percentile.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// Keys that were found, with their values as they were put.
    pub hits: u64,
    /// Reads of the device, where they are counted.
    pub reads: Option<u64>,
    /// Bytes that the process had the device read.
    pub read_bytes: u64,
    /// Its parts.
    pub windows: Vec<Window>,
}

impl Phase {
    /// Reads of the device for each operation; NaN: they are not counted.
    pub fn reads_per_operation(&self) -> f64 {
        self.reads.map_or(f64::NAN, |reads| reads as f64 / self.operations as f64)
    }
}

/// What a process measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// One workload, or one after the other.
    pub phases: Vec<Phase>,
    /// The most RAM that the process had, in bytes.
    pub memory_bytes: u64,
    /// Granary: the mean time of a single read of a block from its file, between operations of the workload.
    #[serde(default)]
    pub device_us: Option<f64>,
    /// Granary: of the bytes of the RAM tier, those of blocks at the end of each phase.
    #[serde(default)]
    pub block_bytes: Vec<u64>,
}

/// Times of operations, of which there may be many.
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
