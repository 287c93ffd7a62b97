//! Runs the study, part by part.

use super::blocks::Blocks;
use super::contender::{Contender, Programs};
use super::division::Division;
use super::error::StoreError;
use super::large::Large;
use super::measurement::{Contents, Reading, WarmUp};
use super::model::LatencyModel;
use super::run::{Job, Runner};
use super::skewed::SkewedReads;
use super::warm_up::warm_up;
use std::path::Path;

/// Bytes of each value.
pub(super) const VALUE_BYTES: u64 = 100;

/// Maximum seconds of a peer's measurement: LevelDB's maps under a limit take milliseconds for a read, and the mean
/// over this time counts.
pub(super) const PEER_SECONDS_MAX: u64 = 10;

const MB: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// A part of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Block sizes and cache sizes on a small store.
    Blocks,
    /// A store much larger than the caches.
    Large,
    /// Latency, against the prediction from hits and reads of the device.
    Model,
    /// Points, neighbours and a scan one after the other.
    Division,
    /// Skewed point reads.
    Skewed,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 5] = [Self::Blocks, Self::Large, Self::Model, Self::Division, Self::Skewed];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Large => "large",
            Self::Model => "model",
            Self::Division => "division",
            Self::Skewed => "skewed",
        }
    }
}

/// Scale of the study. Sizes of caches are bytes.
#[derive(Clone, Debug)]
pub struct Size {
    /// Whether the runs are too short for the figures to mean anything.
    pub is_quick: bool,
    /// Measurements of each kind; the median counts.
    pub repetitions: u64,
    /// Keys of the small store.
    pub small_keys: u64,
    /// Operations on it.
    pub small_operations: u64,
    /// Its sizes of blocks.
    pub block_bytes: Vec<u64>,
    /// Its caches.
    pub small_caches: Vec<u64>,
    /// Keys of the large store.
    pub large_keys: u64,
    /// Operations on it.
    pub large_operations: u64,
    /// Its caches.
    pub large_caches: Vec<u64>,
    /// Keys of the store of 300 MB.
    pub medium_keys: u64,
    /// Operations on it, for the model and for skewed reads.
    pub medium_operations: u64,
    /// The caches of the model.
    pub model_caches: Vec<u64>,
    /// The cache for skewed reads and for phases.
    pub medium_cache: u64,
    /// Operations of each phase.
    pub phase_operations: u64,
    /// Windows of each phase.
    pub windows: u64,
}

impl Size {
    /// The whole study, with `large_keys` keys in the large store.
    pub fn full(repetitions: u64, large_keys: u64) -> Self {
        Self {
            is_quick: false,
            repetitions,
            small_keys: 1_000_000,
            small_operations: 10_000,
            block_bytes: [1, 2, 4, 8, 16, 32].map(|kib| kib << 10).into(),
            small_caches: [4, 8, 16, 32, 64, 128].map(|mib| mib * MIB).into(),
            large_keys,
            large_operations: 50_000,
            large_caches: [1, 10, 100, 1000].map(|mb| mb * MB).into(),
            medium_keys: 300 * MB / (16 + VALUE_BYTES),
            medium_operations: 200_000,
            model_caches: [8, 16, 32, 64, 128].map(|mib| mib * MIB).into(),
            medium_cache: 32 * MIB,
            phase_operations: 300_000,
            windows: 60,
        }
    }

    /// A minute of it, to check that it works.
    pub fn quick() -> Self {
        Self {
            is_quick: true,
            repetitions: 1,
            small_keys: 20_000,
            small_operations: 500,
            block_bytes: vec![4 << 10, 32 << 10],
            small_caches: vec![4 * MIB, 16 * MIB],
            large_keys: 100_000,
            large_operations: 500,
            large_caches: vec![MB, 10 * MB],
            medium_keys: 100_000,
            medium_operations: 2_000,
            model_caches: [2, 3, 4, 6, 8].map(|mib| mib * MIB).into(),
            medium_cache: 4 * MIB,
            phase_operations: 2_000,
            windows: 10,
        }
    }
}

/// Input and scale of the study.
pub struct StoreStudy<'a> {
    /// The contenders.
    pub programs: &'a Programs,
    /// A folder on the device to measure, which is left empty.
    pub scratch: &'a Path,
    /// How much is measured.
    pub size: Size,
    /// The parts to run.
    pub parts: Vec<Part>,
}

/// Results of the study; `None`: the part was not asked for.
pub struct StoreFindings {
    pub(super) size: Size,
    pub(super) has_peers: bool,
    pub(super) can_limit: bool,
    pub(super) blocks: Option<Blocks>,
    pub(super) large: Option<Large>,
    pub(super) model: Option<LatencyModel>,
    pub(super) division: Option<Division>,
    pub(super) skewed: Option<SkewedReads>,
}

impl StoreStudy<'_> {
    /// Runs the parts; `say` gets a line for each measurement.
    ///
    /// # Errors
    /// Granary fails, or a file operation.
    pub fn run(&self, say: &dyn Fn(&str)) -> Result<StoreFindings, StoreError> {
        let runner = Runner {
            programs: self.programs,
            folder: self.scratch.to_owned(),
            repetitions: self.size.repetitions,
            say,
        };
        let asked = |part: Part| self.parts.contains(&part);
        let size = &self.size;
        Ok(StoreFindings {
            blocks: asked(Part::Blocks).then(|| Blocks::run(&runner, size)).transpose()?,
            large: asked(Part::Large).then(|| Large::run(&runner, size)).transpose()?,
            model: asked(Part::Model).then(|| LatencyModel::run(&runner, size)).transpose()?,
            division: asked(Part::Division).then(|| Division::run(&runner, size)).transpose()?,
            skewed: asked(Part::Skewed).then(|| SkewedReads::run(&runner, size)).transpose()?,
            has_peers: self.programs.peers.is_some(),
            can_limit: self.programs.can_limit,
            size: size.clone(),
        })
    }
}

/// A job with the usual settings and warm caches.
pub(super) fn job(
    contender: &Contender,
    contents: Contents,
    workload: &str,
    caches: [u64; 2],
    operations: u64,
) -> Job {
    let mut reading = Reading {
        workload: workload.to_owned(),
        cache_bytes: caches[0],
        row_cache_bytes: caches[1],
        blocks_percent: None,
        operations,
        warm_up: WarmUp::Cold,
        keys_at_once: 1,
        seconds_max: (workload != "phases").then_some(PEER_SECONDS_MAX),
        device_reads: 0,
        windows: 1,
        seed: 1,
    };
    reading.warm_up = warm_up(contender, &contents, &reading);
    Job { contender: contender.clone(), contents, reading }
}
