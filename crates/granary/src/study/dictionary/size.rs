//! The scale of the study.

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Counts and sizes; bytes unless the name says otherwise.
pub struct DictionaryStudySize {
    /// Whether the figures are meaningful.
    pub kind: RunKind,
    pub repetitions: usize,
    /// Keys of the seed's experiment.
    pub keys: u64,
    /// Lookups of the seed's experiment; the last count goes beyond it.
    pub reads: [u64; 3],
    /// Queries for one key each; a run's figure is their median.
    pub single_keys: u64,
    /// The four write buffers of SSD_CACHE; the last one holds everything.
    pub write_buffers: [u64; 4],
    pub file_size: u64,
    pub grid_blocks: Vec<u64>,
    pub grid_buffers: Vec<u64>,
    /// File size of the part with one wanted key per block.
    pub block_file: u64,
    /// Lookups of that part.
    pub block_lookups: u64,
    pub fio_seconds: u32,
    pub reopened_entries: u64,
}

/// The purpose of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    Full,
    Smoke,
}

impl DictionaryStudySize {
    /// The seed's sizes.
    pub fn full(repetitions: usize) -> DictionaryStudySize {
        DictionaryStudySize {
            kind: RunKind::Full,
            repetitions,
            keys: 300_000,
            reads: [30_000, 100_000, 1_000_000],
            single_keys: 30,
            write_buffers: [4 * KIB, 16 * KIB, MIB, 64 * MIB],
            file_size: 1024 * MIB,
            grid_blocks: vec![512, 4 * KIB, 16 * KIB, 64 * KIB],
            grid_buffers: vec![64 * KIB, MIB, 16 * MIB],
            block_file: 4096 * MIB,
            block_lookups: 262_144,
            fio_seconds: 4,
            reopened_entries: 10_000_000,
        }
    }

    /// Enough to execute every line.
    pub fn quick() -> DictionaryStudySize {
        DictionaryStudySize {
            kind: RunKind::Smoke,
            repetitions: 1,
            keys: 6_000,
            reads: [600, 2_000, 20_000],
            single_keys: 3,
            write_buffers: [4 * KIB, 16 * KIB, 64 * KIB, 4 * MIB],
            file_size: 64 * MIB,
            grid_blocks: vec![4 * KIB, 16 * KIB],
            grid_buffers: vec![64 * KIB, MIB],
            block_file: 64 * MIB,
            block_lookups: 8_192,
            fio_seconds: 1,
            reopened_entries: 200_000,
        }
    }

    /// Runs of a layout on ClickHouse: with a write buffer of one block it takes minutes.
    pub fn clickhouse_runs(&self, write_buffer: Option<u64>) -> usize {
        if write_buffer == Some(self.write_buffers[0]) { 1 } else { self.repetitions }
    }
}
