//! The scale of the study.

/// Counts.
pub struct ProxyStudySize {
    /// Whether the figures are meaningless.
    pub is_quick: bool,
    pub repetitions: usize,
    /// Rows of the table: keys below this have one.
    pub rows: u64,
    /// Keys asked for: some have no row.
    pub keys: u64,
    /// Keys of a batch.
    pub batch: usize,
    /// Batches of each of the two streams.
    pub batches: usize,
    /// SIZE_IN_CELLS of CACHE layouts.
    pub cells: u64,
    /// FILE_SIZE of SSD_CACHE layouts, bytes.
    pub file_size: u64,
    /// Queries for one key, and queries for a batch; their medians give the cost of the hop.
    pub single_queries: usize,
    pub batch_queries: usize,
}

impl ProxyStudySize {
    pub fn full(repetitions: usize) -> Self {
        Self {
            is_quick: false,
            repetitions,
            rows: 5_000_000,
            keys: 5_250_000,
            // ClickHouse's block.
            batch: 65_409,
            batches: 50,
            cells: 1 << 20,
            file_size: 1 << 30,
            single_queries: 300,
            batch_queries: 60,
        }
    }

    /// Enough to execute every line.
    pub fn quick() -> Self {
        Self {
            is_quick: true,
            repetitions: 1,
            rows: 20_000,
            keys: 21_000,
            batch: 4_000,
            batches: 3,
            cells: 1 << 12,
            file_size: 64 << 20,
            single_queries: 5,
            batch_queries: 3,
        }
    }
}
